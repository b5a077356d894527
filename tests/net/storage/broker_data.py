"""The data of a broker with a queue, a stream to another broker and publishers: to be damaged."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import NamedTuple

import palio
from palio.errors import PalioError
from palio.net import config as configuration
from palio.net.broker.preflight import with_remedy
from palio.net.broker.server import serving
from palio.net.config import Config
from palio.protocol.durability.storage import DamagedStore
from tests.net.peers import SECRET, configured, run, until

COUNT = 60
LAST = 10_000
"""Published after a start: what was stored before comes before it."""
BODY = b"b" * 2000
_NEIGHBOUR = '[times]\nredial = "5 ms"\nredial_max = "50 ms"\nkeepalive = "60 s"\n'


class BrokerData(NamedTuple):
    """Directories with milan.toml and the data: of a broker that stopped, and of one that was
    killed. `COUNT` messages wait in the queue, the last half of them for another broker too."""

    stopped: Path
    killed: Path
    neighbour: Path
    """With rome.toml and the data of the other broker."""


def make_data(folder: Path) -> BrokerData:
    made = BrokerData(folder / "stopped", folder / "killed", folder / "neighbour")
    run(_fill(folder, made))
    return made


async def _fill(folder: Path, made: BrokerData) -> None:
    made.stopped.mkdir()
    made.neighbour.mkdir()
    rome_config = configured(made.neighbour, f"[neighbours.milan]\n{SECRET}{_NEIGHBOUR}", "rome")
    config = configured(made.stopped, f"[neighbours.rome]\n{SECRET}{_NEIGHBOUR}")
    async with serving(config) as milan:
        async with palio.connect(f"palio://{milan.endpoint}", name="ann") as ann:
            async with ann.subscribe("x > 0", durable="all"):
                await _publish(ann, 0, COUNT // 2)
            async with serving(rome_config) as rome:
                rome.dial("milan", milan.endpoint)
                async with (
                    palio.connect(f"palio://{rome.endpoint}", name="bob") as bob,
                    bob.subscribe("x > 0", durable="far"),
                ):
                    await until(lambda: "rome" in milan.host.snapshot().streams)
            await _publish(ann, COUNT // 2, COUNT)
        await asyncio.sleep(0.7)  # a checkpoint of the message store
        shutil.copytree(made.stopped, made.killed)


async def _publish(client: palio.Client, begin: int, end: int) -> None:
    for x in range(begin, end):
        await client.publish({"x": x + 1}, body=BODY)


def copied(source: Path, target: Path, name: str = "milan") -> Config:
    shutil.copytree(source, target)
    return configuration.read(target / f"{name}.toml")


async def carried(config: Config, rome_config: Config, count: int) -> list[object]:
    """What a client of the other broker gets, when both brokers run."""
    found: list[object] = []
    async with serving(config) as milan, serving(rome_config) as rome:
        rome.dial("milan", milan.endpoint)
        async with palio.connect(f"palio://{rome.endpoint}", name="bob") as bob:
            async for note in bob.subscribe("x > 0", durable="far"):
                found.append(note.attributes["x"])
                await note.ack()
                if len(found) == count:
                    return found
    return found


class Refused(NamedTuple):
    sentence: str


def started(config: Config) -> list[object] | Refused:
    """What a client gets after a start; or why the broker did not start or go on, as it says it."""
    try:
        return run(_delivered(config))
    except DamagedStore as error:
        return Refused(str(with_remedy(error, config)))
    except PalioError as error:
        return Refused(str(error))


async def _delivered(config: Config) -> list[object]:
    found: list[object] = []
    async with serving(config) as server:
        server.host.finished.add_done_callback(lambda _: None)
        reading = asyncio.ensure_future(_read(f"palio://{server.endpoint}", found))
        await asyncio.wait(
            [reading, asyncio.ensure_future(asyncio.wait([server.host.finished]))],
            timeout=10,
            return_when=asyncio.FIRST_COMPLETED,
        )
        reading.cancel()
        if server.host.finished.done() and (error := server.host.finished.exception()):
            raise error
    return found


async def _read(url: str, found: list[object]) -> None:
    async with (
        palio.connect(url, name="ann") as ann,
        ann.subscribe("x > 0", durable="all") as notes,
    ):
        await ann.publish({"x": LAST})
        async for note in notes:
            found.append(note.attributes["x"])
            await note.ack()
            if note.attributes["x"] == LAST:
                return
