"""A connection of the broker that is gone before anybody said so."""

from __future__ import annotations

import asyncio
import errno
from typing import Any, cast

from palio.net.broker_connection import BrokerConnection
from palio.net.host import Host
from tests.net.peers import run


class Gone:
    """A transport whose socket the other end has reset."""

    def __init__(self) -> None:
        self.is_aborted = False

    def is_closing(self) -> bool:
        return False

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    def abort(self) -> None:
        self.is_aborted = True

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Anyone:
    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: 1


def test_finishing_a_connection_that_is_gone_raises_nothing() -> None:
    async def scene() -> None:
        connection = BrokerConnection(cast(Host, Anyone()))
        gone = Gone()
        connection.connection_made(cast(asyncio.Transport, gone))
        connection.finish(0.01)
        assert gone.is_aborted

    run(scene())
