"""Route a Kafka topic by content: each message goes to a topic for each interface that wants it.

    python examples/kafka_stream.py --servers localhost:9092 --source events --prefix wanted-

A record's value is a JSON object, such as {"dest": "MXP", "price": 450}. Reading and writing is
Spark's own connector, which Spark fetches from Maven when the session starts; on a machine without
a network, give its jars by --jars. Delivery is at least once, as Spark's sink for Kafka has it.
"""

from __future__ import annotations

import argparse
from typing import Any

import palio
import palio.spark

SUBSCRIPTIONS = {
    "ann": "dest = 'MXP' AND price < 500",
    "bob": "airline LIKE 'U%'",
    "desk": "price >= 500",
}


def connector() -> str:
    """The connector of the PySpark that is installed."""
    import pyspark

    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"


def routed(records: Any, table: palio.ForwardingTable, prefix: str) -> Any:
    """From records of Kafka to records of Kafka: key, value and the topic of each interface.

    A record that is no JSON object goes nowhere, and the stream goes on.
    """
    texts = records.selectExpr("key", "CAST(value AS STRING) AS value")
    pairs = palio.spark.forward(texts, table, json="value", output="pairs", invalid="null")
    return pairs.selectExpr("key", "value", f"concat('{prefix}', interface) AS topic")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--servers", default="localhost:9092")
    options.add_argument("--source", default="events", help="the topic to read")
    options.add_argument("--prefix", default="wanted-", help="of the topics to write")
    options.add_argument("--checkpoint", default="checkpoint", help="a folder to restart from")
    options.add_argument("--jars", help="the connector's jars, instead of fetching them")
    options.add_argument("--once", action="store_true", help="stop when all is read")
    chosen = options.parse_args()

    jars = {"spark.jars": chosen.jars} if chosen.jars else {"spark.jars.packages": connector()}
    spark = palio.spark.session("local[*]", "kafka-stream", **jars)
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", chosen.servers)
        .option("subscribe", chosen.source)
        .option("startingOffsets", "earliest")
        .load()
    )
    table = palio.ForwardingTable.compile(SUBSCRIPTIONS)
    writer = (
        routed(records, table, chosen.prefix)
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", chosen.servers)
        .option("checkpointLocation", chosen.checkpoint)
    )
    trigger = {"availableNow": True} if chosen.once else {"processingTime": "1 second"}
    writer.trigger(**trigger).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
