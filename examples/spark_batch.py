"""Route a DataFrame by content, on a local Spark: python examples/spark_batch.py

Subscriptions and messages are DataFrames; the result tells where each message goes, and how many
messages each interface gets.
"""

from __future__ import annotations

from typing import Any

import palio.spark

SUBSCRIPTIONS = [
    ("ann", "dest = 'MXP' AND price < 500"),
    ("bob", "airline LIKE 'U%' OR price < 100"),
    ("cy", "dest IN ('LAX', 'SFO') AND price IS NOT NULL"),
    ("audit", "price IS NULL"),
]
MESSAGES = [
    (1, "MXP", "UA", 450),
    (2, "LAX", "DL", 600),
    (3, "MXP", "AZ", 700),
    (4, "SFO", "US", None),
    (5, "JFK", "AZ", 80),
]


def routed(spark: Any) -> Any:
    """The messages with the interfaces that each goes to."""
    subscriptions = spark.createDataFrame(SUBSCRIPTIONS, "interface string, predicate string")
    messages = spark.createDataFrame(MESSAGES, "id int, dest string, airline string, price int")
    table = palio.spark.compile(subscriptions)
    return palio.spark.forward(messages, table)


def main() -> None:
    spark = palio.spark.session("local[2]", "spark-batch")
    found = routed(spark)
    found.orderBy("id").show(truncate=False)
    found.selectExpr("explode(interfaces) AS interface").groupBy("interface").count().show()
    spark.stop()


if __name__ == "__main__":
    main()
