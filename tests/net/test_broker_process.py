"""`palio broker` as a process, and the whole broker within one: clients, signals, kills, sentences."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import palio
from palio.net.broker.server import serving
from palio.net.client import Client
from palio.net.cluster.fork_server import ForkedProcess, fork_server
from tests.cli.commands import palio as here
from tests.cli.commands import process as command
from tests.net.peers import METRICS, SECRET, asked, configured, get, run
from tests.net.storage.broker_data import make_data
from tests.net.storage.damage import execute_beside


class Process:
    """A broker of its own, forked or as the command starts it; its log is read from a file."""

    process: ForkedProcess | subprocess.Popen[bytes]

    def __init__(self, config: Path, *, is_forked: bool = True) -> None:
        self._log = config.with_suffix(f".{time.monotonic_ns()}.log")
        arguments = ["broker", "--config", str(config), "--log", "json"]
        if is_forked:
            self.process = fork_server().start(arguments, self._log)
        else:
            with self._log.open("wb") as log:
                command = [sys.executable, "-m", "palio.cli", *arguments]
                self.process = subprocess.Popen(command, stderr=log)
        self.url = f"palio://{self.wait_for('broker listens')['address']}"

    @property
    def text(self) -> str:
        return self._log.read_text()

    @property
    def lines(self) -> list[dict[str, object]]:
        return [json.loads(text) for text in self.text.splitlines() if text.endswith("}")]

    def wait_for(self, event: str) -> dict[str, object]:
        while True:
            has_ended = self.process.poll() is not None
            for line in self.lines:
                if line["event"] == event:
                    return line
            assert not has_ended, f"it ended without {event!r}: {self.text}"
            time.sleep(0.02)

    def end(self, number: int) -> int:
        os.kill(self.process.pid, number)
        return self.process.wait(30)


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    made: list[Process] = []
    yield made
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def on_any_port(folder: Path, text: str = "") -> Path:
    """A configuration whose port the system chooses at each start; `Process.url` has it."""
    path = folder / "milan.toml"
    path.write_text(f'[broker]\nname = "milan"\nlisten = "127.0.0.1:0"\n{text}')
    return path


async def first(client: Client, predicate: str, durable: str, count: int) -> list[object]:
    found: list[object] = []
    async for note in client.subscribe(predicate, durable=durable):
        found.append(note.attributes["x"])
        await note.ack()
        if len(found) == count:
            break
    return found


def test_a_kill_loses_nothing_that_was_acknowledged(
    tmp_path: Path, processes: list[Process]
) -> None:
    path = on_any_port(tmp_path)
    processes.append(Process(path))

    async def before() -> None:
        async with (
            palio.connect(processes[0].url, name="ann") as ann,
            ann.subscribe("x > 0", durable="all"),
        ):
            for x in range(1, 51):
                await ann.publish({"x": x})

    async def after() -> list[object]:
        async with palio.connect(processes[1].url, name="bob") as bob:
            return await first(bob, "x > 0", "all", 50)

    run(before())
    processes[0].end(signal.SIGKILL)
    processes.append(Process(path))
    assert run(after()) == list(range(1, 51))
    assert processes[1].end(signal.SIGTERM) == 0
    assert processes[1].lines[-1]["event"] == "broker stopped"


def test_kills_neither_lose_nor_double_dead_letters(
    tmp_path: Path, processes: list[Process]
) -> None:
    """Every message ends acknowledged, in its queue, or as one dead letter; a message that the crash gives
    back may be acknowledged or die once more, but is no two dead letters."""
    path = on_any_port(tmp_path)
    handled: set[int] = set()
    dead: list[int] = []

    async def consume(url: str, kill: bool) -> None:
        async with palio.connect(url, name="bob", max_wait=0.1) as bob:
            async for note in bob.subscribe("x > 0", durable="work", deliveries_max=2):
                if note.attributes["x"] % 3 == 0:
                    await note.reject("a third")
                elif note.attributes["x"] % 3 == 1:
                    await note.nack()
                else:
                    handled.add(note.attributes["x"])
                    await note.ack()
                if kill and note.attributes["x"] % 40 == 0:
                    processes[-1].process.kill()
                    return

    async def before() -> None:
        async with palio.connect(processes[0].url, name="ann") as ann:
            await ann.subscribe("dead_letter = 'work'", durable="dead").ready()
            await ann.subscribe("x > 0", durable="work", deliveries_max=2).ready()
            await ann.publish_many({"x": x} for x in range(1, 121))

    async def after() -> None:
        async with palio.connect(processes[-1].url, name="bob") as bob:
            consuming = asyncio.create_task(consume(processes[-1].url, kill=False))
            async for note in bob.subscribe("dead_letter = 'work'", durable="dead"):
                dead.append(note.attributes["original.x"])
                await note.ack()
                if len(set(dead)) == 80:
                    break
            await asyncio.sleep(0.5)
            consuming.cancel()

    processes.append(Process(path))
    run(before())
    for _ in range(2):
        with contextlib.suppress(palio.errors.NetworkError):
            run(consume(processes[-1].url, kill=True))
        processes[-1].process.wait(30)
        processes.append(Process(path))
    run(after())
    assert sorted(dead) == [x for x in range(1, 121) if x % 3 != 2]
    assert handled == {x for x in range(1, 121) if x % 3 == 2}


def test_hangup_reads_grants_again(tmp_path: Path, processes: list[Process]) -> None:
    hashed = hashlib.sha256(b"the token of ann").hexdigest()
    grant = f'[identities.ann]\ntoken_sha256 = "{hashed}"\npublish = "x < 5"\n'
    path = on_any_port(tmp_path, grant)
    processes.append(Process(path, is_forked=False))
    broker = processes[0]

    async def scene() -> None:
        async with palio.connect(broker.url, token="the token of ann") as ann:
            await ann.publish({"x": 4})
            with pytest.raises(palio.PalioError, match="may not publish"):
                await ann.publish({"x": 5})
            path.write_text(path.read_text().replace("x < 5", "x < 6"))
            os.kill(broker.process.pid, signal.SIGHUP)
            await asyncio.to_thread(broker.wait_for, "identities and grants reloaded")
            await ann.publish({"x": 5})

    run(scene())
    assert broker.end(signal.SIGINT) == 0
    assert "the token of ann" not in json.dumps(broker.lines)
    assert hashed not in json.dumps(broker.lines)


def test_two_brokers_that_both_dial_are_linked(tmp_path: Path) -> None:
    times = '[times]\nredial = "5 ms"\nredial_max = "50 ms"\n'

    async def scene() -> None:
        rome_config = configured(tmp_path, f"[neighbours.milan]\n{SECRET}{times}", "rome")
        milan_config = configured(tmp_path, f"[neighbours.rome]\n{SECRET}{times}{METRICS}")
        async with (
            serving(rome_config) as rome,
            serving(milan_config) as milan,
        ):
            rome.dial("milan", milan.endpoint)
            milan.dial("rome", rome.endpoint)
            async with (
                palio.connect(f"palio://{rome.endpoint}", name="ann") as ann,
                palio.connect(f"palio://{milan.endpoint}", name="bob") as bob,
            ):
                async with ann.subscribe("x > 2", durable="all"):
                    for x in range(8):
                        await bob.publish({"x": x})
                assert await first(ann, "x > 2", "all", 5) == [3, 4, 5, 6, 7]
            body = (await asked(milan.metrics_endpoint, get("/metrics")))[2].decode()
            assert 'palio_neighbours{broker="milan"} 1.0' in body
            assert 'palio_durable_published_total{broker="milan"} 8.0' in body

    run(scene())


def test_init_and_check(tmp_path: Path) -> None:
    done = here("broker", "--init")
    assert done.returncode == 0
    path = tmp_path / "broker.toml"
    path.write_text(done.stdout.replace("127.0.0.1:7400", "127.0.0.1:0"))
    done = here("broker", "--config", path, "--check")
    assert (done.returncode, done.stdout) == (0, f"{path}: broker milan on 127.0.0.1:0\n")
    path.write_text('[broker]\nname = "m"\nlisten = "0.0.0.0:0"\n')
    assert "without TLS" in here("broker", "--config", path, "--check").stdout


@pytest.mark.slow
def test_sentences_and_exit_codes(tmp_path: Path) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    path = tmp_path / "broker.toml"
    path.write_text(f'[broker]\nname = "m"\nlisten = "127.0.0.1:{taken.getsockname()[1]}"\n')
    cases = {
        (): "palio broker takes --config FILE",
        ("--config", tmp_path / "no.toml"): "no.toml cannot be read: No such file",
        ("--config", path): "another program listens there; choose another address",
        ("--config", path, "--log", "xml"): "--log is human or json, not 'xml'",
        ("--config", path, "--level", "loud"): "--level is one of debug, info",
    }
    for arguments, sentence in cases.items():
        done = command("broker", *arguments)
        assert done.returncode == 2, done.stderr
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr
    taken.close()


def test_damaged_data_is_a_sentence_and_exit_code_2(tmp_path: Path) -> None:
    """At the start, in a check, and while the broker runs; then it is repaired."""
    made = make_data(tmp_path)
    path = made.stopped / "milan.toml"
    folder = made.stopped / "milan"
    broker = Process(path)
    key = f"store/b/{30:016x}"
    execute_beside(folder, "UPDATE entries SET value = x'0102' WHERE key = ?", key)

    async def consume() -> None:
        async with palio.connect(broker.url, name="ann") as ann:
            await first(ann, "x > 0", "all", 60)

    with pytest.raises((palio.PalioError, TimeoutError)):
        run(asyncio.wait_for(consume(), 5))
    code = broker.process.wait(30)
    text = broker.text
    sentence = f"broker.sqlite: the value of '{key}' is damaged: its checksum is wrong"
    remedy = f"`palio broker --config {path} --repair`"
    assert code == 2
    assert sentence in text
    assert remedy in text
    assert "Traceback" not in text
    for arguments in ([], ["--check"]):
        done = here("broker", "--config", path, *arguments)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert remedy in done.stderr
    done = here("broker", "--config", path, "--repair")
    assert done.returncode == 0
    assert "lost: 1 message of the queue anonymous/all" in done.stdout
    assert here("broker", "--config", path, "--check").returncode == 0
