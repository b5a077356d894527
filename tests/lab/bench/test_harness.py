"""The harness of benchmarks: turns, medians, ratios, and what `report` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from rich.console import Console

from palio.lab.bench import harness
from palio.lab.bench.harness import Column, Progress, Repeated, Result, TurnTimes, in_turns


class Scripted:
    """A contestant whose turns take given seconds; it writes down when it is called."""

    def __init__(self, name: str, seconds: list[float], calls: list[str]) -> None:
        self._name, self._seconds, self._calls = name, iter(seconds), calls

    def warm_up(self) -> None:
        self._calls.append(f"warm {self._name}")

    def turn(self) -> float:
        self._calls.append(self._name)
        return next(self._seconds)


@dataclass(frozen=True, slots=True)
class NamedResult(Result):
    name: str
    size: int


def test_all_warm_up_before_they_take_turns() -> None:
    calls: list[str] = []
    told: list[tuple[str, float | None]] = []
    contestants = {name: Scripted(name, [1.0, 2.0], calls) for name in "ab"}
    in_turns(contestants, 2, lambda text, share: told.append((text, share)))
    assert calls == ["warm a", "warm b", "a", "b", "a", "b"]
    assert told[0] == ("warming up: a", 0.0)
    assert told[-1] == ("turn 2 of 2: b", pytest.approx(5 / 6))


def test_a_ratio_is_taken_turn_by_turn() -> None:
    """The machine is ten times slower in the second turn: that changes medians, not the ratio."""
    times = TurnTimes({"relay": [1.0, 10.0, 1.0], "broker": [2.0, 20.0, 2.0]})
    assert times.speed_ratio("broker", to="relay") == 0.5
    assert times.median("broker") == 2.0
    assert times.shortest("relay") == 1.0


def test_a_short_call_fills_its_turn_and_a_long_one_is_called_once() -> None:
    counts = {"short": 0, "once": 0}

    def count(name: str) -> int:
        counts[name] += 1
        return counts[name]

    short = Repeated(lambda: count("short"), turn_s=0.01)
    once = Repeated(lambda: count("once"))
    in_turns({"short": short, "once": once}, 1)
    assert counts["short"] > 10
    assert counts["once"] == 2  # the warm-up and the turn
    assert short.answer == once.answer == 1


def test_a_part_of_the_progress_keeps_what_is_unknown_unknown() -> None:
    told: list[tuple[str, float | None]] = []
    part = harness.part_of(
        lambda text, share: told.append((text, share)), begin=0.4, end=0.8, prefix="x: "
    )
    part("a", 0.5)
    part("b", None)
    assert told == [("x: a", pytest.approx(0.6)), ("x: b", None)]


def _run(*, progress: Progress) -> Iterator[NamedResult]:
    progress("counting", None)
    yield NamedResult("one", 1)
    yield NamedResult("two", 2_000)


def _show(console: Console, results: Sequence[NamedResult]) -> None:
    columns: list[Column[NamedResult]] = [
        Column("name", lambda r: r.name, "left"),
        Column("size", lambda r: f"{r.size:,}"),
    ]
    console.print(harness.table("sizes", columns, results))


def test_json_is_an_object_a_line_with_the_fields_in_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    harness.report(_run, _show, as_json=True)
    printed = capsys.readouterr()
    assert printed.out == '{"name": "one", "size": 1}\n{"name": "two", "size": 2000}\n'
    assert printed.err == ""
    assert json.loads(printed.out.splitlines()[1]) == NamedResult("two", 2_000).row()


def test_without_json_there_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    harness.report(_run, _show, as_json=False)
    printed = capsys.readouterr().out
    assert "sizes" in printed
    assert [line for line in printed.splitlines() if "2,000" in line and "two" in line]
    assert "{" not in printed
