"""Backups of both kinds of stores, and of brokers that run; and the commands for them."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import palio
from palio.net.broker.server import serving
from palio.net.client import Subscription
from palio.net.cluster.ports import free_ports
from palio.net.config import Config, read
from palio.net.storage.backups import back_up, restore
from palio.net.storage.inspection import inspect
from palio.net.storage.sqlite_database import FILE
from palio.net.storage.store import StoreDamaged, StoreFailed
from tests.cli.commands import palio as command
from tests.net.peers import configured, run
from tests.net.storage.damage import execute_beside

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.fixture(params=["sqlite", "postgres"])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Config:
    text = ""
    if request.param == "postgres":
        pair = request.getfixturevalue("postgres")
        text = f'[storage]\nurl = "{pair.url()}"\nlease_s = 0.5\n'
    return configured(tmp_path, text, f"broker-{uuid.uuid4().hex[:8]}")


async def published(config: Config, first: int, count: int, backup: Path | None = None) -> None:
    async with serving(config) as server, palio.connect(f"palio://{server.endpoint}") as ann:
        await ann.subscribe("x > 0", durable="all").ready()
        await ann.publish_many([{"x": x} for x in range(first, first + count)])
        if backup is not None:
            assert back_up(config, backup) > 0


async def received(config: Config, count: int) -> list[object]:
    found: list[object] = []
    async with (
        serving(config) as server,
        palio.connect(f"palio://{server.endpoint}") as bob,
        bob.subscribe("x > 0", durable="all") as notes,
    ):
        async for note in notes:
            found.append(note.attributes["x"])
            await note.ack()
            if len(found) == count:
                break
    return found


def test_a_backup_of_a_running_broker_is_restored(config: Config, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    run(published(config, 1, 50, file))
    run(published(config, 51, 10))
    with pytest.raises(StoreFailed, match="is not empty; --force puts the backup in the place"):
        restore(config, file)
    assert len(run(received(config, 60))) == 60
    assert restore(config, file, force=True) > 0
    assert run(received(config, 50)) == list(range(1, 51)), "what came later is gone"


def test_a_client_that_runs_takes_what_follows_a_restore(tmp_path: Path) -> None:
    """The restored broker gives positions again; a client goes by the numbers of the messages, too."""
    (port,) = free_ports(0, 1)
    path, file = tmp_path / "milan.toml", tmp_path / "backup"
    path.write_text(f'[broker]\nname = "milan"\nlisten = "127.0.0.1:{port}"\n')
    config = read(path)

    async def story() -> list[object]:
        found: list[object] = []

        async def receive(subscription: Subscription, count: int) -> None:
            async for note in subscription:
                found.append(note.attributes["x"])
                await note.ack()
                if len(found) == count:
                    return

        async with AsyncExitStack() as stack:
            async with serving(config):
                url = f"palio://127.0.0.1:{port}"
                ann = await stack.enter_async_context(palio.connect(url, name="ann"))
                bob = await stack.enter_async_context(palio.connect(url, name="bob"))
                all_of_it = await stack.enter_async_context(bob.subscribe("x > 0", durable="all"))
                await ann.publish_many([{"x": x} for x in (1, 2)])
                back_up(config, file)
                await ann.publish_many([{"x": x} for x in (3, 4)])
                await receive(all_of_it, 4)
            await asyncio.to_thread(restore, config, file, force=True)
            async with serving(config):
                await ann.publish_many([{"x": x} for x in (5, 6, 7)])
                await receive(all_of_it, 7)
        return found

    assert run(story()) == [1, 2, 3, 4, 5, 6, 7]


def test_a_restore_replaces_a_damaged_database_and_keeps_it(tmp_path: Path) -> None:
    config, file = configured(tmp_path), tmp_path / "backup"
    run(published(config, 1, 5, file))
    execute_beside(config.data, "UPDATE entries SET value = x'0102' WHERE key LIKE 'store/b/%'")
    with pytest.raises(StoreDamaged, match="its checksum is wrong"):
        back_up(config, tmp_path / "another")
    assert not (tmp_path / "another").exists()
    with pytest.raises(StoreDamaged, match="--force moves it aside"):
        restore(config, file)
    assert restore(config, file, force=True) > 0
    assert run(received(config, 5)) == [1, 2, 3, 4, 5]
    (aside,) = config.data.glob("damaged-*")
    assert (aside / FILE).exists()
    assert not list(config.data.glob("restoring-*"))


def test_a_restored_database_is_what_its_marker_says(tmp_path: Path) -> None:
    config, file = configured(tmp_path), tmp_path / "backup"
    run(published(config, 1, 5, file))
    run(published(config, 6, 5))
    before = inspect(config.data).state
    restore(config, file, force=True)
    found = inspect(config.data)
    assert found.has_marker
    assert before is not None
    assert found.state is not None
    assert found.state.commits == before.commits + 1
    run(published(config, 11, 5))
    assert run(received(config, 10)) == [1, 2, 3, 4, 5, 11, 12, 13, 14, 15]


def test_a_restore_needs_the_store_for_itself(config: Config, tmp_path: Path) -> None:
    file = tmp_path / "backup"

    async def scene() -> None:
        async with serving(config):
            back_up(config, file)
            with pytest.raises(StoreFailed, match=r"another broker uses|runs \(.*\); stop it"):
                restore(config, file, force=True)

    run(scene())


def test_commands(config: Config, tmp_path: Path) -> None:
    run(published(config, 1, 5))
    file = tmp_path / "b"
    done = command("backup", "--config", config.path, "--to", file)
    assert (done.returncode, done.stderr) == (0, "")
    assert " entries, " in done.stdout
    assert command("backup", "--config", config.path, "--to", file).returncode == 2
    refused = command("restore", "--config", config.path, "--from", file)
    assert refused.returncode == 2
    assert "is not empty; --force" in refused.stderr
    done = command("restore", "--config", config.path, "--from", file, "--force")
    assert (done.returncode, done.stderr) == (0, "")
    data = file.read_bytes()
    for damaged, word in ((data[:-5], "cut off"), (data[:90] + b"?" + data[91:], "damaged"),
                          (b"", "cut off"), (b"PALIOBAC" + data[8:], "no backup")):  # fmt: skip
        file.write_bytes(damaged)
        done = command("restore", "--config", config.path, "--from", file, "--force")
        assert done.returncode == 2
        assert word in done.stderr
        assert done.stderr.startswith(f"palio: {file}: ")
        assert len(done.stderr.splitlines()) == 1
    assert run(received(config, 5)) == [1, 2, 3, 4, 5], "a file that is wrong changes nothing"


def test_a_backup_belongs_to_its_broker(tmp_path: Path) -> None:
    milan, rome = configured(tmp_path), configured(tmp_path, name="rome")
    nothing = command("backup", "--config", milan.path, "--to", tmp_path / "b")
    assert nothing.returncode == 2
    assert f"there is no store in {milan.data}" in nothing.stderr
    assert not (tmp_path / "b").exists()
    run(published(milan, 1, 5, tmp_path / "b"))
    done = command("restore", "--config", rome.path, "--from", tmp_path / "b")
    assert done.returncode == 2
    assert "a backup of the broker 'milan'" in done.stderr
