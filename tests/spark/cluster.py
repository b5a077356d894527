"""A Spark standalone cluster on loopback, from the installed PySpark: a master and two workers.

Every process is the leader of a group, and the group is killed at the end, also when something
fails; the executors of a worker are in its group, and the Python workers of an executor end with
it. Ports are free ones. Each worker has folders of its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark

ROOT = Path(__file__).parents[2]
HOME = Path(pyspark.__file__).parent
WORKERS = 2
_START_S_MAX = 120
_STOP_S_MAX = 10


@dataclass(frozen=True)
class Cluster:
    """Its address, and the folder of each worker."""

    master: str
    folders: tuple[Path, ...]


@contextlib.contextmanager
def started(folder: Path) -> Iterator[Cluster]:
    """A master and the workers, while the block runs."""
    with contextlib.ExitStack() as stack:
        log = folder / "master.log"
        master_class = "org.apache.spark.deploy.master.Master"
        host = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        stack.enter_context(_process([_spark_class(), master_class, *host], log, folder / "master"))
        master = _said(log, r"Starting Spark master at (spark://\S+)")
        folders = tuple(folder / f"worker-{number}" for number in range(WORKERS))
        worker_class = "org.apache.spark.deploy.worker.Worker"
        for place in folders:
            size = ["--cores", "1", "--memory", "1g", "--work-dir", str(place)]
            command = [_spark_class(), worker_class, *host, *size, master]
            stack.enter_context(_process(command, place.with_suffix(".log"), place))
        for place in folders:
            _said(place.with_suffix(".log"), r"Successfully registered with master (\S+)")
        yield Cluster(master, folders)


@contextlib.contextmanager
def connect_server(cluster: Cluster, folder: Path) -> Iterator[str]:
    """The address of a Spark Connect server that runs its jobs on the cluster."""
    port = _free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.python.daemon.module": "palio.spark.daemon",
        "spark.ui.enabled": "false",
    }
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    submit = [str(HOME / "bin" / "spark-submit"), "--master", cluster.master, "--class", server]
    log = folder / "connect.log"
    with _process([*submit, *options, "spark-internal"], log, folder / "connect"):
        _said(log, rf"(Spark Connect server started at: \S+:{port})")
        yield f"sc://127.0.0.1:{port}"


def environment(folder: Path) -> dict[str, str]:
    """For every process of the cluster, and for drivers."""
    folder.mkdir(exist_ok=True)
    return {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextlib.contextmanager
def _process(command: list[str], log: Path, folder: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=folder,
        )
    try:
        yield
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """The process and all of its group, politely first."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sent)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_S_MAX)


def _said(log: Path, pattern: str) -> str:
    """What a process wrote; if it does not come, the end of its log is the error."""
    until = time.monotonic() + _START_S_MAX
    while time.monotonic() < until:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.2)
    raise TimeoutError(f"{log.name} never said {pattern!r}:\n{log.read_text()[-3000:]}")


def _spark_class() -> str:
    return str(HOME / "bin" / "spark-class")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
