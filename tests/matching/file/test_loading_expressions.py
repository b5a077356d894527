"""Files of tables whose expressions somebody forged: a sentence, in bounded time, and nothing worse."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palio.errors import InvalidFile, InvalidPredicate
from palio.matching.file import storage
from palio.matching.table import ForwardingTable

FORGED = {
    "=)(": "this parenthesis closes nothing",
    "=": "names no expression",
    "=x": "names no expression, but the attribute 'x'",
    "=sum(x)": "sum is not supported",
    "=" + "(" * 5000 + "x" + ")" * 5000: "nested more than",
    "=" + "lower(" * 3000 + "x" + ")" * 3000: "nested more than",
    "=" + "-" * 5000 + "x": "names no expression",
    "=" + "NOT " * 5000 + "x": "nested",
    "=x" + " + 1" * 20_000: "nested",
    "=x" + "[0]" * 3000: "nested",
    "=" + "CASE WHEN x THEN " * 2000 + "1" + " END" * 2000: "nested",
    "=" + "exists(a, t -> " * 20 + "TRUE" + ")" * 20: "lambdas are nested more than 8 deep",
    "=x RLIKE '(a{1000}){1000}'": "RE2 does not read",
    "=lower('" + "a" * 5_000_000 + "')": "names no expression",
    "=concat(" + ", ".join(f"x{i}" for i in range(9000)) + ")": "not 9000",
}


def forged(path: Path, name: str, monkeypatch: pytest.MonkeyPatch, mode: str) -> Path:
    """A file with that name instead of that of its expression."""
    rules = {"a": "abs(x - 3) = 1 AND z = 1", "b": "y = 1"}
    table: Any = ForwardingTable.compile(rules, expressions=mode)
    engine, roster = table._compacted()
    names = [name if one.startswith("=") else one for one in engine.table.names]
    if engine.hidden is not None:
        engine.hidden.columns.names[:] = [
            name if one.startswith("=") else one for one in engine.hidden.columns.names
        ]
    with monkeypatch.context() as patch:
        patch.setattr(storage, "check_expressions", lambda *_: None)
        storage.save(path, replace(engine.table, names=names), roster.base.array, engine.hidden)
    return path


@pytest.mark.parametrize("mode", ["attributes", "residuals"])
@pytest.mark.parametrize("name", FORGED, ids=range(len(FORGED)))
def test_a_forged_expression_is_a_sentence(
    name: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = forged(tmp_path / "t.palio", name, monkeypatch, mode)
    begin = time.process_time()
    with pytest.raises(InvalidFile) as raised:
        ForwardingTable.load(path)
    assert time.process_time() - begin < 10
    assert FORGED[name] in str(raised.value)
    assert str(path) in str(raised.value)
    assert len(str(raised.value)) < 1000


def test_a_residual_that_is_no_expression(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = forged(tmp_path / "t.palio", "plain", monkeypatch, "residuals")
    with pytest.raises(InvalidFile, match="'plain' is no expression, and a residual"):
        ForwardingTable.load(path)


def test_what_only_spark_computes_is_refused_when_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = forged(tmp_path / "t.palio", "=levenshtein(x, z)", monkeypatch, "attributes")
    table = ForwardingTable.load(path)
    with pytest.raises(InvalidPredicate, match="computed by Spark only"):
        table.forward({"x": "a"})


def test_the_shapes_of_a_file_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {str(i): f"x{i} + y{i} > 3" for i in range(20)}
    table = ForwardingTable.compile(rules)
    table.save(tmp_path / "t.palio")
    monkeypatch.setattr(storage, "SHAPES_MAX", 100)
    for action in (table.save, ForwardingTable.load):
        with pytest.raises(InvalidFile, match="more than 100 characters without their literals"):
            action(tmp_path / "t.palio")
