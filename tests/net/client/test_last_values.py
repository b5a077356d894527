"""Last values with real brokers: native clients and the command line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import palio
from palio.errors import InvalidValue, RefusedByBroker
from palio.net.client.last_values import with_retain
from palio.net.cluster import local_cluster
from tests.cli.commands import palio as command


def test_what_makes_a_last_value() -> None:
    assert with_retain({"a": 1}, "sensor", False, True) == {"a": 1, "retain": '["sensor"]'}
    assert with_retain(None, ("x", "y"), True, True) == {
        "retain": '["x", "y"]',
        "retain_forget": True,
    }
    for retain, forget, durable in ((None, True, True), ([], True, True), ("x", False, False)):
        with pytest.raises(InvalidValue):
            with_retain(None, retain, forget, durable)


def test_a_new_subscriber_at_another_broker(tmp_path: Path) -> None:
    async def scene(first: str, second: str) -> None:
        async with palio.connect(first) as ann, palio.connect(second) as bob:
            await ann.publish({"sensor": "t7", "value": 20.5}, b"old", retain="sensor")
            await ann.publish(
                {"sensor": "t7", "value": 21.5}, b"new", retain="sensor", headers={"unit": "C"}
            )
            await ann.publish({"sensor": "t8", "value": 3.0}, retain=("sensor",))
            await ann.publish({"sensor": "t8"}, retain=("sensor",), forget=True)
            while True:  # until it has reached the other broker
                async with bob.subscribe("sensor IS NOT NULL", last=True) as values:
                    note = await asyncio.wait_for(anext(values), 30)
                    if note.retained and note.body == b"new":
                        break
            assert (dict(note.attributes), note.headers["unit"]) == (
                {"sensor": "t7", "value": 21.5},
                "C",
            )
            assert set(note.headers) == {"unit", "retain"}
            async with bob.subscribe("value > 0", last=True) as values:
                assert (await asyncio.wait_for(anext(values), 30)).retained
                await ann.publish({"sensor": "t7", "value": 22.5}, retain="sensor")
                note = await asyncio.wait_for(anext(values), 30)
                assert (note.attributes["value"], note.retained) == (22.5, False)
            with pytest.raises(RefusedByBroker, match="part of the key"):
                await ann.publish({"x": 1}, retain="sensor")

    with local_cluster(2, "line", data=tmp_path) as cluster:
        asyncio.run(scene(*cluster.urls))
        url = cluster.urls[1]
        command("publish", "--url", url, "sensor=t9", "value=4", "--retain", "sensor")
        shown = command(
            "subscribe", "--url", url, "sensor = 't9'", "--last", "--json", "--count", "1"
        )
        line = json.loads(shown.stdout)
        assert (line["attributes"], line["retained"]) == ({"sensor": "t9", "value": 4}, True)
        with palio.blocking.connect(url) as client:
            client.publish({"sensor": "t9"}, retain="sensor", forget=True)
            client.publish({"sensor": "t10", "value": 1}, retain=["sensor"])
            with client.subscribe("value = 1", last=True) as notes:
                assert notes.next(30).attributes["sensor"] == "t10"
