"""Brokers that start in milliseconds: a process that has loaded what they need, and forks them.

    this process ── socket ── fork server ── fork ── b1
                                        └─── fork ── b2

The server is started with the first broker of this process and ends with it, however that ends: then
the socket is closed. It has one thread (and Arrow's allocator one that is made for forks), and neither
store nor event loop, so that what it forks is a process as if started by itself: with a session, an
environment and a log of its own.

A request is a line of JSON, and so is the answer. Only a request makes the server wait for a process
that has ended: until then its number is not given to another one, and signals reach nobody else.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from palio.errors import PalioError

_LOOK_S = 0.01
_CHUNK = 1 << 16
_FAILED = 1
_NO_THREADS = {"OPENBLAS_NUM_THREADS": "1"}
"""A process that forks should have one thread. Brokers do no linear algebra."""


class ForkedProcess:
    """A process that a fork server has made, with what `subprocess.Popen` has for it."""

    def __init__(self, server: ForkServer, pid: int, stdin: int) -> None:
        self._server, self.pid = server, pid
        self._stdin = stdin
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or minus the signal; None while it runs."""
        if self.returncode is None:
            self.returncode = self._server.exit_code(self.pid)
            if self.returncode is not None:
                os.close(self._stdin)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() >= until:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            time.sleep(_LOOK_S)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The server as its clients see it. `fork_server` gives the one of this process."""

    def __init__(self, module: str = "palio.cli.fork_server") -> None:
        """Start it and wait until it is ready: some seconds, and more if it compiles kernels."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for this process alone
                env={**os.environ, **_NO_THREADS},
            )
        self._socket, self._lock = ours, threading.Lock()
        atexit.register(self.close)
        self._ask({"ready": True}, [])

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def start(self, arguments: Sequence[str], log: Path) -> ForkedProcess:
        """Run `palio` with these arguments in a process; what it writes to stderr is added to `log`.

        Its standard input ends when this process does.
        """
        reads, writes = os.pipe()
        try:
            with log.open("ab") as output:
                request = {
                    "arguments": list(arguments), "environment": dict(os.environ), "folder": os.getcwd(),
                }  # fmt: skip
                answer = self._ask(request, [reads, output.fileno()])
        except BaseException:
            os.close(writes)
            raise
        finally:
            os.close(reads)
        return ForkedProcess(self, answer, writes)

    def exit_code(self, pid: int) -> int | None:
        """Of a process of this server; None while it runs."""
        try:
            answer: int | None = self._ask({"ended": pid}, [])
        except PalioError:  # the server was killed: nobody knows the code
            return None if _exists(pid) else _FAILED
        return answer

    def close(self) -> None:
        self._socket.close()
        self._process.wait()

    def _ask(self, request: dict[str, Any], descriptors: list[int]) -> Any:
        with self._lock:
            try:
                line = json.dumps(request).encode() + b"\n"
                sent = socket.send_fds(self._socket, [line], descriptors)
                self._socket.sendall(line[sent:])
                answer = b""
                while not answer.endswith(b"\n"):
                    more = self._socket.recv(_CHUNK)
                    if not more:
                        raise ConnectionError("it closed the connection")
                    answer += more
            except OSError as error:
                raise PalioError(
                    f"the process that starts brokers, {self._process.pid}, has ended: {error}",
                    remedy="start the brokers again",
                ) from error
        return json.loads(answer)


def fork_server() -> ForkServer:
    """The server of this process, ready. It is started when there is none."""
    server = _of_process(os.getpid())
    if not server.is_running:
        _of_process.cache_clear()
        server = _of_process(os.getpid())
    return server


@cache
def _of_process(_pid: int) -> ForkServer:  # by process: a fork of a client is no client
    return ForkServer()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# ---- the server itself


def serve(connection: socket.socket, run: Callable[[Sequence[str]], object]) -> None:
    """Answer requests until the connection ends. `run` is what a process does, with its arguments."""
    gc.collect()
    gc.freeze()  # what is loaded stays, and stays shared
    while True:
        line, descriptors = b"", []
        while not line.endswith(b"\n"):
            data, came, _, _ = socket.recv_fds(connection, _CHUNK, 2)
            if not data:
                return
            line += data
            descriptors += came
        request = json.loads(line)
        answer: int | None = None
        if "ended" in request:
            pid, status = os.waitpid(request["ended"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        elif "arguments" in request:
            answer = os.fork()
            if not answer:
                connection.close()
                _become(request, *descriptors)
                _end(run, request["arguments"])
            for descriptor in descriptors:
                os.close(descriptor)
        connection.sendall(json.dumps(answer).encode() + b"\n")


def _become(request: dict[str, Any], stdin: int, log: int) -> None:
    """Be a process of its own, no part of the server any more."""
    os.setsid()
    os.dup2(stdin, 0)
    os.dup2(log, 2)  # standard output goes nowhere already
    os.close(stdin)
    os.close(log)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])


def _end(run: Callable[[Sequence[str]], object], arguments: Sequence[str]) -> NoReturn:
    code = _FAILED
    try:
        run(arguments)
        code = 0
    except SystemExit as exit:
        code = exit.code if isinstance(exit.code, int) else _FAILED * (exit.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
