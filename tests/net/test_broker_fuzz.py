"""Noise over real sockets to a broker process: it lives, does not grow, says why it closes a link,
and serves others meanwhile."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from random import Random

import pytest

import palio
from palio.net.cluster import Cluster, local_cluster
from palio.net.endpoint import Endpoint
from palio.protocol.wire.control import VERSION, Bye, Hello, Welcome
from palio.protocol.wire.frames import BrokenFrame, control_frame
from palio.protocol.wire.handshake import NONCE_BYTES, dial
from tests.net.peers import Peer
from tests.protocol.broker.noise import NEIGHBOUR, ROLES, Speaker
from tests.protocol.broker.test_broker_fuzz import resident_bytes

SECRET = "0123456789abcdef0123456789abcdef"
SETTINGS = {
    f"neighbours.{NEIGHBOUR}": {"secret": SECRET},
    "log": {"keep": "1 s", "keep_bytes": "1 MiB", "memory": "1 MiB"},
    "queues": {"full": "drop", "bound": 100},
}
GREETED_S_MAX = 20


class Attack:
    """Connections that say bad things, several at once."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        host, port = cluster.url("b1").removeprefix("palio://").split(":")
        self._endpoint = Endpoint(host, int(port))
        self._random = Random(seed)
        self._speaker = Speaker(self._random)
        self.said = self.closed = 0

    async def run(self, count: int, at_once: int = 8) -> None:
        async def one_after_the_other() -> None:
            while self.said < count:
                await self._connection()

        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(one_after_the_other())

    async def _connection(self) -> None:
        role = self._random.choice(ROLES)
        peer = await Peer.at(self._endpoint)
        try:
            await self._greet(peer, role)
            frames = [self._speaker.frame(role) for _ in range(self._random.randrange(1, 60))]
            self.said += len(frames)
            peer.writer.write(b"".join(frames))
            if self._random.random() < 0.5:
                peer.writer.write(b"\xff" * 16)  # no frame begins like this
                await self._assert_closed(peer)
        except (ConnectionResetError, BrokenPipeError):
            pass  # it did not wait for all that we said
        finally:
            peer.writer.transport.abort()

    async def _greet(self, peer: Peer, role: str) -> None:
        if role == "client":
            peer.say(Hello(VERSION, "client", f"eve{self._random.randrange(5)}"))
            assert isinstance(await peer.next(), Welcome)
        elif role == "neighbour":
            nonce = self._random.randbytes(NONCE_BYTES)
            dialling, hello = dial(NEIGHBOUR, "b1", SECRET.encode(), nonce)
            peer.writer.write(control_frame(hello))
            welcome = await peer.next()
            assert isinstance(welcome, Welcome)
            peer.say(dialling.welcome(welcome))

    async def _assert_closed(self, peer: Peer) -> None:
        """What comes last is the reason."""
        last = None
        async with asyncio.timeout(GREETED_S_MAX):
            try:
                while (item := await peer.next()) is not None:
                    last = item
            except BrokenFrame as error:
                raise AssertionError("a broker sends frames") from error
        assert isinstance(last, Bye), last
        assert last.reason
        self.closed += 1


async def attacked(folder: Path, count: int, seed: int, *, progress: bool = False) -> None:
    cluster = local_cluster(1, "line", data=folder, settings=SETTINGS)
    async with cluster, palio.connect(cluster.url("b1"), name="ann") as ann:
        process, began = cluster.process_id("b1"), time.monotonic()
        attack = Attack(cluster, seed)
        got: list[object] = []

        async def listen() -> None:
            async for note in ann.subscribe("good > 0", durable="good"):
                got.append(note.attributes["good"])
                await note.ack()

        listener = asyncio.create_task(listen())
        sizes = []
        steps = 20
        for step in range(1, steps + 1):
            await attack.run(count * step // steps)
            await ann.publish({"good": step})
            sizes.append(resident_bytes(process))
            if progress:
                print(
                    f"{time.monotonic() - began:6.0f} s {attack.said:>10,} frames, "
                    f"{sizes[-1] >> 20} MiB", file=sys.stderr, flush=True,
                )  # fmt: skip
        async with asyncio.timeout(30):
            while len(got) < steps:
                await asyncio.sleep(0.05)
        listener.cancel()
        assert got == list(range(1, steps + 1))
        assert attack.closed > count / 200
        assert cluster.running == ["b1"]
        assert cluster.process_id("b1") == process
        grown = max(sizes[-3:]) - max(sizes[5:8])
        assert grown < 40 << 20, [size >> 20 for size in sizes]


@pytest.mark.slow
@pytest.mark.xdist_group("brokers")
def test_a_broker_outlives_bad_frames(tmp_path: Path) -> None:
    asyncio.run(attacked(tmp_path, 5_000, seed=1))


@pytest.mark.fuzz
def test_a_broker_outlives_many_bad_frames(tmp_path: Path) -> None:
    """FUZZ_SOCKET_FRAMES=50000 for fewer."""
    count = int(os.environ.get("FUZZ_SOCKET_FRAMES", 500_000))
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}", file=sys.stderr)
    asyncio.run(attacked(tmp_path, count, seed, progress=True))
