"""palio route and palio demo as a user runs them; one session serves all tests."""

from __future__ import annotations

import io
import json
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.cli.commands import palio
from tests.cli.test_matching import EVENTS, write_messages, write_predicates
from typer.testing import CliRunner

import palio as library
from palio.cli import app
from palio.errors import PalioError
from palio.lab.data import flights
from palio.spark import TableDirectory

PAIRS = [("MXP", "ann"), ("MXP", "bob"), (None, "ann"), (None, "bob")]
spark_group = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture
def run(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command in the session of the tests, which it must not stop."""
    monkeypatch.setattr(spark, "stop", lambda: None)
    runner = CliRunner()

    def command(*arguments: str | Path) -> str:
        done = runner.invoke(app, [str(a) for a in arguments])
        if done.exception is not None:
            raise done.exception
        return done.stdout

    return command


def pairs(out: Path) -> list[tuple[str | None, str]]:
    rows = pq.read_table(out).to_pylist()
    for row in rows:
        row.update(json.loads(row.pop("message", "{}")))
    return sorted(((row.get("dest"), row["interface"]) for row in rows), key=str)


@pytest.mark.parametrize(
    "kind",
    ["parquet", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("csv", "jsonl"))],
)
class TestBatch:
    pytestmark = spark_group

    def test_files_of_every_format(self, run: Any, tmp_path: Path, kind: str) -> None:
        said = run(
            "route", "--predicates", write_predicates(tmp_path, kind), "--messages",
            write_messages(tmp_path, kind), "--out", tmp_path / "out", "--json",
        )  # fmt: skip
        summary = json.loads(said)
        assert (summary["messages"], summary["matches"], summary["rejects"]) == (3, 4, 0)
        assert summary["top"] == [["ann", 2], ["bob", 2]]
        assert summary["out"] == str(tmp_path / "out")
        assert pairs(tmp_path / "out") == sorted(PAIRS, key=str)


class TestJobs:
    pytestmark = spark_group

    def test_rejects_stop_the_job_or_are_written(self, run: Any, tmp_path: Path) -> None:
        subs = tmp_path / "subs.jsonl"
        rows = [("ann", "price < 500"), ("bad", "price <"), (None, "x = 1")]
        subs.write_text(
            "".join(json.dumps({"interface": i, "predicate": p}) + "\n" for i, p in rows)
        )
        where = ["--messages", write_messages(tmp_path, "jsonl"), "--out", tmp_path / "out"]
        with pytest.raises(PalioError, match=r"2 rows are no predicates; --rejects FILE"):
            run("route", "--predicates", subs, *where)
        rejects = tmp_path / "rejects.jsonl"
        said = run("route", "--predicates", subs, *where, "--rejects", rejects, "--output", "array")
        assert "rejected predicates" in said
        assert str(tmp_path / "out") in said.replace("\n", "")
        found = [json.loads(line) for line in rejects.read_text().splitlines()]
        assert [row["interface"] for row in found] == ["bad", None]
        lists = pq.read_table(tmp_path / "out")["interfaces"].to_pylist()
        assert lists == [["ann"], [], ["ann"]]
        with pytest.raises(PalioError, match="batches of an earlier run"):
            run("route", "--predicates", subs, *where)

    @pytest.mark.slow
    def test_bad_messages_are_a_sentence(self, run: Any, tmp_path: Path) -> None:
        (tmp_path / "in.jsonl").write_text('{"price": 1}\n{"price":\n')
        subs = write_predicates(tmp_path, "csv")
        with pytest.raises(PalioError, match="a row is no message: the message is not JSON") as no:
            run("route", "--predicates", subs, "--messages", tmp_path / "in.jsonl", "--out",
                tmp_path / "out")  # fmt: skip
        assert "Traceback" not in str(no.value)
        assert "(--invalid null continues without such rows)" in str(no.value)
        assert not list((tmp_path / "out").glob("batch=*"))
        for output, rows in (("array", [["ann", "bob"], None]), ("pairs", ["ann", "bob"])):
            said = run("route", "--predicates", subs, "--messages", tmp_path / "in.jsonl", "--out",
                tmp_path / output, "--invalid", "null", "--output", output, "--json")  # fmt: skip
            summary = json.loads(said)
            assert (summary["messages"], summary["matches"]) == (2, 2)
            column = "interfaces" if output == "array" else "interface"
            assert pq.read_table(tmp_path / output)[column].to_pylist() == rows

    def test_a_batch_tells_its_tasks(
        self, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from palio.spark import route, tasks

        monkeypatch.setattr(tasks, "_POLL_S", 0.01)
        folder = tmp_path / "in"
        folder.mkdir()
        for i in range(6):
            (folder / f"{i}.jsonl").write_text('{"price": 1}\n' * 1000)
        told: list[tuple[int, int]] = []
        job = route.Job(str(folder), tmp_path / "out", str(write_predicates(tmp_path, "csv")))
        spark.conf.set("spark.sql.files.openCostInBytes", "128m")  # a task for each file
        try:
            route.route_files(spark, job, tasks=lambda *counts: told.append(counts))
        finally:
            spark.conf.unset("spark.sql.files.openCostInBytes")
        assert {known for _, known in told} == {6}
        assert [done for done, _ in told] == sorted(done for done, _ in told)

    def test_the_bar_on_a_terminal(self) -> None:
        from rich.console import Console

        from palio.spark.terminal import StreamBar

        console = Console(force_terminal=True, width=100, record=True, file=io.StringIO())
        with StreamBar(console) as bar:
            bar.starting("routing")
            bar.tasks(3, 4)
        assert "3 of 4 tasks" in console.export_text()

    @pytest.mark.slow
    def test_a_stream_takes_up_changed_predicates(self, run: Any, tmp_path: Path) -> None:
        """And continues where it stopped, by tables of a directory as well."""
        folder, out = tmp_path / "in", tmp_path / "out"
        folder.mkdir()
        subs = write_predicates(tmp_path, "csv")
        (folder / "0.jsonl").write_text("\n".join(map(json.dumps, EVENTS)))
        where = ["--messages", folder, "--out", out, "--stream", "--once", "--json"]
        assert json.loads(run("route", "--predicates", subs, *where))["matches"] == 4
        (folder / "1.jsonl").write_text("\n".join(map(json.dumps, EVENTS)))
        subs.write_text("interface,predicate\ncy,price > 500\n")
        summary = json.loads(run("route", "--predicates", subs, *where))
        assert (summary["messages"], summary["matches"], summary["batches"]) == (3, 1, 1)
        assert summary["version"] == 2
        assert pairs(out) == sorted([*PAIRS, ("LIN", "cy")], key=str)
        tables = TableDirectory(tmp_path / "tables")
        tables.publish(library.ForwardingTable.compile({"all": "TRUE"}))
        where[3] = tmp_path / "other"
        summary = json.loads(run("route", "--table", tables.path, *where, "--by-interface"))
        assert (summary["matches"], summary["top"]) == (6, [["all", 6]])
        assert list((tmp_path / "other").glob("batch=000000/interface=all/*.parquet"))

    @pytest.mark.slow
    def test_a_running_stream_sees_the_file_change(
        self, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from palio.spark import route

        folder, out = tmp_path / "in", tmp_path / "out"
        folder.mkdir()
        (folder / "0.jsonl").write_text('{"price": 1}\n')
        subs = write_predicates(tmp_path, "csv")
        job = route.Job(str(folder), out, str(subs))
        said: list[str] = []
        seen: list[Any] = []
        monkeypatch.setattr(route, "_POLL_S", 0.2)
        ended: list[Any] = []

        def go() -> None:
            ended.append(
                route.route_folder(spark, job, once=False, progress=seen.append, say=said.append)
            )

        thread = threading.Thread(target=go)
        thread.start()
        try:
            wait_until(lambda: seen)
            subs.write_text("interface,predicate\ncy,price <\n")
            wait_until(lambda: said)
            assert "is not used, the version before stays" in said[0]
            subs.write_text("interface,predicate\ncy,price > 0\n")
            wait_until(lambda: len(said) == 2)
            (folder / "1.jsonl").write_text('{"price": 1}\n')
            wait_until(lambda: (out / "batch=000001").exists())
        finally:
            for query in spark.streams.active:
                query.stop()
            thread.join(60)
        assert ended[0].version == 2
        rows = pq.read_table(out).to_pylist()
        assert {(r["table_version"], r["interface"]) for r in rows} == {
            (1, "ann"), (1, "bob"), (2, "cy"),
        }  # fmt: skip

    def test_demo_delivers_what_the_table_says(self, run: Any, tmp_path: Path) -> None:
        said = run("demo", "--subscriptions", "200", "--messages", "2000", "--out", tmp_path)
        table = library.ForwardingTable.compile(dict(flights.subscriptions(200)))
        rows = flights.load(2000).table
        wanted = table.forward_batch(rows).to_pylist()
        lists = pq.read_table(tmp_path / "routed")["interfaces"].to_pylist()
        assert sum(map(len, lists)) == sum(map(len, wanted))
        assert f"{sum(map(len, wanted)):,}" in said
        assert "2,000" in said


def wait_until(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.1)


BAD = [
    (["--messages", "gone.jsonl"], "gone.jsonl: there is no such file"),
    (["--predicates", "gone.csv"], "gone.csv: there is no such file"),
    (["--table", "tables"], "--predicates or from --table, one of them"),
    (["--once"], "--once is for streams"),
    (["--master", "nowhere"], "no master 'nowhere'"),
    (["--master", "spark://127.0.0.1:9"], "no Spark master answers"),
    (["--master", "sc://127.0.0.1:9"], "no Spark Connect server answers"),
    (["--out", "events.jsonl/out"], "the output cannot be written"),
    (["--rejects", "r.txt"], "r.txt: the name ends in none of"),
    (["--write", "xml"], "no format 'xml'"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD)
def test_bad_input_is_a_sentence_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_predicates(tmp_path, "csv")
    write_messages(tmp_path, "jsonl")
    given = {"--predicates": "subs.csv", "--messages": "events.jsonl", "--out": "out"}
    rest = [word for name in given if name not in arguments for word in (name, given[name])]
    done = CliRunner().invoke(app, ["route", *rest, *arguments])
    assert isinstance(done.exception, PalioError), done.output
    assert says in str(done.exception)


def test_no_java_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    done = palio(
        "route", "--predicates", write_predicates(tmp_path, "csv"), "--messages",
        write_messages(tmp_path, "jsonl"), "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("palio: ")
    assert "install Java 17" in done.stderr
    assert "Traceback" not in done.stderr
    said = palio("demo", "--subscriptions", "20", "--messages", "500")
    assert said.returncode == 0, said.stderr
    assert "Here is the demo without Spark" in said.stdout.replace("\n", " ")
    assert "deliveries" in said.stdout


def test_demo_routes_flights() -> None:
    done = palio("demo", "--embedded", "--subscriptions", "20", "--messages", "500")
    assert done.returncode == 0, done.stderr
    assert "500 messages" in done.stdout.replace("\n", " ")
    assert "messages/s" in done.stdout.replace("\n", " ")


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_route_computes_expressions(run: Any, tmp_path: Path) -> None:
    """Shared, residual, of arrays, and some that fail: in a batch, and in a stream that takes up others."""
    subs = tmp_path / "subs.csv"
    subs.write_text(
        "interface,predicate\n"
        "ann,\"lower(name) = 'ann' AND price * 2 > 100\"\n"
        "bob,\"name LIKE 'A%n_' OR 10 / price > 1\"\n"
        "cy,\"array_contains(tags, 'x') AND size(tags) = 2\"\n"
        + "".join(f'near{k},"abs(price - {k}.5) < 0.3 AND price < 90"\n' for k in range(20))
    )
    events = [
        {"name": "Ann", "price": 60.0, "tags": ["x", "y"]}, {"name": "Anny", "price": 0.0, "tags": ["x"]},
        {"name": "q", "price": 5.5, "tags": None}, {"name": None, "price": 99.5, "tags": ["y", "x"]},
    ]  # fmt: skip
    wanted = [
        ("Ann", "ann"),
        ("Ann", "bob"),
        ("Ann", "cy"),
        ("Anny", "bob"),
        ("q", "bob"),
        ("q", "near5"),
        (None, "cy"),
    ]

    def found(out: Path) -> list[tuple[str | None, str]]:
        rows = pq.read_table(out).to_pylist()
        return sorted(
            (
                (json.loads(r["message"])["name"] if "message" in r else r["name"], r["interface"])
                for r in rows
            ),
            key=str,
        )

    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "0.jsonl").write_text("\n".join(map(json.dumps, events)))
    run("route", "--predicates", subs, "--messages", folder, "--out", tmp_path / "batch")
    assert found(tmp_path / "batch") == sorted(wanted, key=str)
    stream = ["--messages", folder, "--out", tmp_path / "stream", "--stream", "--once", "--json"]
    run("route", "--predicates", subs, *stream)
    assert found(tmp_path / "stream") == sorted(wanted, key=str)
    (folder / "1.jsonl").write_text("\n".join(map(json.dumps, events)))
    subs.write_text("interface,predicate\ndee,\"upper(name) = 'ANN' AND price DIV 7 = 8\"\n")
    summary = json.loads(run("route", "--predicates", subs, *stream))
    assert (summary["messages"], summary["version"]) == (4, 2)
    rows = pq.read_table(tmp_path / "stream").to_pylist()
    assert len(rows) == len(wanted)
