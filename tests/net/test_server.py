"""The host of a broker with a small core: frames, turns, group commit, pressure, stops."""

from __future__ import annotations

import asyncio
import logging
import struct
import threading
from pathlib import Path
from random import Random

import pytest

from palio.errors import PalioError
from palio.net import config as configuration
from palio.net import storage
from palio.net.clock import Clock
from palio.net.config import Config
from palio.net.server import Server, serving
from palio.net.storage import SqliteStore, StoreFailed, StoreFull
from palio.protocol.frames import Letter
from palio.protocol.store import Store
from palio.protocol.words import Bye, Credit, Ping, Pong, Published
from tests.net import peers
from tests.net.peers import LOOPS, Peer, configured, run, until
from tests.net.stand_in import StandIn


class Cores:
    """Makes cores, and remembers them."""

    def __init__(self) -> None:
        self.made: list[StandIn] = []

    def __call__(self, config: Config, store: Store, now_us: int) -> StandIn:
        self.made.append(StandIn(config, store, now_us))
        return self.made[-1]

    @property
    def last(self) -> StandIn:
        return self.made[-1]


@pytest.fixture(params=LOOPS, autouse=True)
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "loops", [request.param])


@pytest.fixture
def cores() -> Cores:
    return Cores()


def core_calls(core: StandIn, name: str) -> list[tuple[object, ...]]:
    return [call for call in core.calls if call[0] == name]


def test_frames_come_and_go_in_any_pieces(tmp_path: Path, cores: Cores) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path), cores) as server:
            assert server.endpoint.port != 0
            peer = await Peer.at(server.endpoint)
            peer.say(Ping(1), Ping(2))
            assert [await peer.next(), await peer.next()] == [Pong(1), Pong(2)]
            peer.publish(3, body=b"x" * 300_000)
            letter = await peer.next()
            assert isinstance(letter, Letter)
            assert (letter.attributes, letter.body) == (b'{"x":1}', b"x" * 300_000)
            await peer.close()
            await until(lambda: core_calls(cores.last, "close"))
            assert server.host.links == 0

    run(scene())


def test_what_a_turn_brings_is_flushed_at_once(tmp_path: Path, cores: Cores) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path), cores) as server:
            peer = await Peer.at(server.endpoint)
            peer.say(*(Ping(n) for n in range(1000)))
            for number in range(1000):
                assert await peer.next() == Pong(number)
            counts, receives = server.host.counts, core_calls(cores.last, "receive")
            assert counts.writes <= len(receives) < 20, "one write a turn, not one a frame"
            assert counts.turns <= 2 * len(receives) + 5

    run(scene())


def test_broken_frames_end_the_connection_with_a_reason(tmp_path: Path, cores: Cores) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path), cores) as server:
            good, bad = await Peer.at(server.endpoint), await Peer.at(server.endpoint)
            bad.say(Ping(1))
            bad.writer.write(struct.pack("<IB", 1 << 31, 0))
            (pong, bye) = await bad.rest()
            assert pong == Pong(1)
            assert isinstance(bye, Bye)
            assert "a frame of 2147483648 bytes" in bye.reason
            good.say(Ping(2))
            assert await good.next() == Pong(2)
            await until(lambda: server.host.links == 1)

    run(scene())


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

    run(scene())


def test_who_does_not_read_presses_and_is_closed(tmp_path: Path, cores: Cores) -> None:
    async def scene() -> None:
        text = '[limits]\nlink = "64 KiB"\nstuck = "8 MiB"\nbody = "1 MiB"\nword = "1 MiB"\n'
        async with serving(configured(tmp_path, text), cores) as server:
            peer, other = await Peer.at(server.endpoint), await Peer.at(server.endpoint)
            await until(lambda: server.host.links == 2)
            peer._reader._transport.pause_reading()  # type: ignore[attr-defined]
            link = core_calls(cores.last, "open")[0][1]
            asked = 0
            while not core_calls(cores.last, "press"):
                peer.say(Credit(0, 1_000_000))
                asked += 1_000_000
                other.say(Ping(asked))
                assert await other.next() == Pong(asked)
            assert core_calls(cores.last, "press")[0] == ("press", link, True)
            assert server.host.links == 2, "pressed is not stuck"
            peer._reader._transport.resume_reading()  # type: ignore[attr-defined]
            while asked:
                assert isinstance(await peer.next(), Letter)
                asked -= 1000
            await until(lambda: core_calls(cores.last, "press")[-1] == ("press", link, False))
            peer._reader._transport.pause_reading()  # type: ignore[attr-defined]
            while server.host.links == 2:
                peer.say(Credit(0, 1_000_000))
                other.say(Ping(0))
                assert await other.next() == Pong(0)
            assert server.host.counts.closed_stuck == 1
            assert ("close", link) in cores.last.calls

    run(scene())


