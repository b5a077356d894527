"""Processes on loopback: brokers, Mosquitto and others, and connections to them."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from palio.errors import MissingSoftware, PalioError
from palio.lab.bench.loopback.load import WINDOW

_START_S = 60.0


def mosquitto_program() -> str | None:
    """Where Mosquitto is installed, if it is."""
    return shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")


@contextmanager
def broker_process(
    port: int | None = None,
    neighbour: int | None = None,
    storage: str | None = None,
    http: int | None = None,
    mqtt: int | None = None,
) -> Iterator[int]:
    """A broker, named by its port; with a neighbour at another one, with a database as its store, with
    listeners for HTTP and MQTT at these ports."""
    port = port or free_port()
    settings = (
        f'[broker]\nname = "at-{port}"\nlisten = "127.0.0.1:{port}"\ndata = "data"\n'
        'secret = "only for this benchmark, on loopback"\n'
        '[times]\nkeepalive = "10 min"\n'  # the load says no Ping
        f"[limits]\nwaiting = {2 * WINDOW}\n"
    )
    if http is not None:
        settings += f'[http]\nlisten = "127.0.0.1:{http}"\nreceive = "10 min"\nidle = "10 min"\n'
    if mqtt is not None:
        settings += f'[mqtt]\nlisten = "127.0.0.1:{mqtt}"\nreceive_maximum = 65535\n'
    if storage is not None:
        settings += f'[storage]\nurl = "{storage}"\n'
    if neighbour is not None:
        settings += f'[neighbours."at-{neighbour}"]\naddress = "127.0.0.1:{neighbour}"\n'
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory, "broker.toml")
        config.write_text(settings)
        command = [sys.executable, "-m", "palio.cli", "broker", "--config", str(config)]
        with process(command):
            yield port


@contextmanager
def mosquitto_process() -> Iterator[int]:
    """Mosquitto, without bounds that would drop messages."""
    program, port = mosquitto_program(), free_port()
    if program is None:
        raise MissingSoftware("mosquitto is not installed")
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory, "mosquitto.conf")
        config.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n"
            "max_inflight_messages 0\n"
        )
        with process([program, "-c", str(config)]):
            yield port


@contextmanager
def process(command: list[str]) -> Iterator[None]:
    """A process that ends with the block; an error in the block tells what the process said."""
    with tempfile.TemporaryFile() as errors:
        running = subprocess.Popen(command, stdout=errors, stderr=errors)
        try:
            yield
        except (OSError, PalioError) as error:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()
            raise PalioError(f"{error}; the process said: {said or 'nothing'}") from None
        finally:
            running.terminate()
            running.wait()


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    """A connection, as soon as somebody listens."""
    until = time.monotonic() + _START_S
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port))
            break
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise PalioError(f"nobody listens at port {port} after {_START_S:g} s") from None
            time.sleep(0.05)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with closing(connection):
        yield connection


def free_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
