"""A ring of brokers, where nobody speaks the same protocol as the others: each gets what it selects."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import palio
from palio.net.cluster import local_cluster
from palio.net.cluster.ports import free_ports

pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed: pip install palio[dev]")

from tests.spark_network.strangers import Device, MqttPublisher, NativeClient, Page, Receiver

PREDICATES = {
    "spark": "temp >= 30 AND topic_1 = 'site'",
    "native": "topic_2 = '7' OR topic LIKE 'site/3%'",
    "page": "temp < 5 AND n % 2 = 0",
}
WHERE = "temp > 25 AND n > 10"
PATIENCE_S = 120


def wanted(n: int, site: int, temp: int) -> set[str]:
    """Who gets this message, by hand."""
    found = {
        "spark": temp >= 30,
        "native": site == 7 or site == 3,
        "page": temp < 5 and n % 2 == 0,
        "device": temp > 25 and n > 10,
    }
    return {name for name, is_wanted in found.items() if is_wanted}


def spark_stream(spark: Any, url: str, folder: Path, numbers: set[int]) -> Any:
    """A stream that adds what it reads to `numbers`, batch by batch."""
    frame = (
        spark.readStream.format("palio")
        .schema("n BIGINT, temp BIGINT")
        .option("url", url)
        .option("predicate", PREDICATES["spark"])
        .option("durable", "spark")
        .load()
    )

    def take(batch: Any, _number: int) -> None:
        numbers.update(row.n for row in batch.collect())

    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(folder))
    return writer.trigger(processingTime="200 milliseconds").start()


def meet(folder: Path, messages: int, pause_s: float, kills: bool, spark: Any) -> None:
    ports = dict(zip(("b1", "b4", "b5"), free_ports(0, 3), strict=True))
    cluster = local_cluster(5, "ring", data=folder / "brokers")
    for name, listener in (("b1", "mqtt"), ("b4", "http"), ("b5", "mqtt")):
        cluster.own_settings[name] = {listener: {"listen": f"127.0.0.1:{ports[name]}"}}
    dice = random.Random(7)
    due: dict[str, set[int]] = {name: set() for name in (*PREDICATES, "device")}
    with ExitStack() as stack:
        stack.enter_context(cluster)
        got: dict[str, set[int]] = {"spark": set()}
        if spark is not None:
            query = spark_stream(spark, cluster.url("b2"), folder / "stream", got["spark"])
            stack.callback(query.stop)
        native: Receiver = stack.enter_context(
            NativeClient(cluster.url("b3"), PREDICATES["native"])
        )
        page: Receiver = stack.enter_context(Page(ports["b4"], PREDICATES["page"]))
        device = stack.enter_context(Device(ports["b5"], "site/+/temp", WHERE))
        got |= {"native": native.numbers, "page": page.numbers, "device": device.numbers}
        asyncio.run(exist(cluster.url("b1"), 3 + (spark is not None)))
        publisher = stack.enter_context(MqttPublisher(ports["b1"]))
        victims = [*cluster.names, *cluster.names] if kills else []
        for n in range(messages):
            site, temp = dice.randrange(10), dice.randrange(40)
            publisher.publish(f"site/{site}/temp", {"n": n, "temp": temp})
            for name in wanted(n, site, temp):
                due[name].add(n)
            time.sleep(pause_s)
            if victims and n % (messages // 11) == messages // 22:
                victim = victims.pop()
                cluster.kill(victim)
                time.sleep(1)
                cluster.start(victim)
        publisher.wait(PATIENCE_S)
        if spark is None:
            due["spark"] = set()
        until = time.monotonic() + PATIENCE_S
        while got != due and time.monotonic() < until:
            time.sleep(0.1)
    lost = {name: sorted(due[name] - got[name])[:5] for name in due if due[name] - got[name]}
    unwanted = {name: sorted(got[name] - due[name])[:5] for name in due if got[name] - due[name]}
    assert (lost, unwanted) == ({}, {})
    assert all(len(due[name]) > messages // 20 for name in due if name != "spark" or spark)


async def exist(url: str, subscriptions: int) -> None:
    """Wait until there are so many durable subscriptions: from then on they miss nothing."""
    async with palio.connect(url) as client, asyncio.timeout(PATIENCE_S):
        while sum([place.durable for place in await client.topology()]) < subscriptions:
            await asyncio.sleep(0.1)


@pytest.mark.xdist_group("brokers")
def test_three_kinds_of_clients(tmp_path: Path) -> None:
    meet(tmp_path, 200, 0, False, None)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_all_kinds_of_clients_while_brokers_are_killed(spark: Any, tmp_path: Path) -> None:
    """Each broker is killed twice."""
    meet(tmp_path, 3000, 0.01, True, spark)
