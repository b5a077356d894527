"""Group commit with a small core: acknowledgements, slow and full disks, checkpoints."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from palio.net.broker.server import serving
from palio.net.storage import sqlite
from palio.net.storage.sqlite import SqliteStore
from palio.net.storage.store import StoreFull
from palio.protocol.wire.codes import CloseCode
from palio.protocol.wire.control import Bye, Ping, Pong, Published
from tests.net.peers import Peer, configured, run, until
from tests.net.stand_in import Cores, core_calls

pytestmark = pytest.mark.usefixtures("loop")


def test_acknowledged_is_committed_and_groups_form(tmp_path: Path, cores: Cores) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path), cores) as server:
            peers = [await Peer.at(server.endpoint) for _ in range(5)]
            for number in range(1, 401):
                peers[number % 5].publish(number, durable=True)
                if number % 40 == 0:
                    await asyncio.sleep(0)
            for at, peer in enumerate(peers):
                numbers = [n for n in range(1, 401) if n % 5 == at]
                assert [await peer.next() for _ in numbers] == [Published(n) for n in numbers]
            commits = server.host.counts.commits.count
            assert commits == len(cores.last.commits) < 200
            assert server.host.counts.commit_keys == 400

    run(scene())
    store = SqliteStore(tmp_path / "milan")
    assert len(list(store.scan("message/"))) == 400
    store.close()


def test_nothing_is_acknowledged_before_the_commit(
    tmp_path: Path, cores: Cores, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    commit = SqliteStore.commit

    def slow(self: SqliteStore) -> None:
        gate.wait(20)
        commit(self)

    monkeypatch.setattr(SqliteStore, "commit", slow)

    async def scene() -> None:
        async with serving(configured(tmp_path), cores) as server:
            peer = await Peer.at(server.endpoint)
            for number in range(1, 4):  # the loop goes on meanwhile
                peer.publish(number, durable=True)
                peer.say(Ping(number))
                assert await peer.next() == Pong(number)
            assert len(cores.last.commits) == 1
            gate.set()
            assert [await peer.next() for _ in range(3)] == [Published(n) for n in (1, 2, 3)]
            assert [len(group) for group in cores.last.commits] == [1, 2], "the rest is one group"

    run(scene())


def test_a_slow_disk_stops_reading(
    tmp_path: Path, cores: Cores, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    commit = SqliteStore.commit

    def slow(self: SqliteStore) -> None:
        gate.wait(20)
        commit(self)

    monkeypatch.setattr(SqliteStore, "commit", slow)

    async def scene() -> None:
        config = configured(tmp_path, '[limits]\nuncommitted = "1 MiB"\n')
        async with serving(config, cores) as server:
            peer = await Peer.at(server.endpoint)
            for number in range(1, 401):
                peer.publish(number, durable=True, body=bytes(100_000))
            await until(lambda: server.host.counts.reading_pauses == 1)
            for _ in range(50):
                await asyncio.sleep(0.001)
            assert server.host.uncommitted_bytes < 4 << 20, "of the 40 MB that are sent"
            late = await Peer.at(server.endpoint)
            late.say(Ping(1))
            gate.set()
            assert [await peer.next() for _ in range(400)] == [Published(n) for n in range(1, 401)]
            assert await late.next() == Pong(1)
            told = [call for call in cores.last.calls if call[0] in ("pause", "resume")]
            assert told[:2] == [("pause",), ("resume",)]

    run(scene())


def test_a_full_disk_refuses_and_goes_on_later(
    tmp_path: Path, cores: Cores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StoreFull, "retry_s", 0.01)
    commit, is_full = SqliteStore.commit, [True]

    def full(self: SqliteStore) -> None:
        if is_full[0]:
            raise StoreFull("no room is left for broker.sqlite; free some on its disk")
        commit(self)

    async def scene() -> None:
        async with serving(configured(tmp_path), cores) as server:
            monkeypatch.setattr(SqliteStore, "commit", full)
            peer = await Peer.at(server.endpoint)
            peer.publish(1, durable=True)
            (bye,) = await peer.rest()
            assert bye == Bye(
                "no room is left for broker.sqlite; free some on its disk", CloseCode.STORE_FULL
            )
            late = await Peer.at(server.endpoint)
            late.say(Ping(1))
            assert await late.rest() == [bye], "nobody is taken, and all are told"
            assert server.host.unready_reason
            is_full[0] = False
            await until(lambda: not server.host.unready_reason)
            assert core_calls(cores.last, "committed") == [("committed", 1)]
            again = await Peer.at(server.endpoint)
            again.publish(2, durable=True)
            assert await again.next() == Published(2)
            assert server.host.counts.commit_failures > 0

    run(scene())
    store = SqliteStore(tmp_path / "milan")
    assert len(list(store.scan("message/"))) == 2, "nothing was dropped"
    store.close()


def test_the_disk_is_worked_off_now_and_then(
    tmp_path: Path, cores: Cores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_CHECKPOINT_BYTES", 100_000)
    checkpoints = []
    checkpoint = SqliteStore.checkpoint

    def counted(self: SqliteStore) -> None:
        checkpoint(self)
        checkpoints.append(1)

    monkeypatch.setattr(SqliteStore, "checkpoint", counted)

    async def scene() -> None:
        async with serving(configured(tmp_path), cores) as server:
            peer = await Peer.at(server.endpoint)
            for number in range(1, 11):
                peer.publish(number, durable=True, body=bytes(5000))
                assert await peer.next() == Published(number)

    run(scene())
    assert 1 <= len(checkpoints) <= 5, "beside commits: one at a time"
