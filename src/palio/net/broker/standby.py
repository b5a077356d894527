"""Opening the store of a broker, and what a standby does until it has it.

A second process with the name and the database of a broker that runs is its standby. It listens and
dials nowhere, answers /healthz and /readyz, and takes over when the lease is free: at once after a
clean stop, after `lease_s` when the other process is gone.
"""

from __future__ import annotations

import asyncio
import logging

from palio.errors import PalioError
from palio.net.config.values import Config
from palio.net.monitoring import health
from palio.net.monitoring.logs import log_event
from palio.net.monitoring.web import WebServer
from palio.net.storage.opening import OpenedStore, PostgresOpening
from palio.net.storage.sqlite import SqliteStore


class StandbyEnded(PalioError):
    """A signal ended the process before it could take over."""


async def open_store(
    config: Config, end: asyncio.Event | None = None, *, is_restart: bool = False
) -> OpenedStore:
    """The store of the configuration, when it is this process's turn to use it.

    A restart waits for a database that is away. Raises StandbyEnded when `end` is set before.
    """
    if config.storage is None:
        return OpenedStore(SqliteStore(config.data))
    place = f"url, in [storage] of {config.path}"
    opening = PostgresOpening(config.storage.url, config.name, config.storage.lease_s, place)
    web: WebServer | None = None
    if config.metrics is not None:
        web = WebServer(health.standby_pages(config.name, lambda: opening.holder))
        await web.start(config.metrics)
    try:
        opened = await _opened(opening, end, is_restart)
    finally:
        if web is not None:
            await web.stop()
    if opened is None:
        log_event(logging.INFO, "standby stopped", broker=config.name)
        raise StandbyEnded(f"the standby of {config.name} was stopped")
    return opened


async def _opened(
    opening: PostgresOpening, end: asyncio.Event | None, is_restart: bool
) -> OpenedStore | None:
    waiting = asyncio.create_task(asyncio.to_thread(opening.wait, is_restart=is_restart))
    ended = asyncio.create_task((end or asyncio.Event()).wait())
    try:
        await asyncio.wait([waiting, ended], return_when=asyncio.FIRST_COMPLETED)
    except BaseException:
        opening.cancel()
        opened = await asyncio.shield(waiting)
        if opened is not None:
            await asyncio.to_thread(_give_up, opened)
        raise
    finally:
        ended.cancel()
    opening.cancel()
    return await waiting


def _give_up(opened: OpenedStore) -> None:
    opened.store.close()
    opened.release()
