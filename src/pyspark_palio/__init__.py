"""How Spark finds the format "palio": it looks for a DefaultSource in modules named pyspark_*."""

from palio.spark_network.source import PalioSource as DefaultSource

__all__ = ["DefaultSource"]
