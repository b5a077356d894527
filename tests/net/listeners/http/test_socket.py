"""The WebSocket: publish, subscribe, acknowledge, and what is wrong."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.net.listeners.http.peer import HttpBroker, http_broker, identity, websockets
from tests.net.peers import run


class Said:
    """A WebSocket whose messages are objects."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def say(self, **members: object) -> None:
        await self.connection.send(json.dumps(members))

    async def hear(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self.connection.recv())
        return found

    async def ask(self, **members: object) -> dict[str, Any]:
        await self.say(**members)
        return await self.hear()


def socket(broker: HttpBroker, **options: Any) -> Any:
    return websockets.connect(f"ws://{broker.endpoint}/v1/socket", proxy=None, **options)


def test_publish_subscribe_acknowledge_unsubscribe(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            async with socket(broker) as connection:
                peer = Said(connection)
                asked = {"op": "subscribe", "id": 1, "where": "n > 1", "durable": "desk"}
                answer = await peer.ask(**asked)
                assert answer == {"op": "subscribed", "id": 1, "took_over": False}
                answer = await peer.ask(op="publish", id=2, attributes={"n": 1})
                assert answer == {"op": "published", "id": 2}
                await peer.say(op="publish", id=3, attributes={"n": 2}, body="two")
                heard = {found["op"]: found for found in [await peer.hear(), await peer.hear()]}
                assert heard["published"]["id"] == 3
                message = heard["message"]
                assert message["message"]["body"] == "two"
                await peer.say(op="ack", id=1, positions=[message["position"]])
                assert (await peer.ask(op="unsubscribe", id=1))["op"] == "unsubscribed"
            assert [
                row.messages for row in broker.server.host.snapshot().queues.largest.values()
            ] == [0]

    run(scene())


def test_credit_bounds_what_is_not_acknowledged(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker, socket(broker) as connection:
            peer = Said(connection)
            await peer.ask(op="subscribe", id=1, where="TRUE", durable="d", credit=2)
            await broker.publish(*({"attributes": {"n": n}} for n in range(4)))
            first = [await peer.hear() for _ in range(2)]
            assert [found["message"]["attributes"]["n"] for found in first] == [0, 1]
            # an answer to another request shows that nothing else was on its way
            assert (await peer.ask(op="publish", id=2, attributes={"n": 9}))["op"] == "published"
            await peer.say(op="ack", id=1, positions=[found["position"] for found in first])
            assert (await peer.hear())["message"]["attributes"]["n"] == 2

    run(scene())


@pytest.mark.parametrize(
    ("said", "id", "code"),
    [
        ("x", None, "invalid"),
        ('{"op": "fly", "id": 3}', 3, "invalid"),
        ('{"op": "publish", "id": 3}', 3, "invalid"),
        ('{"op": "publish", "id": 3, "id": 4, "attributes": {}}', 4, "invalid"),
        ('{"op": "publish", "id": 3, "attributes": {"a": 1, "a": 2}}', 3, "invalid"),
        ('{"op": "publish", "id": -1, "attributes": {"a": 1}}', -1, "invalid"),
        ('{"op": "subscribe", "id": 3, "where": "a >"}', 3, "parse"),
        ('{"op": "subscribe", "id": 3, "where": "a = 1", "credit": 0}', 3, "invalid"),
        ('{"op": "ack", "id": 3, "positions": [1]}', 3, "unknown"),
        ('{"op": "ack", "id": 1, "positions": [-5, 1000000000000]}', None, ""),
        ('{"op": "nack", "id": 1, "positions": [-5, 1000000000000, 7, 7]}', None, ""),
        ('{"op": "reject", "id": 1, "positions": [-5, 1000000000000, 7, 7]}', None, ""),
        ('{"op": "nack", "id": 3, "positions": [1]}', 3, "unknown"),
        ('{"op": "nack", "id": 1, "positions": [1], "delay": -1}', 1, "invalid"),
        ('{"op": "nack", "id": 1, "positions": [1], "delay": 1e300}', 1, "invalid"),
        ('{"op": "nack", "id": 1, "positions": [1], "delay": "1"}', 1, "invalid"),
        (f'{{"op": "nack", "id": 1, "positions": {[1] * 10_001}}}', 1, "invalid"),
        (f'{{"op": "reject", "id": 1, "positions": {[1] * 10_001}}}', 1, "invalid"),
        (f'{{"op": "reject", "id": 1, "positions": [1], "reason": "{"x" * 1001}"}}', 1, "invalid"),
        (
            '{"op": "subscribe", "id": 3, "where": "TRUE", "durable": "e", "deliveries_max": 0}',
            3,
            "invalid",
        ),
        ('{"op": "subscribe", "id": 3, "where": "TRUE", "deliveries_max": 2}', 3, "invalid"),
        ('{"op": "publish", "id": 3, "attributes": {"a": 1}, "expires_in": 0}', 3, "invalid"),
        ('{"op": "publish", "id": 3, "attributes": {"a": 1}, "delay": 1e12}', 3, "invalid"),
        (
            '{"op": "publish", "id": 3, "attributes": {"a": 1}, "delay": 1, "durable": false}',
            3,
            "invalid",
        ),
        ('{"op": "unsubscribe", "id": 3}', 3, "unknown"),
        ('{"op": "subscribe", "id": 1, "where": "TRUE"}', 1, "conflict"),
    ],
)
def test_what_is_wrong_is_said_and_the_rest_goes_on(
    tmp_path: Path, said: str, id: int | None, code: str
) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker, socket(broker) as connection:
            peer = Said(connection)
            await peer.ask(op="subscribe", id=1, where="FALSE", durable="d")
            await connection.send(said)
            if code:
                found = await peer.hear()
                assert (found["op"], found["id"], found["problem"]["code"]) == ("error", id, code)
            assert (await peer.ask(op="publish", id=9, attributes={"a": 1}))["op"] == "published"

    run(scene())


def test_give_back_and_reject(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker, socket(broker) as connection:
            peer = Said(connection)
            await peer.ask(op="subscribe", id=1, where="n > 0", durable="d")
            await peer.ask(op="subscribe", id=2, where="dead_letter IS NOT NULL", durable="dead")
            await broker.publish({"attributes": {"n": 1}}, {"attributes": {"n": 2}})
            first, second = await peer.hear(), await peer.hear()
            assert (first["again"], first["deliveries"]) == (False, 1)
            positions = [first["position"], second["position"]]
            await peer.say(op="nack", id=1, positions=positions)
            again = [await peer.hear() for _ in positions]
            assert [(one["position"], one["again"], one["deliveries"]) for one in again] == [
                (position, True, 2) for position in positions
            ]
            assert again[0]["message"]["attributes"] == {"n": 1}
            await peer.say(op="nack", id=1, positions=positions[:1], delay=0.1)
            await peer.say(op="reject", id=1, positions=positions[1:], reason="no such desk")
            last = {found["id"]: found for found in [await peer.hear(), await peer.hear()]}
            assert (last[1]["position"], last[1]["deliveries"]) == (positions[0], 3)
            attributes = last[2]["message"]["attributes"]
            assert attributes["original"] == {"n": 2}
            assert attributes["dead_text"] == "no such desk"

    run(scene())


def test_deliveries_are_bounded(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker, socket(broker) as connection:
            peer = Said(connection)
            asked = {"op": "subscribe", "where": "n > 0", "deliveries_max": 2}
            await peer.ask(**asked, id=1, durable="d")
            await peer.ask(op="subscribe", id=2, where="dead_letter IS NOT NULL")
            await broker.publish({"attributes": {"n": 1}})
            for count in (1, 2):
                found = await peer.hear()
                assert (found["id"], found["deliveries"]) == (1, count)
                await peer.say(op="nack", id=1, positions=[found["position"]])
            assert (await peer.hear())["id"] == 2, "it is a dead letter now"

    run(scene())


def test_both_learn_of_a_takeover(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            asked = {"op": "subscribe", "id": 1, "where": "n > 0", "durable": "d"}
            async with socket(broker) as first, socket(broker) as second:
                old, new = Said(first), Said(second)
                assert (await old.ask(**asked))["took_over"] is False
                assert (await new.ask(**asked))["took_over"] is True
                ended = await old.hear()
                assert (ended["op"], ended["problem"]["code"]) == ("ended", "taken_over")
                live = await new.ask(op="subscribe", id=2, where="n > 0")
                assert live == {"op": "subscribed", "id": 2}

    run(scene())


def test_expiry_and_delay(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker, socket(broker) as connection:
            peer = Said(connection)
            await peer.ask(op="subscribe", id=1, where="n > 0", durable="d", credit=1)
            asked = {"op": "publish", "id": 2}
            began_s = time.monotonic()
            await peer.ask(**asked, attributes={"n": 1}, delay=0.3)
            found = await peer.hear()
            assert time.monotonic() - began_s >= 0.3
            # the credit is used up: the next one waits in the queue until it is too late
            answer = await peer.ask(**asked, attributes={"n": 2}, expires_in=0.1)
            assert answer["op"] == "published"
            await peer.ask(**asked, attributes={"n": 3}, expires_in=1000)
            await asyncio.sleep(0.15)
            await peer.say(op="ack", id=1, positions=[found["position"]])
            found = await peer.hear()
            assert found["message"]["attributes"] == {"n": 3}
            assert found["message"]["headers"]["expires_us"] > time.time() * 1e6

    run(scene())


def test_grants_decide(tmp_path: Path) -> None:
    more = identity("ann", 'subscribe = "desk = 7"\npublish = "desk = 7"')

    async def scene() -> None:
        async with http_broker(tmp_path, more=more) as broker:
            with pytest.raises(websockets.InvalidStatus) as refused:
                await socket(broker)
            assert refused.value.response.status_code == 401
            ann = {"Authorization": "Bearer ann"}
            async with socket(broker, additional_headers=ann) as connection:
                peer = Said(connection)
                found = await peer.ask(op="subscribe", id=1, where="TRUE")
                assert found["problem"]["code"] == "denied"
                found = await peer.ask(op="publish", id=2, attributes={"desk": 8})
                assert found["problem"]["status"] == 403

    run(scene())


def test_a_login_reads_only(tmp_path: Path) -> None:
    """A page of the same site, or one with a script of somebody else, opens it with the cookie of its reader."""
    more = identity("ann", 'subscribe = "TRUE"\npublish = "TRUE"')

    async def scene() -> None:
        async with http_broker(tmp_path, more=more) as broker:
            token = {"Authorization": "Bearer ann"}
            login = await broker.ask("POST", "/v1/login", **token)
            cookie = {"Cookie": login.headers["set-cookie"].partition(";")[0]}
            async with socket(broker, additional_headers=cookie) as connection:
                peer = Said(connection)
                asked = {"op": "subscribe", "id": 1, "where": "TRUE", "durable": "desk"}
                assert (await peer.ask(**asked))["op"] == "subscribed"
                for said in (
                    {"op": "reject", "id": 1, "positions": [1]},
                    {"op": "publish", "id": 2, "attributes": {"n": 1}},
                    {"op": "publish", "id": 2, "attributes": {"n": 1}, "durable": False},
                    {"op": "unsubscribe", "id": 1, "forget": True},
                ):
                    found = await peer.ask(**said)
                    assert (found["op"], found["problem"]["code"]) == ("error", "read_only")
                assert (await broker.publish({"attributes": {"n": 2}}, **token)).status == 200
                heard = await peer.hear()
                assert heard["message"]["attributes"] == {"n": 2}, "nothing else was published"
                assert (await peer.ask(op="unsubscribe", id=1))["op"] == "unsubscribed"
            async with socket(broker, additional_headers=cookie | token) as connection:
                found = await Said(connection).ask(op="publish", id=2, attributes={"n": 3})
                assert found["op"] == "published"

    run(scene())


def test_it_answers_pings_and_pings_itself(tmp_path: Path) -> None:
    async def scene() -> None:
        http = 'heartbeat = "100 ms"\nstalled = "200 ms"\n'
        async with http_broker(tmp_path, http) as broker:
            async with socket(broker) as connection:
                await (await connection.ping())
            peer = await broker.connect()  # one that answers no Ping
            key = {"Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec_WebSocket_Version": "13"}
            await peer.send("GET", "/v1/socket", Connection="Upgrade", Upgrade="websocket", **key)
            assert (await peer.head()).status == 101
            await peer.reader.read()  # until it is cut off

    run(scene())


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff" * 100,
        b"\x81\x05hello",  # without a mask
        b"\x82\x80\x00\x00\x00\x00",  # binary
        b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00",  # 2^63 bytes
        b"\x01\x80\x00\x00\x00\x00" + b"\x00\x80\x00\x00\x00\x00" * 5_000,  # fragments
        b"\x89\x80\x00\x00\x00\x00" * 100_000,  # Pings, whose Pongs nobody reads
        b"\x88\x81\x00\x00\x00\x00\x01",  # a broken Close
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=["noise", "unmasked", "binary", "huge", "fragments", "pings", "close", "http"],
)
def test_frames_that_are_none(tmp_path: Path, data: bytes) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path, 'stalled = "500 ms"\n') as broker:
            peer = await broker.connect()
            key = {"Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec_WebSocket_Version": "13"}
            await peer.send("GET", "/v1/socket", Connection="Upgrade", Upgrade="websocket", **key)
            assert (await peer.head()).status == 101
            peer.writer.write(data)
            answer = b""
            if data[0] != 0x89:
                answer = await peer.reader.read()
                assert answer[:1] == b"\x88", "it says why"
            peer.writer.close()
            assert (await broker.publish({"attributes": {"a": 1}})).status == 200

    run(scene())


def test_last_values(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker, socket(broker) as connection:
            peer = Said(connection)
            for value in (1, 2):
                await peer.ask(op="publish", id=1, attributes={"k": "a", "v": value}, retain=["k"])
            asked = {"op": "subscribe", "id": 2, "where": "v > 0", "last": True}
            assert await peer.ask(**asked) == {"op": "subscribed", "id": 2}
            message = (await peer.hear())["message"]
            assert (message["attributes"]["v"], message["retained"]) == (2, True)
            for wrong in ({"retain": ["no"]}, {"forget": True}, {"retain": "k"}):
                answer = await peer.ask(op="publish", id=3, attributes={"k": "a"}, **wrong)
                assert answer["op"] == "error"
            answer = await peer.ask(op="subscribe", id=4, where="TRUE", durable="d", last=True)
            assert answer["op"] == "error"

    run(scene())
