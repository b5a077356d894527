"""The commands: output, exit codes, and sentences instead of tracebacks."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.cli.commands import palio, process

from palio.topics import attributes

SUBSCRIPTIONS = [("ann", "price < 500"), ("bob", "dest = 'MXP' OR dest IS NULL")]
EVENTS = [{"dest": "MXP", "price": 450}, {"dest": "LIN", "price": 600}, {"price": 20.5}]
EXPECTED = [["ann", "bob"], [], ["ann", "bob"]]


def write_predicates(folder: Path, kind: str) -> Path:
    path = folder / f"subs.{kind}"
    if kind == "csv":
        lines = [f'{name},"{text}"' for name, text in SUBSCRIPTIONS]
        path.write_text("interface,predicate\n" + "\n".join(lines) + "\n")
    elif kind == "jsonl":
        rows = [json.dumps({"interface": n, "predicate": t}) for n, t in SUBSCRIPTIONS]
        path.write_text("\n".join(rows))
    else:
        names, texts = zip(*SUBSCRIPTIONS, strict=True)
        pa.parquet.write_table(pa.table({"interface": names, "predicate": texts}), path)
    return path


def write_messages(folder: Path, kind: str) -> Path:
    path = folder / f"events.{kind}"
    if kind == "csv":
        path.write_text("dest,price\nMXP,450\nLIN,600\n,20.5\n")
    elif kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, EVENTS)))
    else:
        pa.parquet.write_table(pa.Table.from_pylist(EVENTS), path)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_match_prints_json_lines(tmp_path: Path, kind: str) -> None:
    done = palio(
        "match",
        "--predicates",
        write_predicates(tmp_path, kind),
        "--messages",
        write_messages(tmp_path, kind),
        "--all",
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["interfaces"] for line in lines] == EXPECTED
    assert [line["row"] for line in lines] == [0, 1, 2]
    assert lines[0]["message"] == {"dest": "MXP", "price": 450}


def test_a_name_that_no_message_has_is_told_once(tmp_path: Path) -> None:
    predicates, messages = tmp_path / "rules.csv", write_messages(tmp_path, "jsonl")
    predicates.write_text("interface,predicate\na,lower(desst) = 'mxp'\nb,price > 5 OR gone = 1\n")
    done = palio("match", "--predicates", predicates, "--messages", messages)
    assert done.returncode == 0
    told = "palio: predicates ask about 'desst' (near it: 'dest'), 'gone', and no message has it"
    assert done.stderr.splitlines().count(told) == 1
    predicates.write_text("interface,predicate\na,lower(dest) = 'mxp'\n")
    assert palio("match", "--predicates", predicates, "--messages", messages).stderr == ""


def test_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Each exit code, and what goes where."""
    where = ["match", "--predicates", write_predicates(tmp_path, "csv"), "--messages"]
    done = process(*where, write_messages(tmp_path, "jsonl"), "--all")
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line)["interfaces"] for line in done.stdout.splitlines()] == EXPECTED
    done = process("covers", "price < 100", "price < 500")
    assert (done.returncode, done.stdout[:2], done.stderr) == (1, "no", "")
    done = process(*where, tmp_path / "gone.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("palio: ")
    assert "no such file" in done.stderr
    assert "Traceback" not in done.stderr


def test_match_prints_only_matches_by_default(tmp_path: Path) -> None:
    done = palio(
        "match",
        "--brief",
        "--predicates",
        write_predicates(tmp_path, "csv"),
        "--messages",
        write_messages(tmp_path, "jsonl"),
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"row": 0, "interfaces": ["ann", "bob"]},
        {"row": 2, "interfaces": ["ann", "bob"]},
    ]


