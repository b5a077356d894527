"""Spark on the network of brokers: `format("palio")` subscribes, publishes and replays.

    spark.readStream.format("palio").option("url", ...).option("durable", "flights").load()
    frame.writeStream.format("palio").option("url", ...)        frame.write.format("palio")
    spark.read.format("palio").option("startingTime", ...)

         broker ══ durable subscription ══▶ driver ──▶ tasks ──▶ ... ──▶ tasks ──▶ driver ══▶ broker
                   positions = offsets       stream.py   columns.py       rows.py    sink.py
         broker ══ a subscription of its own ══▶ task             replay.py, pushdown.py
         broker ◀══ a publisher for each task ══ task             sink.py, a batch

Only the driver of a stream talks to brokers, so a task that is tried again changes nothing there.
Spark finds the format by itself where Palio is installed (pyspark_palio); `register` is for
sessions whose Python does not see it, and lets filters be pushed down.
"""

from __future__ import annotations

import importlib.util

from palio.errors import MissingSoftware

if importlib.util.find_spec("pyspark.sql.streaming.datasource") is None:
    raise MissingSoftware(
        "palio.spark_network needs PySpark 4.2 or newer: pip install 'palio[spark]' 'pyspark>=4.2'"
    )

from palio.spark_network.source import PalioSource, register

__all__ = ["PalioSource", "register"]
