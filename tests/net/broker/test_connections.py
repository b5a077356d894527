"""How much a turn of the event loop gets from sockets, and how many losses of connections it processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from palio.net.broker.connections import LOST_AT_ONCE, TURN_BYTES_MAX
from palio.net.broker.server import serving
from palio.protocol.wire.control import Ping, Pong
from palio.protocol.wire.frames import MessageFrame
from tests.net.peers import Peer, configured, run, until
from tests.net.stand_in import Cores, core_calls

pytestmark = pytest.mark.usefixtures("loop")
READ_BYTES = 256 << 10
"""What one read of a socket gives at most."""


def test_a_turn_gets_a_bounded_number_of_bytes_and_nothing_is_lost(
    tmp_path: Path, cores: Cores
) -> None:
    count, size = 64, 300_000

    async def scene() -> None:
        async with serving(configured(tmp_path), cores) as server:
            peer = await Peer.at(server.endpoint)
            most, received, take = 0, 0, cores.last.take
            receive = cores.last.receive

            def receiving(link: int, data: bytes, now_us: int) -> None:
                nonlocal received
                received += len(data)
                receive(link, data, now_us)

            def taking() -> object:
                nonlocal most, received
                most, received = max(most, received), 0
                return take()

            cores.last.receive = receiving  # type: ignore[method-assign]
            cores.last.take = taking  # type: ignore[method-assign, assignment]
            for number in range(1, count + 1):
                peer.publish(number, body=bytes(size))
            for _ in range(count):
                assert isinstance(await peer.next(), MessageFrame)
            assert 0 < most <= TURN_BYTES_MAX + 2 * READ_BYTES
            peer.say(Ping(1))
            assert await peer.next() == Pong(1)

    run(scene())


def test_many_connections_that_are_lost_at_once_are_closed_in_parts(
    tmp_path: Path, cores: Cores
) -> None:
    count = 2 * LOST_AT_ONCE + 10

    async def scene() -> None:
        async with serving(configured(tmp_path), cores) as server:
            peers = [await Peer.at(server.endpoint) for _ in range(count)]
            await until(lambda: server.host.connection_count == count)
            closed, most, take = 0, 0, cores.last.take

            def taking() -> object:
                nonlocal closed, most
                now = len(core_calls(cores.last, "close"))
                closed, most = now, max(most, now - closed)
                return take()

            cores.last.take = taking  # type: ignore[method-assign, assignment]
            for peer in peers:
                peer.writer.transport.abort()
            await until(lambda: len(core_calls(cores.last, "close")) == count)
            assert most <= LOST_AT_ONCE
            assert server.host.connection_count == 0

    run(scene())
