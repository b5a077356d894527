"""A connection of the broker that is gone before anybody said so."""

from __future__ import annotations

import errno
from unittest.mock import MagicMock

from palio.net.listeners import native_connection
from palio.net.listeners.native_connection import NativeConnection
from tests.net.peers import run


def test_finishing_a_connection_that_is_gone_raises_nothing() -> None:
    async def scene() -> None:
        connection, transport = NativeConnection(MagicMock(), 1 << 20), MagicMock()
        transport.write_eof.side_effect = OSError(errno.ENOTCONN, "not connected")
        connection.connection_made(transport)
        connection.finish(0.01)
        transport.abort.assert_called()

    run(scene())


def test_a_large_piece_is_written_as_it_is() -> None:
    small, large = b"x" * 100, b"y" * 20_000
    assert native_connection._joined([small, small, large, small, large, large]) == [
        small + small, large, small, large, large,
    ]  # fmt: skip
    assert native_connection._joined([small, small]) == [small + small]
