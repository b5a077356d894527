"""Log lines, as people and machines read them."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

import pytest

from palio.net.broker.server import serving
from palio.net.endpoint import Endpoint
from palio.net.monitoring import logs
from palio.protocol.wire.control import Published
from tests.net.peers import Peer, configured, run
from tests.net.stand_in import Cores


@pytest.fixture
def lines() -> io.StringIO:
    return io.StringIO()


@pytest.fixture(autouse=True)
def _quiet() -> object:
    log = logging.getLogger("palio.net")
    before = log.handlers[:], log.propagate, log.level
    yield
    log.handlers[:], log.propagate = before[0], before[1]
    log.setLevel(before[2])


def test_log_lines_for_machines(lines: io.StringIO) -> None:
    logs.start("json", stream=lines)
    logs.log_event(
        logging.INFO, "connection closed", link=3, reason="a\nb\x7f\x9b", address=Endpoint("::1", 7)
    )
    logs.log_event(logging.DEBUG, "not shown")
    try:
        raise KeyError("x")
    except KeyError as error:
        logs.log_bug("a bug", error)
    assert "\x7f" not in lines.getvalue()
    first, second = map(json.loads, lines.getvalue().splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "info", "event": "connection closed", "link": 3, "reason": "a\nb\x7f\x9b",
        "address": "[::1]:7",
    }  # fmt: skip
    assert "KeyError" in second["traceback"]


def test_log_lines_for_people_are_lines(lines: io.StringIO) -> None:
    logs.start("human", stream=lines)
    logs.log_event(
        logging.WARNING, "connection closed", reason="a\n2026 forged\x1b[31m" + "x" * 1000
    )
    (line,) = lines.getvalue().splitlines()
    assert r"WARNING  connection closed  reason=a\n2026 forged\x1b[31mxxx" in line
    assert len(line) < 700


def test_nothing_secret_is_logged(tmp_path: Path, lines: io.StringIO) -> None:
    logs.start("json", logging.DEBUG, lines)

    async def scene() -> None:
        text = '[neighbours.rome]\nsecret = "the secret of rome"\n'
        async with serving(configured(tmp_path, text), Cores()) as server:
            peer = await Peer.at(server.endpoint)
            peer.publish(1, durable=True, body=b"the body of a message")
            assert await peer.next() == Published(1)
            peer.writer.write(b"the token of a client, in bytes that are no frame")
            await peer.rest()

    run(scene())
    shown = lines.getvalue()
    assert "connection closed" in shown
    for secret in ("the secret", "the body", "the token", '"x":1'):
        assert secret not in shown