def test_csv_types_can_be_chosen(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("interface,predicate\na,zip = '00501'\nb,zip = 501\n")
    (tmp_path / "m.csv").write_text("zip,when\n00501,2013-01-01 10:00:00\n")
    where = ["match", "--predicates", tmp_path / "s.csv", "--messages", tmp_path / "m.csv"]
    assert json.loads(palio(*where).stdout)["interfaces"] == ["b"]
    chosen = palio(*where, "--types", "zip=string")
    assert json.loads(chosen.stdout) == {
        "row": 0,
        "interfaces": ["a"],
        "message": {"zip": "00501", "when": {"$time": "2013-01-01T10:00:00Z"}},
    }


def test_columns_that_nobody_asks_for_never_fail(tmp_path: Path) -> None:
    table = pa.table(
        {
            "price": pa.array(["450.00", "600.00"]).cast(pa.decimal128(9, 2)),
            "tags": [["a", "b"], None],
            "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
            "blob": [b"hi", None],
            "clock": pa.array([0, 1], pa.time64("us")),
            "moment": pa.array([0, 1], pa.timestamp("us")),
        }
    )
    pa.parquet.write_table(table, tmp_path / "events.parquet")
    (tmp_path / "subs.csv").write_text(
        "interface,predicate\na,price < 500\nb,\"array_contains(tags, 'b')\"\nc,m.k = 1\n"
    )
    where = ("match", "--predicates", tmp_path / "subs.csv", "--messages")
    done = palio(*where, tmp_path / "events.parquet")
    assert json.loads(done.stdout) == {
        "row": 0,
        "interfaces": ["a", "b", "c"],
        "message": {"price": 450, "tags": ["a", "b"], "m.k": 1, "blob": {"$binary": "aGk="}},
    }
    (tmp_path / "subs.csv").write_text("interface,predicate\na,hour(moment) < 5\n")
    done = palio(*where, tmp_path / "events.parquet")
    assert done.returncode == 2
    assert "column 'moment': the type timestamp[us] has no time zone" in done.stderr


BAD_FILES = [
    ("s.csv", "", "m.jsonl", "{}", "the file is empty"),
    ("s.csv", "name,text\na,b\n", "m.jsonl", "{}", "no interface and no predicate"),
    ("s.csv", "interface,predicate\na,price <\n", "m.jsonl", "{}", "line 2, interface 'a'"),
    ("s.jsonl", "{oops", "m.jsonl", "{}", "line 1: not JSON"),
    ("s.jsonl", "[]", "m.jsonl", "{}", "not a JSON object"),
    ("s.parquet", "not parquet", "m.jsonl", "{}", "not a Parquet file"),
    ("s.txt", "", "m.jsonl", "{}", "ends in none of"),
    ("s.csv", "interface,predicate\na,x = 1\n", "m.jsonl", '{"x": 1}\n{"x": [1}', "line 2"),
    ("s.csv", "interface,predicate\na,x = 1\n", "m.csv", "x,y\n1\n", "m.csv"),
    ("s.csv", "interface,predicate\na,x = 1\n", "m.csv", "x,x\n1,2\n", "x"),
    ("s.csv", "interface,predicate\na,x = 1\n", "gone.jsonl", None, "no such file"),
]


@pytest.mark.parametrize(("subs", "subs_text", "events", "events_text", "says"), BAD_FILES)
def test_bad_files_get_a_sentence(
    tmp_path: Path, subs: str, subs_text: str, events: str, events_text: str | None, says: str
) -> None:
    (tmp_path / subs).write_text(subs_text)
    if events_text is not None:
        (tmp_path / events).write_text(events_text)
    done = palio("match", "--predicates", tmp_path / subs, "--messages", tmp_path / events)
    assert done.returncode == 2
    assert done.stderr.startswith("palio: ")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_stats_of_predicates_and_of_a_table(tmp_path: Path) -> None:
    from palio import ForwardingTable

    predicates, sample = write_predicates(tmp_path, "csv"), write_messages(tmp_path, "jsonl")
    made = ForwardingTable.compile(dict(SUBSCRIPTIONS))
    made.save(tmp_path / "table")
    for source in (("--predicates", predicates), ("--table", tmp_path / "table")):
        done = palio("stats", *source, "--sample", sample, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == json.loads(json.dumps(made.stats(EVENTS).row()))
    done = palio("stats", "--predicates", predicates, "--reduce")
    assert done.returncode == 0, done.stderr
    assert "2 interfaces, 3 filters (3 of one constraint)" in done.stdout
    assert "reduced from 3 filters to 3" in done.stdout
    assert "guessed" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--predicates", "subs.csv", "--table", "t"],
        ["--table", "t", "--reduce"],
        ["--predicates", "subs.csv", "--by-sample"],
        ["--table", "nowhere"],
    ],
)
def test_stats_wants_one_source(arguments: list[str]) -> None:
    done = palio("stats", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("palio: ")
    assert "Traceback" not in done.stderr


def test_match_names_attributes_that_no_message_has(tmp_path: Path) -> None:
    rules = tmp_path / "rules.csv"
    rules.write_text(
        "interface,predicate\nann,prise < 500\nbob,lower(dest) = 'mxp' AND price > 1\n"
    )
    done = palio("match", "--predicates", rules, "--messages", write_messages(tmp_path, "csv"))
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)
    assert "predicates ask about 'prise' (near it: 'price'), and no message has it" in done.stderr
    fitting = palio(
        "match", "--predicates", write_predicates(tmp_path, "csv"),
        "--messages", write_messages(tmp_path, "jsonl"),
    )  # fmt: skip
    assert "no message has" not in fitting.stderr


