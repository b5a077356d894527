"""`palio.blocking.connect`: makes a blocking client and connects it.

A client that cannot connect leaves no thread behind.
"""

from __future__ import annotations

from palio.net.blocking.client import BlockingClient
from palio.net.blocking.loop_thread import LoopThread
from palio.net.client import connecting
from palio.net.client.address import Trust
from palio.protocol.client.session import SessionSettings


def connect(
    url: str = "palio://127.0.0.1:7400",
    *,
    token: str | None = None,
    name: str | None = None,
    tls: Trust = None,
    certificate: tuple[str, str] | None = None,
    wait: float = 0.0,
    max_wait: float = 60.0,
    settings: SessionSettings | None = None,
    first: int | None = None,
) -> BlockingClient:
    """An open client of the broker at `url`; the arguments are those of `palio.connect`."""
    client = connecting.connect(
        url,
        token=token,
        name=name,
        tls=tls,
        certificate=certificate,
        wait=wait,
        max_wait=max_wait,
        settings=settings,
        first=first,
    )
    loop = LoopThread()
    try:
        loop.call(client.open())
    except BaseException:
        loop.stop()
        raise
    return BlockingClient(client, loop)
