"""The broker processes of a cluster: forked (fork_server.py), stopped, killed, frozen.

Each broker watches a pipe that this process holds, and ends when the pipe does. So no broker is left
when this process is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from palio.errors import PalioError
from palio.net.cluster.fork_server import ForkedProcess, fork_server

STOP_S_MAX = 15.0
_Process: TypeAlias = subprocess.Popen[bytes] | ForkedProcess


class BrokerProcesses:
    """By the name of the broker. A process that this class ended is not in it any more."""

    def __init__(self) -> None:
        self._processes: dict[str, _Process] = {}
        self._logs: dict[str, Path] = {}

    @property
    def running(self) -> list[str]:
        """The brokers whose process exists; a frozen one too."""
        return [name for name, process in self._processes.items() if process.poll() is None]

    def start(
        self, name: str, config: Path, log: Path, variables: Mapping[str, str] | None = None
    ) -> None:
        """`variables` are added to the environment of the process, which is then not forked: some,
        such as LD_PRELOAD, are only read when a program is loaded."""
        arguments = ["broker", "--config", str(config), "--until-eof"]
        self._logs[name] = log
        if variables is None:
            self._processes[name] = fork_server().start(arguments, log)
            return
        with log.open("ab") as output:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", "palio.cli", *arguments],
                stdin=subprocess.PIPE,  # the broker ends when this process does
                stdout=subprocess.DEVNULL,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for this process alone
                env={**os.environ, **variables},
            )

    def stop(self, name: str) -> None:
        process = self._remove(name)
        process.send_signal(signal.SIGCONT)
        process.terminate()
        _wait(process, STOP_S_MAX)

    def stop_all(self) -> None:
        running = [self._processes[name] for name in self.running]
        for process in running:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        deadline = time.monotonic() + STOP_S_MAX
        for process in running:
            _wait(process, max(0.0, deadline - time.monotonic()))
        self._processes.clear()

    def kill(self, name: str) -> None:
        process = self._remove(name)
        process.kill()
        process.wait()

    def signal(self, name: str, number: signal.Signals) -> None:
        self._process(name).send_signal(number)

    def process_id(self, name: str) -> int:
        return self._process(name).pid

    def check(self) -> None:
        """Raise if a broker ended by itself."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                log = self._logs[name]
                raise PalioError(f"broker {name} ended: {_last_line(log)} ({log})")

    def _process(self, name: str) -> _Process:
        if name not in self.running:
            running = ", ".join(self.running) or "none"
            raise PalioError(f"{name} does not run; the brokers that run: {running}")
        return self._processes[name]

    def _remove(self, name: str) -> _Process:
        process = self._process(name)
        del self._processes[name]
        return process


def _wait(process: _Process, patience_s: float) -> None:
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_line(path: Path) -> str:
    lines = path.read_text("utf-8", "replace").strip().splitlines()
    return (lines or ["its log is empty"])[-1].removeprefix("palio: ")