def test_the_core_is_woken_at_its_deadline(tmp_path: Path, cores: Cores) -> None:
    seconds = [1_000]  # a clock that the test moves

    async def scene() -> None:
        clock = Clock(lambda: seconds[0] * 10**9, lambda: seconds[0] * 10**9)
        async with serving(configured(tmp_path), cores, clock=clock) as server:
            peer = await Peer.at(server.endpoint)
            for wakes in range(1, 4):
                seconds[0] += 2  # the stand-in checks that it is not woken early
                peer.say(Ping(wakes))
                await until(lambda wakes=wakes: len(core_calls(cores.last, "wake")) == wakes)

    run(scene())


def test_a_stop_settles_what_was_taken(tmp_path: Path, cores: Cores) -> None:
    async def scene() -> list[object]:
        async with serving(configured(tmp_path), cores) as server:
            peer = await Peer.at(server.endpoint)
            idle = await Peer.at(server.endpoint)
            for number in range(1, 21):
                peer.publish(number, durable=True)
            await until(lambda: core_calls(cores.last, "receive"))
        with pytest.raises(OSError):
            await Peer.at(server.endpoint)
        assert await idle.rest() == [Bye("this broker stops")]
        return list(await peer.rest())

    items = run(scene())
    assert items.pop() == Bye("this broker stops")
    store = SqliteStore(tmp_path / "milan")
    stored = [int(key.rpartition("/")[2]) for key, _ in store.scan("message/")]
    store.close()
    assert items == [Published(number) for number in stored]


