"""WebSockets whose requests wait, with more behind them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.net.listeners.http.peer import http_broker, websockets  # isort: skip

from palio.net.listeners.http import socket
from palio.net.listeners.http.room import Room
from palio.net.listeners.http.socket_frames import SocketFrames
from tests.net.peers import run


def test_number_and_bytes() -> None:
    async def scene() -> None:
        room = Room(2, 10)
        await room.take(100)
        taking = asyncio.create_task(room.take(1))
        await asyncio.sleep(0)
        assert not taking.done()
        room.give(100)
        await taking
        await room.take(9)
        taking = asyncio.create_task(room.take(0))
        await asyncio.sleep(0)
        assert not taking.done()
        room.give(1)
        await taking

    run(scene())


@pytest.mark.parametrize(("size", "most"), [(10, 256), (1 << 20, 8)])
def test_subscriptions_that_wait_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, most: int
) -> None:
    waiting = 0

    async def never(*_: Any, **__: Any) -> None:
        nonlocal waiting
        waiting += 1
        await asyncio.sleep(60)

    made: list[SocketFrames] = []

    class Observed(SocketFrames):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(socket, "subscribe", never)
    monkeypatch.setattr(socket, "SocketFrames", Observed)

    async def scene() -> None:
        async with (
            http_broker(tmp_path) as broker,
            websockets.connect(f"ws://{broker.endpoint}/v1/socket") as client,
        ):

            async def flood() -> None:
                for id in range(10 * most):
                    request = {"op": "subscribe", "id": id, "where": "x" * size}
                    await client.send(json.dumps(request))

            flooding = asyncio.create_task(flood())
            await asyncio.sleep(1.0)
            assert 0 < waiting <= most
            (frames,) = made
            assert frames._ahead < 3 << 20
            flooding.cancel()
            client.transport.abort()

    run(scene())
