"""What a fork server starts is a process of its own; tests/net/cluster/test_local.py has brokers."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from palio.errors import PalioError
from palio.net.cluster.fork_server import ForkServer

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    made = ForkServer("tests.net.cluster.light_fork_server")
    yield made
    made.close()


def test_folder_environment_and_log_are_those_of_its_start(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setenv("PALIO_TEST", name)
        assert server.start(["tell"], log).wait(PATIENCE_S) == 0
    assert log.read_text().splitlines() == [
        f"{tmp_path}/one one True", f"{tmp_path}/two two True",
    ]  # fmt: skip


def test_exit_codes(server: ForkServer, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert server.start(["exit", "3"], log).wait(PATIENCE_S) == 3
    failed = server.start(["nonsense"], log)
    assert failed.wait(PATIENCE_S) == 1
    assert failed.poll() == 1
    assert "ValueError: no such test" in log.read_text()


def test_signals_reach_it(server: ForkServer, tmp_path: Path) -> None:
    first, second = (server.start(["sleep"], tmp_path / "log") for _ in range(2))
    assert first.pid != second.pid
    first.kill()
    assert first.wait(PATIENCE_S) == -signal.SIGKILL
    assert second.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(0.05)
    second.terminate()
    assert second.wait(PATIENCE_S) == -signal.SIGTERM
    second.kill()  # nobody else gets it


def test_its_standard_input_ends_with_this_process_or_sooner(
    server: ForkServer, tmp_path: Path
) -> None:
    process = server.start(["read"], tmp_path / "log")
    assert process.poll() is None
    os.close(process._stdin)
    process._stdin = os.open(os.devnull, os.O_RDONLY)
    assert process.wait(PATIENCE_S) == 0


def test_a_server_that_was_killed(tmp_path: Path) -> None:
    server = ForkServer("tests.net.cluster.light_fork_server")
    process = server.start(["sleep"], tmp_path / "log")
    os.kill(server._process.pid, signal.SIGKILL)
    server._process.wait(PATIENCE_S)
    assert not server.is_running
    assert process.poll() is None, "what it started lives on"
    with pytest.raises(PalioError, match="has ended"):
        server.start(["exit", "0"], tmp_path / "log")
    process.kill()
    assert process.wait(PATIENCE_S) == 1, "nobody knows how it ended"
    server.close()