def test_a_full_disk_refuses_and_goes_on_later(
    tmp_path: Path, cores: Cores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palio.net.host._RETRY_S", 0.01)
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
            assert bye == Bye("no room is left for broker.sqlite; free some on its disk")
            late = await Peer.at(server.endpoint)
            late.say(Ping(1))
            assert await late.rest() == [bye], "nobody is taken, and all are told"
            assert not server.host.is_taking
            is_full[0] = False
            await until(lambda: server.host.is_taking)
            assert core_calls(cores.last, "committed") == [("committed", 1)]
            again = await Peer.at(server.endpoint)
            again.publish(2, durable=True)
            assert await again.next() == Published(2)
            assert server.host.counts.commit_failures > 0

    run(scene())
    store = SqliteStore(tmp_path / "milan")
    assert len(list(store.scan("message/"))) == 2, "nothing was dropped"
    store.close()


@pytest.mark.parametrize("fault", ["disk", "core"])
def test_other_failures_end_the_broker(
    tmp_path: Path, cores: Cores, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    def broken(self: SqliteStore) -> None:
        raise StoreFailed("broker.sqlite cannot be used: the disk fails")

    async def scene() -> Server:
        async with serving(configured(tmp_path), cores) as server:
            peer = await Peer.at(server.endpoint)
            if fault == "disk":
                monkeypatch.setattr(SqliteStore, "commit", broken)
            else:
                cores.last.fault = KeyError("secret of the core")
            peer.publish(1, durable=True)
            (bye,) = await peer.rest()
            assert bye == Bye("this broker failed; it goes on after a restart")
            with pytest.raises(PalioError, match="the disk fails" if fault == "disk" else "a bug"):
                await server.host.finished
        return server

    run(scene())
    store = SqliteStore(tmp_path / "milan")
    assert list(store.scan("")) == [], "nothing that was not committed is kept"
    store.close()


def test_a_read_that_fails_ends_the_broker_too(tmp_path: Path, cores: Cores) -> None:
    """Even if the core takes the error for one of its client, and goes on."""

    async def scene() -> None:
        async with serving(configured(tmp_path), cores) as server:
            cores.last._store._reader.close()  # type: ignore[attr-defined]
            with pytest.raises(StoreFailed):
                cores.last._store.get("x")
            peer = await Peer.at(server.endpoint)
            peer.say(Ping(1))
            await peer.rest()
            with pytest.raises(StoreFailed, match="cannot be used"):
                await server.host.finished

    run(scene())


def test_too_many_connections_are_refused(tmp_path: Path, cores: Cores) -> None:
    async def scene() -> None:
        config = configured(tmp_path, "[limits]\nconnections = 2\n")
        async with serving(config, cores) as server:
            peers = [await Peer.at(server.endpoint) for _ in range(2)]
            await until(lambda: server.host.links == 2)
            (bye,) = await (await Peer.at(server.endpoint)).rest()
            assert bye == Bye("this broker has 2 connections; that is its limit")
            await peers[0].close()
            await until(lambda: server.host.links == 1)
            third = await Peer.at(server.endpoint)
            third.say(Ping(3))
            assert await third.next() == Pong(3)

    run(scene())


SECRET = 'secret = "0123456789abcdef"\n'


def test_neighbours_are_dialled_until_they_answer(tmp_path: Path) -> None:
    """Both may dial; when one goes away and comes back at another port, they find each other."""
    rome_cores, milan_cores = Cores(), Cores()
    times = '[times]\nredial = "1 ms"\nredial_max = "20 ms"\n'

    async def scene() -> None:
        rome = configured(tmp_path, f"[neighbours.milan]\n{SECRET}{times}", "rome")
        async with serving(rome, rome_cores) as there:
            text = f'[neighbours.rome]\naddress = "{there.endpoint}"\n{SECRET}{times}'
            milan = configured(tmp_path, text)
            async with serving(milan, milan_cores, random=Random(1)) as here:
                await until(lambda: rome_cores.last.is_linked("milan"))
                assert milan_cores.last.is_linked("rome")
                assert here.host.counts.dialled == 1, "no second one while the first is there"
                address = there.endpoint
                await there.stop()
                await until(lambda: here.host.counts.dial_failures > 2)
                port = f'listen = "{address}"\n'
                path = tmp_path / "rome.toml"
                path.write_text(path.read_text().replace('listen = "127.0.0.1:0"\n', port))
                async with serving(configuration.read(path), rome_cores):
                    await until(lambda: rome_cores.last.is_linked("milan"))

    run(scene())


def test_grants_are_read_again(
    tmp_path: Path, cores: Cores, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        config = configured(tmp_path)
        async with serving(config, cores) as server:
            server.reload()
            assert cores.last.calls[-1] == ("grant", ("anonymous",))
            hash = "ab" * 32
            config.path.write_text(
                config.path.read_text() + f'[identities.ann]\ntoken_sha256 = "{hash}"\n'
            )
            server.reload()
            assert core_calls(cores.last, "grant")[-1] == ("grant", ("ann",))
            config.path.write_text(config.path.read_text() + "[limits]\nconnections = 3\n")
            with caplog.at_level(logging.WARNING):
                server.reload()
            assert "these changes wait for a restart" in caplog.text
            before = len(core_calls(cores.last, "grant"))
            config.path.write_text("nonsense")
            with caplog.at_level(logging.ERROR):
                server.reload()
            assert "the old one stays" in caplog.text
            assert len(core_calls(cores.last, "grant")) == before
            assert hash not in caplog.text

    run(scene())


def test_a_busy_port_is_a_sentence(tmp_path: Path, cores: Cores) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path), cores) as server:
            path = tmp_path / "rome.toml"
            path.write_text(f'[broker]\nname = "rome"\nlisten = "{server.endpoint}"\n')
            with pytest.raises(PalioError, match="another program listens there; choose another"):
                async with serving(configuration.read(path), cores):
                    raise AssertionError("it listens")
        SqliteStore(tmp_path / "rome").close()  # and the disk is free again

    run(scene())


def test_the_disk_is_worked_off_now_and_then(
    tmp_path: Path, cores: Cores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_CHECKPOINT_BYTES", 10_000)
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
    assert 1 < len(checkpoints) <= 5, "beside commits: one at a time"
