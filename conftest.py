"""Modules whose doctests pytest does not collect, because what they import is not installed."""

from importlib.util import find_spec

ON_SPARK = ["src/palio/lab", "src/palio/spark", "src/palio/spark_network"]

ON_POSTGRES = [
    f"src/palio/net/storage/{name}.py"
    for name in ("database", "lease", "postgres", "schema", "stall_guard")
]

collect_ignore = [] if find_spec("pyspark") else ON_SPARK
collect_ignore += [] if find_spec("psycopg") else ON_POSTGRES
