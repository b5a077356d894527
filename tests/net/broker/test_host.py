"""The host of a broker with a small core: frames, turns, congestion, failures, stops."""

from __future__ import annotations

import logging
import struct
from pathlib import Path

import pytest

from palio.errors import PalioError
from palio.net.broker import connections
from palio.net.broker.clock import BrokerClock
from palio.net.broker.server import Server, serving
from palio.net.listeners.native_connection import NativeConnection
from palio.net.storage.sqlite import SqliteStore
from palio.net.storage.store import StoreFailed
from palio.protocol.broker.failure import BrokerFailed
from palio.protocol.wire.codes import CloseCode
from palio.protocol.wire.control import Bye, Credit, Ping, Pong, Published
from palio.protocol.wire.frames import MessageFrame
from tests.net.peers import Peer, configured, run, until
from tests.net.stand_in import Cores, core_calls

pytestmark = pytest.mark.usefixtures("loop")


def test_frames_come_and_go_in_any_pieces(tmp_path: Path, cores: Cores) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path), cores) as server:
            assert server.endpoint.port != 0
            peer = await Peer.at(server.endpoint)
            peer.say(Ping(1), Ping(2))
            assert [await peer.next(), await peer.next()] == [Pong(1), Pong(2)]
            peer.publish(3, body=b"x" * 300_000)
            frame = await peer.next()
            assert isinstance(frame, MessageFrame)
            assert (frame.attributes, frame.body) == (b'{"x":1}', b"x" * 300_000)
            await peer.close()
            await until(lambda: core_calls(cores.last, "close"))
            assert server.host.connection_count == 0

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
            await until(lambda: server.host.connection_count == 1)

    run(scene())


def test_bugs_that_the_core_survives_are_logged(
    tmp_path: Path, cores: Cores, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path), cores) as server:
            peer = await Peer.at(server.endpoint)
            await until(lambda: server.host.connection_count == 1)
            for number in range(100):
                cores.last._output.report(f"bug {number}")
            with caplog.at_level(logging.ERROR):
                peer.say(Ping(1))
                assert await peer.next() == Pong(1)

    run(scene())
    bugs = [record for record in caplog.records if record.levelno == logging.ERROR]
    reasons = [str(record.fields["reason"]) for record in bugs]  # type: ignore[attr-defined]
    assert reasons == [f"bug {number}" for number in range(8)], "a few of a turn are enough"


def test_who_does_not_read_is_congested_and_then_closed(tmp_path: Path, cores: Cores) -> None:
    async def scene() -> None:
        text = '[limits]\nlink = "64 KiB"\nstuck = "8 MiB"\nbody = "1 MiB"\ncontrol = "1 MiB"\n'
        async with serving(configured(tmp_path, text), cores) as server:
            peer, other = await Peer.at(server.endpoint), await Peer.at(server.endpoint)
            await until(lambda: server.host.connection_count == 2)
            peer._reader._transport.pause_reading()  # type: ignore[attr-defined]
            link = core_calls(cores.last, "open")[0][1]
            asked = 0
            while not core_calls(cores.last, "congest"):
                peer.say(Credit(0, 1_000_000))
                asked += 1_000_000
                other.say(Ping(asked))
                assert await other.next() == Pong(asked)
            assert core_calls(cores.last, "congest")[0] == ("congest", link, True)
            assert server.host.connection_count == 2, "congested is not stuck"
            peer._reader._transport.resume_reading()  # type: ignore[attr-defined]
            while asked:
                assert isinstance(await peer.next(), MessageFrame)
                asked -= 1000
            await until(lambda: core_calls(cores.last, "congest")[-1] == ("congest", link, False))
            peer._reader._transport.pause_reading()  # type: ignore[attr-defined]
            while server.host.connection_count == 2:
                peer.say(Credit(0, 1_000_000))
                other.say(Ping(0))
                assert await other.next() == Pong(0)
            assert server.host.counts.closed_stuck == 1
            assert ("close", link) in cores.last.calls

    run(scene())


def test_the_core_is_woken_at_its_deadline(tmp_path: Path, cores: Cores) -> None:
    seconds = [1_000]  # a clock that the test moves

    async def scene() -> None:
        clock = BrokerClock(lambda: seconds[0] * 10**9, lambda: seconds[0] * 10**9)
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
        assert await idle.rest() == [Bye("this broker stops", CloseCode.STOPPING)]
        return list(await peer.rest())

    items = run(scene())
    assert items.pop() == Bye("this broker stops", CloseCode.STOPPING)
    store = SqliteStore(tmp_path / "milan")
    stored = [int(key.rpartition("/")[2]) for key, _ in store.scan("message/")]
    store.close()
    assert items == [Published(number) for number in stored]


FAULTS = {
    "disk": "the disk fails",
    "core": "a bug",
    "damage": "cannot go on and stops: segment 1 is damaged",
    "damaged disk": "broker.sqlite cannot be used",
}


@pytest.mark.parametrize("fault", FAULTS)
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
            elif fault == "core":
                cores.last.fault = KeyError("secret of the core")
            else:
                cores.last.fault = BrokerFailed("segment 1 is damaged")
                if fault == "damaged disk":
                    cores.last.fault.__cause__ = StoreFailed("broker.sqlite cannot be used")
            peer.publish(1, durable=True)
            (bye,) = await peer.rest()
            assert bye == Bye("this broker failed; restart it to continue", CloseCode.FAILED)
            with pytest.raises(PalioError, match=FAULTS[fault]):
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


def test_a_failure_while_effects_are_carried_out_ends_the_broker(
    tmp_path: Path, cores: Cores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The effects after it are lost, and a commit among them would never be answered."""

    def broken(self: NativeConnection, frames: list[bytes]) -> int:
        monkeypatch.undo()
        raise RuntimeError("the handler is closed")

    async def scene() -> None:
        async with serving(configured(tmp_path), cores) as server:
            peer = await Peer.at(server.endpoint)
            monkeypatch.setattr(NativeConnection, "write", broken)
            peer.say(Ping(1))
            await peer.rest()
            with pytest.raises(PalioError, match="met a bug and stops: RuntimeError"):
                await server.host.finished

    run(scene())


def test_much_that_waits_on_all_connections_ends_those_on_which_most_waits(
    tmp_path: Path, cores: Cores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_CONGESTED_S", 0.05)
    monkeypatch.setattr(connections, "_LOOK_S", 0.0)
    text = '[limits]\nlink = "64 KiB"\nstuck = "16 MiB"\nunsent = "16 MiB"\n'
    text += 'body = "1 MiB"\ncontrol = "1 MiB"\n'

    async def scene() -> None:
        async with serving(configured(tmp_path, text), cores) as server:
            peers = [await Peer.at(server.endpoint) for _ in range(4)]
            *slow, other = peers
            for peer in slow:
                peer._reader._transport.pause_reading()  # type: ignore[attr-defined]
                peer.say(Credit(0, 12_000_000))
            counts = server.host.counts
            while not counts.closed_unsent:
                other.say(Ping(0))
                assert await other.next() == Pong(0)
            await until(lambda: server.host.connection_count == 4 - counts.closed_unsent)
            assert counts.closed_stuck == 0
            assert len(core_calls(cores.last, "close")) == counts.closed_unsent
            other.say(Ping(1))
            assert await other.next() == Pong(1)

    run(scene())
