"""Damage of every kind: a broker starts and delivers everything, or says what is damaged; a repair
saves what can be read, and the broker delivers that."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from palio.errors import PalioError
from palio.net.broker import preflight
from palio.net.config import Config
from palio.net.storage.marker import FILE as MARKER
from palio.net.storage.sqlite import SqliteStore
from palio.net.storage.sqlite_database import FILE
from tests.net.peers import run
from tests.net.storage.broker_data import (
    COUNT,
    LAST,
    BrokerData,
    Refused,
    carried,
    copied,
    make_data,
    started,
)
from tests.net.storage.damage import LOG, execute, overwrite

ALL = [*range(1, COUNT + 1), LAST]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> BrokerData:
    return make_data(tmp_path_factory.mktemp("data"))


def assert_refused(config: Config) -> str:
    """It does not start; the sentence names the file and the remedy."""
    found = started(config)
    assert isinstance(found, Refused), found
    assert str(config.data) in found.sentence
    assert f"palio broker --config {config.path} --repair" in found.sentence
    assert "\n" not in found.sentence
    return found.sentence


def test_sound_data_is_delivered_and_not_repaired(data: BrokerData, tmp_path: Path) -> None:
    for source in (data.stopped, data.killed):
        config = copied(source, tmp_path / source.name)
        assert preflight.repair(config) == [
            f"{config.data / FILE}: nothing is damaged; nothing was changed"
        ]
        assert started(config) == ALL


def test_a_lost_segment(data: BrokerData, tmp_path: Path) -> None:
    config = copied(data.stopped, tmp_path / "a")
    key = f"store/b/{17:016x}"
    execute(config.data, "UPDATE entries SET value = substr(value, 1, 100) WHERE key = ?", key)
    assert f"the value of '{key}' is damaged" in assert_refused(config)
    lines = preflight.repair(config)
    assert "lost: the journal from position 17 to 17 (some of it may have been delivered)" in lines
    assert "lost: 1 message of the queue anonymous/all" in lines
    assert f"saved: {COUNT - 1} messages of the queue anonymous/all" in lines
    assert f"saved: {COUNT // 2} messages of the stream to rome" in lines
    assert started(config) == [x for x in ALL if x != 17]
    assert preflight.repair(config)[0].endswith("nothing was changed")


def test_a_lost_record(data: BrokerData, tmp_path: Path) -> None:
    config = copied(data.stopped, tmp_path / "a")
    key = f"store/r/{20:016x}"
    execute(config.data, "DELETE FROM entries WHERE key = ?", key)
    assert "rows are missing" in assert_refused(config)
    lines = preflight.repair(config)
    assert "lost: 1 message of the queue anonymous/all" in lines
    found = started(config)
    assert len(found) == COUNT
    assert set(found) < set(ALL)


def test_a_lost_subscription(data: BrokerData, tmp_path: Path) -> None:
    config = copied(data.stopped, tmp_path / "a")
    execute(
        config.data, "UPDATE entries SET value = x'01' WHERE key = 'store/k/5:milan:anonymous/all'"
    )
    assert_refused(config)
    lines = preflight.repair(config)
    told = "lost: the durable subscription anonymous/all at milan, with all that waited for it"
    assert told in lines
    assert started(config) == [LAST]


def test_a_lost_publisher(data: BrokerData, tmp_path: Path) -> None:
    config = copied(data.stopped, tmp_path / "a")
    execute(config.data, "UPDATE entries SET value = x'01' WHERE key LIKE 'store/p/%'")
    assert_refused(config)
    lines = preflight.repair(config)
    assert any(line.startswith("lost: the last number of publisher anonymous/") for line in lines)
    assert started(config) == ALL


def test_a_stream_goes_on_under_new_numbers(data: BrokerData, tmp_path: Path) -> None:
    """What waits for another broker reaches it, although messages before it are lost."""
    config = copied(data.stopped, tmp_path / "a")
    lost = f"store/b/{COUNT - 1:016x}"
    execute(config.data, "UPDATE entries SET value = x'00' WHERE key = ?", lost)
    lines = preflight.repair(config)
    assert "lost: 1 message of the stream to rome" in lines
    rome = copied(data.neighbour, tmp_path / "b", "rome")
    expected = [*range(COUNT // 2 + 1, COUNT - 1), COUNT]
    assert run(carried(config, rome, len(expected))) == expected


def test_a_lost_log(data: BrokerData, tmp_path: Path) -> None:
    config = copied(data.killed, tmp_path / "a")
    (config.data / LOG).unlink()
    assert "commits are missing" in assert_refused(config)
    lines = preflight.repair(config)
    assert any(line.startswith("lost: the last ") for line in lines)
    found = started(config)
    assert isinstance(found, list)


def test_a_page_that_cannot_be_read(data: BrokerData, tmp_path: Path) -> None:
    config = copied(data.stopped, tmp_path / "a")
    path = config.data / FILE
    pages = path.stat().st_size // 16384
    saved = []
    for page in range(3, pages):
        shutil.copy(data.stopped / "milan" / FILE, path)
        shutil.copy(data.stopped / "milan" / MARKER, config.data / MARKER)
        overwrite(path, page * 16384, os.urandom(16384))
        assert_refused(config)
        lines = preflight.repair(config)
        found = started(config)
        assert isinstance(found, list), lines
        assert set(found) <= set(ALL)
        saved.append(len(found))
    assert max(saved) > COUNT - 10, "a page holds about seven messages"
    assert sorted(saved)[len(saved) // 2] > COUNT / 2, "most pages hold few messages"


@pytest.mark.parametrize("bytes", [1, 100, 4096, 16384])
def test_a_damaged_first_page(data: BrokerData, tmp_path: Path, bytes: int) -> None:
    config = copied(data.stopped, tmp_path / "stopped")
    overwrite(config.data / FILE, 0, b"\xff" * bytes)
    assert_refused(config)
    assert f"saved: {COUNT} messages of the queue anonymous/all" in preflight.repair(config)
    assert started(config) == ALL
    config = copied(data.killed, tmp_path / "killed")
    overwrite(config.data / FILE, 0, b"\xff" * bytes)
    assert started(config) == ALL, "the log has this page"


def test_a_lost_database_whose_log_is_there(data: BrokerData, tmp_path: Path) -> None:
    config = copied(data.killed, tmp_path / "a")
    (config.data / FILE).unlink()
    assert_refused(config)
    assert f"saved: {COUNT} messages of the queue anonymous/all" in preflight.repair(config)
    assert started(config) == ALL


def test_nothing_is_deleted(data: BrokerData, tmp_path: Path) -> None:
    config = copied(data.killed, tmp_path / "a")
    overwrite(config.data / LOG, 200_000, b"\x55" * 4)
    before = {path.read_bytes() for path in config.data.iterdir() if path.suffix != ".lock"}
    *_, last = preflight.repair(config)
    (aside,) = config.data.glob("damaged-*")
    assert str(aside) in last
    after = {path.read_bytes() for path in aside.iterdir()}
    assert before - after <= {(config.data / "broker.lock").read_bytes()} | {
        one for one in before if len(one) == 32768
    }, "but the index of the log, which is made anew"
    assert not list(config.data.glob("repairing-*"))


def test_a_running_broker_is_not_repaired(data: BrokerData, tmp_path: Path) -> None:
    config = copied(data.stopped, tmp_path / "a")
    store = SqliteStore(config.data)
    with pytest.raises(PalioError, match="another broker uses"):
        preflight.repair(config)
    store.close()


# ---- at random


def flip(folder: Path, dice: random.Random) -> str:
    path = folder / dice.choice([FILE, FILE, LOG, MARKER])
    if not path.exists() or not path.stat().st_size:
        path = folder / FILE
    content = bytearray(path.read_bytes())
    bits = dice.choice([1, 5, 50])
    for _ in range(bits):
        at = dice.randrange(8 * len(content))
        content[at // 8] ^= 1 << at % 8
    path.write_bytes(content)
    return f"{bits} bits of {path.name}"


def cut(folder: Path, dice: random.Random) -> str:
    path = dice.choice([folder / name for name in (FILE, LOG, MARKER) if (folder / name).exists()])
    size = dice.randrange(path.stat().st_size + 1)
    os.truncate(path, size)
    return f"{path.name} after {size} bytes"


def erase(folder: Path, dice: random.Random) -> str:
    path = folder / FILE
    at = dice.randrange(path.stat().st_size)
    overwrite(path, at, bytes(min(dice.choice([16, 512, 4096]), path.stat().st_size - at)))
    return f"zeros at {at}"


def lose(folder: Path, dice: random.Random) -> str:
    path = dice.choice([folder / name for name in (FILE, LOG, MARKER) if (folder / name).exists()])
    path.unlink()
    return f"{path.name} is lost"


def delete_rows(folder: Path, dice: random.Random) -> str:
    count = dice.choice([1, 3, 30])
    execute(
        folder,
        "DELETE FROM entries WHERE key IN (SELECT key FROM entries ORDER BY hex(key) LIMIT ? "
        "OFFSET ?)",
        count,
        dice.randrange(180),
    )
    return f"{count} rows"


def cut_values(folder: Path, dice: random.Random) -> str:
    at, length = dice.randrange(180), dice.randrange(6)
    execute(
        folder,
        "UPDATE entries SET value = substr(value, 1, length(value) - ?) WHERE key IN "
        "(SELECT key FROM entries ORDER BY key LIMIT 2 OFFSET ?)",
        length,
        at,
    )
    return f"{length} bytes of 2 values"


DAMAGES: list[Callable[[Path, random.Random], str]] = [
    flip, flip, flip, cut, erase, lose, delete_rows, cut_values,
]  # fmt: skip


def damage_and_repair(seed: int, data: BrokerData, folder: Path) -> None:
    dice = random.Random(seed)
    source = dice.choice([data.stopped, data.killed])
    config = copied(source, folder)
    what = f"seed {seed}, {source.name}: {dice.choice(DAMAGES)(config.data, dice)}"
    found = started(config)
    if isinstance(found, list):
        assert found == ALL, what
        return
    assert "\n" not in found.sentence, what
    assert str(config.data) in found.sentence, what
    assert "--repair" in found.sentence, what
    lines = preflight.repair(config)
    saved = started(config)
    assert isinstance(saved, list), (what, lines, saved)
    assert saved[-1] == LAST, (what, lines, saved)
    assert set(saved) <= set(ALL), what
    shutil.rmtree(folder)


def test_damage_at_random(data: BrokerData, tmp_path: Path) -> None:
    for seed in range(40):
        damage_and_repair(seed, data, tmp_path / str(seed))


@pytest.mark.fuzz
def test_damage_at_random_for_longer(data: BrokerData, tmp_path: Path) -> None:
    first = int(os.environ.get("DAMAGE_SEED", "1000"))
    for seed in range(first, first + 3000):
        damage_and_repair(seed, data, tmp_path / str(seed))
