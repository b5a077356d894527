"""Spark sessions as our commands need them; any other session does as well.

What is set, and why: workers run this interpreter and not the python3 of PATH; instants are shown
in UTC, as everywhere in Palio; a Python worker that is silent for minutes is killed and its task is
repeated, since PySpark rarely stalls on a socket; Arrow functions give rows and not
columns, since Spark 4.3 copies arrays twice more to give columns, which halves the rate of long
answers; the log is silent, because errors reach the program as exceptions.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from palio.errors import InvalidValue, MissingSoftware

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_MIN = 17
IDLE_S_MAX = 180  # longer than the kernels take to compile on a busy machine
ATTEMPTS_MAX = 4
CONNECT_S_MAX = 5.0
_PORTS = {"spark": 7077, "sc": 15002}

_LOG = Path(__file__).with_name("log4j2.properties").as_uri()  # before the level is set, too
_SQL_SETTINGS = {  # a Connect client may set these
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    "spark.sql.execution.pyspark.udf.idleTimeoutSeconds": str(IDLE_S_MAX),
    "spark.sql.execution.pyspark.udf.killOnIdleTimeout": "true",
    "spark.sql.session.timeZone": "UTC",
}
_SETTINGS = {
    **_SQL_SETTINGS,
    "spark.log.level": "OFF",
    "spark.task.maxFailures": str(ATTEMPTS_MAX),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(master: str = "local[*]", app: str = "palio", **conf: str) -> SparkSession:
    """A Spark session on `local[N]`, `spark://host:port` (or what else a master may be), or on
    `sc://host:port`, Spark Connect. `conf` overrides our settings:
    `session(**{"spark.driver.memory": "4g"})`. If there is a session already, it is that one.
    """
    from pyspark.sql import SparkSession

    if master.startswith("sc://"):
        builder = SparkSession.builder.remote(master).appName(app)
        chosen = {**_SQL_SETTINGS, **conf}
    else:
        require_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        builder = SparkSession.builder.master(_with_attempts(master)).appName(app)
        chosen = {**_SETTINGS, **conf}
        if master.startswith("local"):  # a name that does not resolve must not stop a laptop
            chosen.setdefault("spark.driver.host", "127.0.0.1")
            chosen.setdefault("spark.driver.bindAddress", "127.0.0.1")
            chosen.setdefault("spark.python.daemon.module", "palio.spark.daemon")
            chosen.setdefault("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={_LOG}")
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _with_attempts(master: str) -> str:
    """`local[N]` tries a task once; `local[N,4]` as often as a cluster does."""
    if master == "local":
        return f"local[1,{ATTEMPTS_MAX}]"
    return re.sub(r"^local\[([0-9*]+)\]$", rf"local[\1,{ATTEMPTS_MAX}]", master)


def require_java() -> None:
    """Raise MissingSoftware, which says what to install, unless Java is there and new enough."""
    java_home = os.environ.get("JAVA_HOME")
    java = str(Path(java_home) / "bin" / "java") if java_home else shutil.which("java")
    remedy = f"install Java {JAVA_MIN} or newer, or set JAVA_HOME to where it lies"
    if java is None:
        raise MissingSoftware("Spark needs Java and none is on PATH", remedy=remedy)
    try:
        run = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        where = "JAVA_HOME" if java_home else "PATH"
        raise MissingSoftware(
            f"Spark needs Java, and {java}, which {where} names, does not run ({error})",
            remedy=remedy,
        ) from None
    found = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)
    if found is None:
        raise MissingSoftware(
            f"Spark needs Java, and {java} does not say its version", remedy=remedy
        )
    if int(found[1]) < JAVA_MIN:
        raise MissingSoftware(
            f"Spark needs Java {JAVA_MIN} or newer, and {java} is Java {found[1]}",
            remedy=remedy,
        )


def require_master(master: str) -> None:
    """Raise when a text names no master, or nobody answers at its address. Spark would try for
    minutes, or show traces."""
    if not re.match(r"(local(\[[^\]]+\])?|yarn)$|(spark|sc|k8s)://.", master):
        raise InvalidValue(
            f"no master {master!r}",
            remedy="it is local[N], spark://HOST:PORT, sc://HOST:PORT, k8s://ADDRESS or yarn",
        )
    scheme, _, rest = master.partition("://")
    if scheme not in ("spark", "sc"):
        return
    hosts = re.split(r"[/;?]", rest)[0].split(",")
    problems = []
    for host in hosts:
        name, _, port = host.rpartition(":") if ":" in host else (host, "", "")
        try:
            address = (name.strip("[]"), int(port or _PORTS[scheme]))
            socket.create_connection(address, timeout=CONNECT_S_MAX).close()
            return
        except (OSError, ValueError, OverflowError) as error:
            problems.append(f"{host}: {getattr(error, 'strerror', None) or error}")
    what = "Spark Connect server" if scheme == "sc" else "Spark master"
    raise MissingSoftware(
        f"no {what} answers at {master} ({'; '.join(problems)})",
        remedy="start it, or choose another with --master (local[*] needs none)",
    )
