"""Commands that wait for a network: how they run, and how they end.

Ctrl-C and SIGTERM are the usual end of a command that waits for others: it closes its connections
and exits with code 0. A command that was interrupted in its work exits with code 130.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Coroutine
from typing import Any

import typer

INTERRUPTED = 130


def run(work: Coroutine[Any, Any, None], interrupted: int = 0) -> None:
    """Run the work until it ends. When a signal ends it, the exit code is `interrupted`."""
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
