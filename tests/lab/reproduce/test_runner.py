"""Runs on Spark: every experiment, what is finished is not run again, and the page from the rows."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palio import cli
from palio.errors import InvalidFile, InvalidValue, MissingSoftware, PalioError
from palio.lab.reproduce import manifest, report, runner
from palio.lab.reproduce.catalogue import all_points, experiment, experiments
from palio.lab.reproduce.claims import CLAIMS
from palio.lab.reproduce.results import path_of, stored, work

on_spark = [pytest.mark.slow, pytest.mark.spark]  # all experiments: a minute and a half
SCALE = 0.02


@pytest.fixture(scope="session")
def results(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`palio lab run --all --scale 0.02`."""
    folder = tmp_path_factory.mktemp("lab") / "results"
    told: list[tuple[str, int, int]] = []
    ran = runner.run(
        list(experiments()),
        scale=SCALE,
        out=folder,
        spark=spark,
        tell=lambda text, done, total: told.append((text, done, total)),
    )
    assert ran.finished_before == 0
    assert told[0] == ("starting Spark", 0, ran.points)
    assert told[-1][1:] == (ran.points, ran.points)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    return folder


class TestOnSpark:
    pytestmark = on_spark

    def test_every_point_is_stored_and_none_is_run_twice(self, spark: Any, results: Path) -> None:
        ids = list(experiments())
        points = {p for id in ids for p in all_points(id, SCALE)}
        stamps = {p: path_of(results, p).stat().st_mtime_ns for p in points}
        ran = runner.run(ids, scale=SCALE, out=results, spark=spark)
        assert (ran.points, ran.finished_before) == (len(points), len(points))
        assert {p: path_of(results, p).stat().st_mtime_ns for p in points} == stamps
        (entry,) = manifest.read(results).runs  # a run of nothing leaves no entry
        assert entry["points"] == len(points)
        assert entry["seconds"] > 0

    def test_tasks_give_what_this_process_gives(self, results: Path) -> None:
        for id in ("2006-fig5", "2006-fig6", "2006-fig7", "2001-fig10", "traffic"):
            point = all_points(id, SCALE)[-1]
            rows = stored(results, id, [point])
            again = experiment(id).run(dict(point.values), rows[0]["seed"])
            assert [{key: row[key] for key in again[0]} for row in rows] == list(again), id

    def test_times_come_with_ratios(self, results: Path) -> None:
        rows = stored(results, "2003-fig8", all_points("2003-fig8", SCALE))
        for filters in {row["filters"] for row in rows}:
            own = {row["engine"]: row for row in rows if row["filters"] == filters}
            assert all(
                row["us_per_message_low"] <= row["us_per_message"] <= row["us_per_message_high"]
                for row in own.values()
            )
            assert own["counting r=0"]["ratio"] == 1.0
            for row in own.values():
                first = own["counting r=0"]["us_per_message"]
                assert row["ratio"] == pytest.approx(row["us_per_message"] / first)
            assert len({row["matches_per_message"] for row in own.values()}) == 1

    def test_the_page_holds_everything(self, results: Path, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        written = report.write(results, tmp_path / "page")
        text = written.page.read_text("utf-8")
        assert re.findall(r'(?:src|href)="(?!data:image/png;base64,|#)', text) == []
        for id, module in experiments().items():
            assert f'<h3 id="{id}">' in text
            assert module.SETTINGS.figure in text
            assert (tmp_path / "page" / f"{id}.png").read_bytes().startswith(b"\x89PNG")
        assert "scale 0.02" in text
        assert "not decided here" in text
        assert "depends on what the paper leaves open" in text
        for claim in CLAIMS:
            assert f"<code>{claim.id}</code>" in text
        assert "Holds if:" in text
        assert "palio lab run CLAIM --scale 0.02 --seed 1" in text
        assert "filters 100, 22,000 (all 2 points)" in text
        assert "at the edge" in text
        assert len(text) < 5_000_000
        assert re.match(
            r"of \d\d claims \d+ hold, \d+ do not, \d+ depend on .*, \d+ are not decided here",
            written.summary,
        )

    def test_a_run_that_was_stopped_goes_on(self, spark: Any, tmp_path: Path) -> None:
        """What a killed run leaves: some points, and perhaps a file that was being written."""
        points = all_points("2006-fig7", SCALE)
        manifest.opened(tmp_path, seed=1, scale=SCALE)
        for point in points[:-3]:
            work(tmp_path, point, 1)
        half = path_of(tmp_path, points[-1])
        half.with_name(f".{half.name}.123").write_bytes(b"PAR1")
        stamps = {p: path_of(tmp_path, p).stat().st_mtime_ns for p in points[:-3]}
        ran = runner.run(["2006-fig7"], scale=SCALE, out=tmp_path, spark=spark)
        assert (ran.points, ran.finished_before) == (len(points), len(points) - 3)
        assert {p: path_of(tmp_path, p).stat().st_mtime_ns for p in points[:-3]} == stamps
        assert len(stored(tmp_path, "2006-fig7", points)) == len(points)

    def test_a_task_that_fails_says_so_in_a_sentence(self, spark: Any, tmp_path: Path) -> None:
        manifest.opened(tmp_path, seed=1, scale=SCALE)
        (tmp_path / "2006-fig7").write_text("in the way")
        with pytest.raises(PalioError, match=r"a task failed: .*2006-fig7.*continues") as caught:
            runner.run(["2006-fig7"], scale=SCALE, out=tmp_path, spark=spark)
        assert "Traceback" not in str(caught.value)


@pytest.mark.slow
def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    """The command, killed with all its processes in the middle, then given again."""
    command = [sys.executable, "-m", "palio.cli", "lab", "run", "2006-fig6", "--scale", "0.1"]
    command += ["--out", str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, env=env, start_new_session=True)
    try:
        until = time.monotonic() + 240
        while len(list(tmp_path.glob("*/[!.]*.parquet"))) < 5:
            assert process.poll() is None, "it ended by itself"
            assert time.monotonic() < until, "it takes too long"
            time.sleep(0.05)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    finished = {p: p.stat().st_mtime_ns for p in tmp_path.glob("*/[!.]*.parquet")}
    total = len(all_points("2006-fig6", 0.1))
    assert 5 <= len(finished) < total
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, check=False, timeout=400
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(finished)} were finished before" in done.stdout
    assert {p: p.stat().st_mtime_ns for p in finished} == finished
    assert len(list(tmp_path.glob("*/[!.]*.parquet"))) == total


