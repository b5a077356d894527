"""A broker that reloads its access, and one that cannot listen."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from palio.errors import PalioError
from palio.net import config as configuration
from palio.net.broker.clock import BrokerClock
from palio.net.broker.server import serving
from palio.net.listeners.listener import Dismissal
from palio.net.storage.sqlite import SqliteStore
from palio.protocol.wire.codes import CloseCode
from palio.protocol.wire.control import VERSION, Hello, Ping, Pong, Welcome
from palio.protocol.wire.frames import FrameReader, control_frame
from tests.net.peers import Peer, configured, run, until
from tests.net.stand_in import Cores, core_calls

pytestmark = pytest.mark.usefixtures("loop")


def test_grants_are_read_again(
    tmp_path: Path, cores: Cores, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        config = configured(tmp_path)
        async with serving(config, cores) as server:
            await server.reload()
            assert core_calls(cores.last, "reload_access")[-1] == ("reload_access", ("anonymous",))
            hash = "ab" * 32
            config.path.write_text(
                config.path.read_text() + f'[identities.ann]\ntoken_sha256 = "{hash}"\n'
            )
            await server.reload()
            assert core_calls(cores.last, "reload_access")[-1] == ("reload_access", ("ann",))
            config.path.write_text(config.path.read_text() + "[limits]\nconnections = 3\n")
            with caplog.at_level(logging.WARNING):
                await server.reload()
            assert "these changes wait for a restart" in caplog.text
            before = len(core_calls(cores.last, "reload_access"))
            config.path.write_text("nonsense")
            with caplog.at_level(logging.ERROR):
                await server.reload()
            assert "the old one stays" in caplog.text
            assert len(core_calls(cores.last, "reload_access")) == before
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


def test_clients_stay_when_access_is_reloaded_after_a_sleep(tmp_path: Path) -> None:
    """The machine sleeps 10 s, SIGHUP comes, then the timer: nobody was silent but the broker."""
    seconds = [1_000]  # a clock that the test moves

    async def scene() -> None:
        clock = BrokerClock(lambda: seconds[0] * 10**9, lambda: seconds[0] * 10**9)
        async with serving(configured(tmp_path), clock=clock) as server:
            peer = await Peer.at(server.endpoint)
            peer.say(Hello(VERSION, "client", "ann"))
            assert isinstance(await peer.next(), Welcome)
            seconds[0] += 10
            await server.reload()
            # Of the sleep, a keepalive counts as silence: the timer fires, and the broker asks once.
            assert await peer.next() == Ping(0)
            assert server.host.snapshot().clients == 1
            peer.say(Ping(1))
            assert await peer.next() == Pong(1)

    run(scene())


def test_a_server_takes_any_listener(tmp_path: Path) -> None:
    """A listener of another protocol reaches the core by the same calls as the native one."""

    async def scene() -> None:
        async with serving(configured(tmp_path)) as server:
            connection = Foreign()
            link = server.host.attach(connection, "")
            server.host.received(link, control_frame(Hello(VERSION, "client", "ann")))
            await until(lambda: connection.messages)
            assert isinstance(connection.messages[0], Welcome)
            assert server.host.snapshot().clients == 1
        assert connection.dismissals == [Dismissal(CloseCode.STOPPING, "this broker stops")]

    run(scene())


class Foreign:
    """A connection without a socket: what a listener of another protocol has to bring."""

    peer, dials, is_in_process, is_congested, waiting_bytes = "nowhere", None, False, False, 0

    def __init__(self) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.messages: list[object] = []
        self.dismissals: list[Dismissal] = []

    def write(self, frames: list[bytes]) -> int:
        for frame in frames:
            self.messages += FrameReader().feed(frame)  # each is whole
        return sum(map(len, frames))

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def finish(self, wait_s: float) -> None:
        self.closed.set_result(None)

    def dismiss(self, dismissal: Dismissal, wait_s: float) -> None:
        self.dismissals.append(dismissal)
        self.finish(wait_s)

    def abort(self) -> None:
        self.finish(0)
