"""Writes two records to a topic of its own, runs the example once, and notes what each topic got.

`python kafka_run.py SERVERS FOLDER`: a process of its own, since the connector is loaded when the
session starts.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import palio.spark

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))
from kafka_stream import SUBSCRIPTIONS, connector  # noqa: E402

RECORDS = [("a", '{"dest": "MXP", "price": 450, "airline": "UA"}'), ("b", '{"price": 500}')]


def main(servers: str, folder: Path) -> None:
    run = f"palio-{uuid.uuid4().hex[:8]}"
    spark = palio.spark.session("local[2]", **{"spark.jars.packages": connector()})
    server = {"kafka.bootstrap.servers": servers}
    sent = spark.createDataFrame(RECORDS, "key string, value string")
    sent.write.format("kafka").options(**server, topic=f"{run}-events").save()
    arguments = ["--servers", servers, "--source", f"{run}-events", "--prefix", f"{run}-to-"]
    example = [sys.executable, str(ROOT / "examples" / "kafka_stream.py"), "--once"]
    subprocess.run([*example, *arguments, "--checkpoint", str(folder / "checkpoint")], check=True)
    topics = ",".join(f"{run}-to-{name}" for name in SUBSCRIPTIONS)
    read = spark.read.format("kafka").options(**server, subscribe=topics).load()
    rows = read.selectExpr("CAST(key AS STRING) AS key", "topic").collect()
    found = sorted(f"{row['key']}-{row['topic'].removeprefix(f'{run}-to-')}" for row in rows)
    (folder / "found.txt").write_text("\n".join(found))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