def test_match_says_what_could_not_be_computed(tmp_path: Path) -> None:
    rules, events = tmp_path / "rules.csv", tmp_path / "events.jsonl"
    rules.write_text('interface,predicate\nann,"10 / x > 1"\nbob,"CAST(s AS INT) > 5"\n')
    events.write_text('{"x": 0, "s": "a"}\n{"x": 5, "s": "7"}\n{"x": 0, "s": "1"}\n')
    done = palio("match", "--predicates", rules, "--messages", events, "--brief")
    assert done.stdout == '{"row": 1, "interfaces": ["ann", "bob"]}\n'
    assert (
        "palio: values of expressions that could not be computed, and were NULL: 3; most of them of '10 / x': 2"
        in done.stderr
    )
    events.write_text('{"x": 5, "s": "7"}\n')
    fine = palio("match", "--predicates", rules, "--messages", events)
    assert "could not be computed" not in fine.stderr


def test_match_says_which_types_never_match(tmp_path: Path) -> None:
    rules, events = tmp_path / "rules.csv", tmp_path / "events.jsonl"
    rules.write_text(
        "interface,predicate\nann,at > '2024-03-01'\nbob,to_date(at) = '2024-03-10'\ncy,tags = 'a'\n"
        "di,n > 4 AND s = 'x'\ned,n = '5'\n"
    )
    events.write_text(
        '{"at": {"$time": "2024-03-10T11:30:00Z"}, "tags": ["a"], "n": "5", "s": 3}\n'
    )
    done = palio("match", "--predicates", rules, "--messages", events, "--brief")
    assert done.stdout == '{"row": 0, "interfaces": ["ed"]}\n'
    said = [line for line in done.stderr.splitlines() if "nothing is cast" in line]
    assert [line.split(" with ")[0] for line in said] == [
        "palio: predicates compare 'to_date(`at`)'",
        "palio: predicates compare 'at'",
        "palio: predicates compare 's'",
        "palio: predicates compare 'tags'",
    ]


def test_stats_of_rules_in_another_dialect(tmp_path: Path) -> None:
    rules = tmp_path / "rules.jsonl"
    rules.write_text('{"interface": "ann", "predicate": {"dest": ["MXP", "LIN"]}}\n')
    done = palio("stats", "--predicates", rules, "--dialect", "eventbridge", "--json")
    assert json.loads(done.stdout)["interfaces"] == 1, done.stderr
    table = palio("stats", "--table", tmp_path / "t.palio", "--zone", "Europe/Rome")
    assert "--dialect and --zone are for --predicates" in table.stderr


def test_topic_filters_of_mqtt(tmp_path: Path) -> None:
    filters, events = tmp_path / "filters.csv", tmp_path / "events.jsonl"
    filters.write_text("interface,predicate\nhot,site/+/temp?temp > 25\nall,site/#\n")
    messages = [
        {**attributes(topic), "temp": temp}
        for topic, temp in (("site/7/temp", 21.5), ("site/8/temp", 30.5), ("hall/1", 30.5))
    ]
    events.write_text("\n".join(json.dumps(message) for message in messages))
    done = palio("match", "--predicates", filters, "--messages", events, "--dialect", "mqtt")
    found = [json.loads(line)["interfaces"] for line in done.stdout.splitlines()]
    assert found == [["all"], ["hot", "all"]], "the last one matches nothing"
