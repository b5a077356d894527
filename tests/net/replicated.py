"""A broker and its standby as processes on one database, and clients that count what they get."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import palio
from palio.lab.bench.loopback.postgres import PostgresPair
from palio.net.cluster.fork_server import ForkedProcess, fork_server
from palio.net.cluster.ports import free_ports

PATIENCE_S = 60.0


class ReplicatedProcess:
    """A process of a broker; its log is read from a file."""

    def __init__(
        self, folder: Path, name: str, pair: PostgresPair, lease_s: float, more: str = ""
    ) -> None:
        (self.port,) = free_ports(0, 1)
        path = folder / f"{name}-{self.port}.toml"
        path.write_text(
            f'[broker]\nname = "{name}"\nlisten = "127.0.0.1:{self.port}"\n'
            f'[storage]\nurl = "{pair.url()}"\nlease_s = {lease_s}\n{more}'
        )
        self._config, self._log = path, path.with_suffix(".log")
        self.process = self._started()

    def _started(self) -> ForkedProcess:
        self._log.write_bytes(b"")
        return fork_server().start(
            ["broker", "--config", str(self._config), "--log", "json"], self._log
        )

    def restart(self) -> None:
        self.process = self._started()

    @property
    def text(self) -> str:
        return self._log.read_text()

    def has_logged(self, event: str) -> bool:
        lines = [line for line in self.text.splitlines() if line.startswith("{")]
        return any(json.loads(line)["event"] == event for line in lines if line.endswith("}"))

    @property
    def is_listening(self) -> bool:
        return self.has_logged("broker listens")

    @property
    def is_standby(self) -> bool:
        return self.has_logged("standby: another process runs this broker")

    def wait_for(self, event: str) -> None:
        wait_until(lambda: self.has_logged(event), lambda: f"{event!r} in {self.text}")

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> None:
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()


def wait_until(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)


@contextmanager
def replicated(
    folder: Path, name: str, pair: PostgresPair, lease_s: float, count: int = 2
) -> Iterator[tuple[str, list[ReplicatedProcess]]]:
    """A broker that runs, which is the first process, and its standbys; and the URL of all of them."""
    processes = [ReplicatedProcess(folder, name, pair, lease_s) for _ in range(count)]
    try:
        for one in processes:
            wait_until(lambda one=one: one.is_standby or one.is_listening, lambda one=one: one.text)  # type: ignore[misc]
        wait_until(lambda: any(one.is_listening for one in processes), lambda: processes[0].text)
        processes.sort(key=lambda one: one.is_standby)
        yield "palio://" + ",".join(f"127.0.0.1:{one.port}" for one in processes), processes
    finally:
        for one in processes:
            one.end()


async def published_and_received(
    url: str, count: int, disturb: Callable[[], None], durable: str = "all"
) -> float:
    """Publish durable messages, disturb the broker in the middle, and receive each exactly once.

    Gives the seconds from the disturbance to the first acknowledgement of a message that was
    published after it.
    """
    got: Counter[int] = Counter()
    async with (
        palio.connect(url, name="ann", max_wait=PATIENCE_S) as ann,
        palio.connect(url, name="bob", max_wait=PATIENCE_S) as bob,
        bob.subscribe("x >= 0", durable=durable) as notes,
    ):

        async def receive() -> None:
            async for note in notes:
                got[int(note.attributes["x"])] += 1  # type: ignore[call-overload]
                await note.ack()
                if len(got) == count:
                    return

        receiving = asyncio.create_task(receive())
        half = count // 200 * 100
        for start in range(0, half, 100):
            await ann.publish_many([{"x": x} for x in range(start, start + 100)])
        under_way = asyncio.create_task(ann.publish_many([{"x": half}, {"x": half + 1}]))
        await asyncio.sleep(0)
        began = time.monotonic()
        await asyncio.to_thread(disturb)
        await ann.publish({"x": half + 2})
        answered_s = time.monotonic() - began
        await under_way
        for start in range(half + 3, count, 100):
            await ann.publish_many([{"x": x} for x in range(start, min(start + 100, count))])
        async with asyncio.timeout(PATIENCE_S):
            await receiving
        await asyncio.sleep(0.3)  # for what would come twice
    assert len(got) == count, "nothing is lost"
    assert set(got.values()) == {1}, "nothing comes twice"
    return answered_s
