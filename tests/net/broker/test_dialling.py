"""Neighbours that are dialled."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from palio.net import config as configuration
from palio.net.broker.server import serving
from palio.net.cluster.ports import free_ports
from palio.net.config import Config
from palio.net.endpoint import Endpoint
from palio.protocol.durability.storage import Store
from tests.net.peers import SECRET, configured, run, until
from tests.net.stand_in import Cores, StandIn

pytestmark = pytest.mark.usefixtures("loop")


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


def test_a_neighbour_is_dialled_at_each_of_its_addresses(tmp_path: Path) -> None:
    """As it is with a standby: one address answers, and later another one."""
    rome_cores, milan_cores = Cores(), Cores()
    times = '[times]\nredial = "1 ms"\nredial_max = "20 ms"\n'

    async def scene() -> None:
        rome = configured(tmp_path, f"[neighbours.milan]\n{SECRET}{times}", "rome")
        first, second = free_ports(0, 2)
        text = f'[neighbours.rome]\naddress = ["127.0.0.1:{first}", "127.0.0.1:{second}"]\n{SECRET}{times}'
        async with serving(configured(tmp_path, text), milan_cores, random=Random(1)):
            for port in (second, first):
                at = replace(rome, listen=Endpoint("127.0.0.1", port))
                async with serving(at, rome_cores):
                    await until(lambda: rome_cores.last.is_linked("milan"))
                await until(lambda: not milan_cores.last.is_linked("rome"))

    run(scene())


def test_a_dial_that_times_out_while_it_connects_leaves_no_link(tmp_path: Path) -> None:
    """The connection is made, and then the time is over: the loop may close it without a word."""
    rome_cores = Cores()
    opened: list[int] = []

    class SlowCore(StandIn):
        def open(self, link: int, now_us: int, **words: Any) -> None:
            opened.append(link)
            if len(opened) == 1:
                time.sleep(0.05)
            super().open(link, now_us, **words)

    def make_slow(config: Config, store: Store, now_us: int) -> SlowCore:
        return SlowCore(config, store, now_us)

    async def scene() -> None:
        rome = configured(tmp_path, f"[neighbours.milan]\n{SECRET}", "rome")
        async with serving(rome, rome_cores) as there:
            text = f'[neighbours.rome]\naddress = "{there.endpoint}"\n{SECRET}'
            times = '[times]\ndial = "20 ms"\nredial = "1 ms"\nredial_max = "5 ms"\n'
            async with serving(configured(tmp_path, text + times), make_slow) as here:
                await until(lambda: bool(opened))
                await until(lambda: len(opened) == 1 + here.host.counts.dial_failures)
                assert here.host.connection_count == 1

    run(scene())
