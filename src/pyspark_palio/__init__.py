"""How Spark finds the format "palio": it looks for a DefaultSource in modules named pyspark_*."""

try:
    from palio.spark_network.source import PalioSource as DefaultSource
except ImportError:  # an error here would keep Spark from finding any other source
    __all__: list[str] = []
else:
    __all__ = ["DefaultSource"]
