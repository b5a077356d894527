"""What the commands of clients share: how they reach a broker, and how they end.

Ctrl-C and SIGTERM are the usual end of a command that waits for others: it leaves in good order,
with exit code 0. One that had something to do ends with 130.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palio.errors import PalioError

if TYPE_CHECKING:
    from palio.net.client import Client

Url = Annotated[str, typer.Option(envvar="PALIO_URL", help="The broker; palios:// with TLS.")]
Token = Annotated[
    str | None,
    typer.Option(
        envvar="PALIO_TOKEN", help="Who you are; better in the variable.", show_envvar=True
    ),
]
Authority = Annotated[
    Path | None, typer.Option(envvar="PALIO_AUTHORITY", help="With TLS: whom to trust, a PEM file.")
]
Certificate = Annotated[Path | None, typer.Option(help="With TLS: your own certificate, PEM.")]
Key = Annotated[Path | None, typer.Option(help="Its key, PEM.")]
Wait = Annotated[float, typer.Option(help="Seconds to keep trying when no broker answers.")]

URL = "palio://127.0.0.1:7400"


@dataclass(frozen=True, slots=True)
class Way:
    """How a broker is reached."""

    url: str
    token: str | None
    authority: Path | None
    certificate: Path | None
    key: Path | None
    wait: float

    def client(self, name: str | None = None) -> Client:
        from palio.net.client import connect

        if (self.certificate is None) != (self.key is None):
            raise PalioError("--certificate and --key belong together: give both, or none")
        pair = (
            None
            if self.certificate is None or self.key is None
            else (str(self.certificate), str(self.key))
        )
        return connect(
            self.url,
            token=self.token,
            name=name,
            tls=self.authority,
            certificate=pair,
            wait=self.wait,
        )


def say(text: str) -> None:
    """A line for people, beside the results."""
    print(text, file=sys.stderr, flush=True)


INTERRUPTED = 130


def run(work: Coroutine[Any, Any, None], interrupted: int = 0) -> None:
    """Run it until it ends, or a signal ends it: then the exit code is `interrupted`."""
    logging.basicConfig(format="palio: %(message)s", level=logging.WARNING, stream=sys.stderr)
    try:
        asyncio.run(_until_signal(work))
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(interrupted) from None


async def _until_signal(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    await task
