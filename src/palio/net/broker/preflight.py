"""Before a broker runs: everything that its start does up to listening, without changing anything.

`check` is `palio broker --check`: it raises what the start would raise, and gives the sentences that
the start would log as warnings. `repair` is `palio broker --repair`.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Iterator
from contextlib import closing

from palio.errors import PalioError
from palio.net import security
from palio.net.broker import descriptors
from palio.net.broker.clock import BrokerClock
from palio.net.broker.core import make_core
from palio.net.config import exposure
from palio.net.config.values import Config
from palio.net.endpoint import Endpoint
from palio.net.listeners.native import listening_refused
from palio.net.monitoring import metrics
from palio.net.storage.directory_lock import check_directory
from palio.net.storage.opening import check_database
from palio.net.storage.repair import repair_directory
from palio.net.storage.sqlite_reading import InspectedStore
from palio.protocol.durability.storage import DamagedStore, Store


def warnings(config: Config) -> Iterator[str]:
    """Sentences about what is allowed and probably a mistake, here and now."""
    yield from config.warnings()
    yield from exposure.warnings(config)
    yield from descriptors.warnings(config.settings.connections)


def check(config: Config) -> list[str]:
    """Try everything that a start needs; raises PalioError if it would fail. The warnings."""
    found = [*warnings(config)]
    if importlib.util.find_spec("uvloop") is None:
        found.append("uvloop is not installed; the broker is slower without it")
    if config.metrics is not None:
        metrics.registry()
    security.contexts(config)
    if config.storage is None:
        _check_data(config)
    else:
        place = f"url, in [storage] of {config.path}"
        check_database(config.storage.url, config.name, place)
    asyncio.run(_bind(config))
    return found


def _check_data(config: Config) -> None:
    check_directory(config.data)
    try:
        with closing(InspectedStore(config.data)) as store:
            if not store.is_new:
                _make_core(config, store)
    except DamagedStore as error:
        raise with_remedy(error, config) from None


async def _bind(config: Config) -> None:
    await _probe(config.listen, f"listen, in [broker] of {config.path}")
    if config.metrics is not None:
        await _probe(config.metrics, f"listen, in [metrics] of {config.path}")


async def _probe(endpoint: Endpoint, setting: str) -> None:
    """Take the address and give it back, without listening."""
    try:
        server = await asyncio.get_running_loop().create_server(
            asyncio.Protocol, endpoint.host, endpoint.port, start_serving=False
        )
    except OSError as error:
        raise listening_refused(endpoint, error, setting) from None
    server.close()


def repair(config: Config) -> list[str]:
    """Save what can be read of damaged data; what was lost and saved, as sentences."""
    if config.storage is not None:
        raise PalioError(
            "--repair is for data in SQLite, and this broker's is in PostgreSQL",
            remedy="restore a backup: `palio restore --force`",
        )
    return repair_directory(config.data, config.name, lambda store: _make_core(config, store))


def with_remedy(error: DamagedStore, config: Config) -> DamagedStore:
    """The same error with the place and what to do about it."""
    if config.storage is not None:
        place = error.path or f"the store of {config.name}"
        return error.at(path=place, remedy="restore a backup: `palio restore --force`")
    return error.at(
        path=error.path or config.data,
        remedy=f"restore a backup, or save what can be read (or start new) with "
        f"`palio broker --config {config.path} --repair`",
    )


def _make_core(config: Config, store: Store) -> None:
    make_core(config, store, BrokerClock().now_us())
