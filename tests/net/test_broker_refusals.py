"""What clients of a real broker raise when it refuses something: the same error as at home."""

from __future__ import annotations

from pathlib import Path

import pytest

import palio
from palio.errors import InvalidPredicate, LimitExceeded, ParseError, RefusedByBroker, Unreachable
from palio.net.broker.server import serving
from palio.protocol.wire.codes import CloseCode, RefusalCode
from tests.net.peers import configured, run

BAD_PREDICATES = ("x = = 1", "price <", "a = 1 AND b LIKE 'x%y%z%' OR", "x IN ()", "'", "x ~ 1")


def test_a_bad_text_is_the_same_parse_error_as_at_home(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path)) as server:
            url = f"palio://127.0.0.1:{server.endpoint.port}"
            async with palio.connect(url, max_wait=5) as client:
                for text in BAD_PREDICATES:
                    with pytest.raises(ParseError) as here:
                        palio.parse(text)
                    with pytest.raises(ParseError) as there:
                        await client.subscribe(text).ready()
                    assert str(there.value) == str(here.value)
                    assert (there.value.text, there.value.position) == (
                        here.value.text,
                        here.value.position,
                    )
                with pytest.raises(ParseError) as pattern:
                    await client.watch("[a = 1] THEN [b = = 1] WITHIN 1 s").ready()
                assert pattern.value.position == len("[a = 1] THEN [b = ")
                with pytest.raises(ParseError, match=r"\^"):
                    await client.advertise("a = 1", "b = = 1")
                many = " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(13))
                with pytest.raises(LimitExceeded):
                    await client.subscribe(many).ready()
                long = "x = 1 OR " * 3000 + "x = = 2"
                with pytest.raises(ParseError) as beyond:
                    await client.subscribe(long).ready()
                assert beyond.value.position == len(long) - 3
                with pytest.raises(InvalidPredicate, match="single constraints"):
                    await client.advertise("a = 1 AND b = 1")

    run(scene())


def test_words_and_names_that_the_broker_does_not_take(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path)) as server:
            url = f"palio://127.0.0.1:{server.endpoint.port}"
            async with palio.connect(url, max_wait=5) as client:
                for options in ({}, {"durable": "d"}, {"group": "g"}):
                    with pytest.raises(RefusedByBroker, match="full is block, drop, end, not 'x'"):
                        await client.subscribe("a = 1", full="x", **options).ready()
                with pytest.raises(RefusedByBroker, match="give the subscription a durable name"):
                    await client.subscribe("a = 1", full="block").ready()
                with pytest.raises(RefusedByBroker, match="256 bytes; at most 255") as refused:
                    await client.subscribe("a = 1", durable="ü" * 128).ready()
                assert refused.value.code == RefusalCode.LIMIT
                await client.subscribe("a = 1", durable="ü" * 127 + "x", full="block").ready()

    run(scene())


def test_a_broker_with_too_many_connections_is_tried_again(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path, "[limits]\nconnections = 1\n")) as server:
            url = f"palio://127.0.0.1:{server.endpoint.port}"
            async with palio.connect(url, name="first"):
                second = palio.connect(url, name="second", wait=0.2)
                with pytest.raises(Unreachable, match="has 1 connections") as error:
                    await second.open()
                assert error.value.code == CloseCode.TOO_MANY_CONNECTIONS
            async with palio.connect(url, name="third", wait=5):
                pass

    run(scene())