# ---- without Spark


@pytest.fixture
def lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """The command in this process: its exit code, and what it printed, in one line."""
    monkeypatch.chdir(tmp_path)

    def called(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["palio", "lab", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        out, err = capsys.readouterr()
        return int(caught.value.code or 0), f"{out}\n{err}"

    return called


def test_list_shows_every_experiment(lab: Callable[..., tuple[int, str]]) -> None:
    code, text = lab("list")
    assert code == 0
    for id, module in experiments().items():
        assert re.search(rf"^{re.escape(id)} .*{re.escape(module.SETTINGS.title)}", text, re.M)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "fig99"], "no experiment 'fig99'; there are names, overlap, 2000-patterns"),
        (["run"], "name experiments or claims, or all of them with --all"),
        (["run", "traffic", "--scale", "huge"], "a scale is a number or `full`, not 'huge'"),
        (["run", "traffic", "--scale", "-1"], "a scale is above 0"),
        (["run", "traffic", "--master", "mars"], "no master 'mars'"),
        (["report", "."], "is no directory of results"),
        (["scaling", "2003-fig8"], "measures time and runs one task at a time"),
    ],
)
def test_bad_input_is_one_sentence(
    lab: Callable[..., tuple[int, str]], arguments: list[str], words: str, tmp_path: Path
) -> None:
    code, text = lab(*arguments)
    assert code == 2
    assert words in text
    assert list(tmp_path.iterdir()) == [], "nothing was written"


def test_claims_are_listed_with_their_experiments(lab: Callable[..., tuple[int, str]]) -> None:
    code, text = lab("claims")
    assert code == 0
    for claim in CLAIMS:
        assert re.search(
            rf"^{claim.id} .*{re.escape(claim.place)} .*{claim.experiment}", text, re.M
        )


def test_a_claim_is_run_by_its_name(lab: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    """What decides it is finished already, so that no Spark starts."""
    manifest.opened(tmp_path / "results", seed=1, scale=SCALE)
    for point in all_points("2000-patterns", SCALE):
        work(tmp_path / "results", point, 1)
    code, text = lab("run", "2000-pattern-place", "--scale", str(SCALE), "--out", "results")
    assert code == 0
    assert "0 points run" in text
    assert "2000-pattern-place (2000, 3.6): Patterns are assembled as close as possible" in text
    for words in (
        "holds if: Beyond the server",
        "refuted by: A single",
        "verdict: holds: 0 messages",
    ):
        assert words in text
    assert "run: 2000-patterns: length 1, 2, 4, 8; sources together, apart; up to 3 draws" in text


def test_without_java_the_remedy_is_named(
    lab: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, text = lab("run", "traffic")
    assert code == 2
    assert "install Java" in text


def test_without_matplotlib_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = all_points("2006-fig7", SCALE)[0]
    manifest.opened(tmp_path, seed=1, scale=SCALE)
    with pytest.raises(InvalidFile, match="holds no finished point"):
        report.write(tmp_path, tmp_path)
    work(tmp_path, point, 1)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(MissingSoftware, match=r"pip install 'palio\[lab\]'"):
        report.write(tmp_path, tmp_path)


def test_scaling_refuses_results_that_are_there(tmp_path: Path) -> None:
    folder = tmp_path / "local-1"
    manifest.opened(folder, seed=1, scale=SCALE)
    for point in all_points("2006-fig7", SCALE):
        path = path_of(folder, point)
        path.parent.mkdir(exist_ok=True)
        path.touch()
    with pytest.raises(InvalidValue, match="earlier run, so its time says nothing"):
        runner.scaling(["2006-fig7"], scale=SCALE, out=tmp_path)
