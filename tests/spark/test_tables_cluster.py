"""On a real cluster, a master and two workers: `make cluster` runs these. See cluster.py."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark import encodings

import palio
from palio.errors import MissingSoftware

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]
cluster = pytest.importorskip("tests.spark.cluster", reason="PySpark is not installed")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from palio.spark.sessions import require_java

    try:
        require_java()
    except MissingSoftware as error:
        pytest.skip(str(error))
    with cluster.started(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def expected(case: encodings.Case) -> list[list[str]]:
    """What evaluating every predicate on every message gives."""
    oracle = palio.ForwardingTable.compile(case.predicates, engine="naive")
    return [oracle.forward(palio.Message.from_json(t.as_py())) for t in case.messages["json"]]


def run(
    master: str, name: str, folder: Path, case: encodings.Case, tmp_path: Path
) -> dict[str, Any]:
    (tmp_path / "messages").symlink_to(folder)
    (tmp_path / "predicates.json").write_text(json.dumps(case.predicates))
    done = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name("cluster_run.py")),
            master,
            str(tmp_path),
            name,
        ],
        env=cluster.environment(tmp_path / "driver"),
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads((tmp_path / f"{name}.json").read_text())
    return found


def check(
    found: dict[str, Any], running: Any, case: encodings.Case, expected: list[list[str]]
) -> None:
    assert found["interfaces"] == list(case.predicates)
    assert found["wide"] == found["json"] == expected
    wanted = [[number, name] for number, names in enumerate(expected) for name in names]
    assert found["pairs"] == sorted(wanted)
    assert found["gone"]
    for place in running.folders:  # both have run tasks, each with a copy of its own
        for kind in ("folders", "files"):
            assert any(path.startswith(f"{place}/") for path in found[kind]), (place, found[kind])


def test_the_table_is_shipped_to_the_workers(
    running: Any, folder: Path, case: encodings.Case, expected: list[list[str]], tmp_path: Path
) -> None:
    found = run(running.master, "classic", folder, case, tmp_path)
    assert "connect" not in found["session"]
    check(found, running, case, expected)


def test_the_same_through_a_connect_server(
    running: Any, folder: Path, case: encodings.Case, expected: list[list[str]], tmp_path: Path
) -> None:
    with cluster.connect_server(running, tmp_path) as address:
        found = run(address, "connect", folder, case, tmp_path)
    assert "connect" in found["session"]
    check(found, running, case, expected)
