"""Fixtures that several folders of tests share."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from palio.lab.bench.loopback.postgres import PostgresPair

JAVA_MIN = 17
EXAMPLES_MIN, EXAMPLES_SHARE = 20, 10
SECONDS_MAX = 600
"""For one test, on a machine that may be very busy."""
LONG_MARKS = frozenset({"slow", "fuzz", "cluster", "chaos", "attack"})
_SETTINGS = "_hypothesis_internal_use_settings"  # where Hypothesis keeps what `@settings` said

settings.register_profile("house", deadline=None)  # no test fails because the machine is busy
settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-scenarios",
        action="store_true",
        help="write the traces of scenarios anew instead of comparing them",
    )
    parser.addoption(
        "--all-examples",
        action="store_true",
        help="draw as many random examples as tests say, not a tenth; `make fuzz` does",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The tests of a file run in one process, which loads and prepares what they share once. Random
    tests that say how many examples they draw mean a long run; here a tenth will do."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(
                pytest.mark.xdist_group(item.path.relative_to(config.rootpath).as_posix())
            )
    if config.getoption("--all-examples"):
        return
    functions = {
        getattr(item.obj, "__func__", item.obj)
        for item in items
        if isinstance(item, pytest.Function) and not {"fuzz", "slow"} & set(item.keywords)
    }
    for function in functions:
        said = getattr(function, _SETTINGS, None)
        if said is not None and said.max_examples > EXAMPLES_MIN:
            fewer = max(EXAMPLES_MIN, said.max_examples // EXAMPLES_SHARE)
            setattr(function, _SETTINGS, settings(said, max_examples=fewer))


class TookTooLong(BaseException):
    """A test hangs. No Exception, because an event loop would only log that."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """End a test that hangs, so that a run of all tests ends."""

    def end(*_: object) -> None:
        raise TookTooLong(f"{item.nodeid} was not done within {SECONDS_MAX} s")

    if LONG_MARKS.isdisjoint(item.keywords):
        signal.signal(signal.SIGALRM, end)
        signal.alarm(SECONDS_MAX)
    try:
        return (yield)
    finally:
        signal.alarm(0)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresPair]:
    """A PostgreSQL primary and its synchronous standby, one pair for all tests that kill neither.

    Starting it takes seconds: mark the tests `xdist_group("postgres")`.
    """
    from palio.lab.bench.loopback.postgres import postgres_pair, why_no_postgres

    if reason := why_no_postgres():
        pytest.skip(reason)
    with postgres_pair(fsync=False) as pair:
        yield pair


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local Spark session, one for all tests.

    Starting it takes seconds: mark the tests `spark` and `xdist_group("spark")`, so that with
    `--dist loadgroup` they share one process.
    """
    if reason := _why_no_spark():
        pytest.skip(reason)
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # workers would take python3 from PATH
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2]").appName("palio-tests")
        settings = {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.log.level": "ERROR",
            "spark.python.daemon.module": "palio.spark.daemon",
            "spark.sql.ansi.enabled": "true",  # the default of Spark 4
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.ui.enabled": "false",
        }
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        yield session
        session.stop()


def _why_no_spark() -> str | None:
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'palio[spark]'"
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        return f"no java found: install Java {JAVA_MIN} or newer"
    try:
        run = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except OSError as error:
        return f"java does not run: {error}"
    found = re.search(r'version "(\d+)', run.stderr + run.stdout)
    if not found or int(found[1]) < JAVA_MIN:
        version = found[1] if found else "unknown"
        return f"Spark needs Java {JAVA_MIN} or newer; the version of {java} is {version}"
    return None
