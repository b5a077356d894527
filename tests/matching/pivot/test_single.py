"""One message at a time: what `Message` means and refuses, a plain dict means and refuses too."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio import ForwardingTable, Message, Predicate
from palio.errors import InvalidValue
from palio.lab.data import workloads
from palio.model.values import INT_MAX, INT_MIN
from tests.matching.test_engine import MESSAGES, TABLES

ENGINES = ("pivot", "counting", "naive")


@settings(max_examples=200, deadline=None)
@given(TABLES, st.lists(MESSAGES, max_size=4))
def test_dicts_as_matching_says(table: list[Predicate], found: list[dict[str, object]]) -> None:
    entries = {f"i{n}": p for n, p in enumerate(table)}
    compiled = ForwardingTable.compile(entries)
    for message in found:
        expected = [name for name, p in entries.items() if p.matches(message)]
        assert compiled.forward(message) == expected
        assert compiled.forward(MappingProxyType(message)) == expected


class Text(str):
    """A subclass is its plain type."""


EDGES: list[object] = [
    *(True, False, 0, -1, INT_MIN, INT_MAX, 2**53 + 1, -(2**53) - 1, 0.5, -0.0, 1e300, -1e300),
    *(float("nan"), float("inf"), 2.0**63, -(2.0**63), "", "a", "è", "\U0001f600", "nul\0", None),
    *(Text("è"), np.int8(-1), np.uint64(7), np.float32(0.5), np.bool_(True), np.str_("a")),
    *(date(2013, 1, 31), datetime(2013, 1, 31, 1, tzinfo=timezone(timedelta(hours=1)))),
]


@pytest.mark.parametrize("value", EDGES, ids=repr)
def test_values_at_the_edges(value: object) -> None:
    known = Message({"x": value})
    entries = {"any": "x IS NOT NULL", "none": "x IS NULL", "other": "y = 1"}
    if "x" in known:
        plain = known["x"]
        if isinstance(plain, str):
            entries |= {
                "prefix": f"startswith(x, '{plain[:1]}')",
                "part": f"contains(x, '{plain}')",
            }
    table = ForwardingTable.compile(
        {**entries, "below": "x < 0", "above": "x > 0.25", "late": "x >= TIMESTAMP '2013-01-31'"}
    )
    naive = ForwardingTable.compile({n: table.predicate(n) for n in table.interfaces}, "naive")
    for message in ({"x": value}, {"x": value, "y": 1}, {"y": 1.0, "z": "no one asks", "x": value}):
        assert table.forward(message) == naive.forward(message)


BAD: list[Any] = [
    {"x": 2**63},
    {"x": -(2**63) - 1},
    {"x": [object]},
    {"x": {1, 2}},
    {"x": "lone \ud800"},
    {"x": datetime(2013, 1, 31)},  # noqa: DTZ001
    {"x": np.datetime64("2013-01-31")},
    {"x": object},
    {"unknown": 2**70},
    {"unknown": {"nested": 1j}},
    {"unknown": "\udfff"},
    {"": 1},
    {7: 1},
    {None: 1},
    {"lone \ud800": 1},
    {"x": 1, "y": 2, "z": 1j},
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("message", BAD, ids=ascii)
def test_errors_are_those_of_a_message(engine: str, message: Any) -> None:
    table = ForwardingTable.compile({"a": "x = 1", "b": "y LIKE 'a%' OR z < 2.5"}, engine)
    for version in (table, table.updated(add={"c": "x = 2"})):
        with pytest.raises(InvalidValue) as expected:
            Message(message)
        with pytest.raises(InvalidValue) as found:
            version.forward(message)
        assert str(found.value) == str(expected.value)
        assert version.forward({"x": 1}) == ["a"]  # nothing of it is left


def test_what_is_no_message_is_refused() -> None:
    table = ForwardingTable.compile({"a": "x = 1"})
    for thing in (None, 7, "x", [("x", 1)]):
        with pytest.raises(InvalidValue, match="a message is a Message or a mapping"):
            table.forward(thing)  # type: ignore[arg-type]


def test_messages_of_any_size() -> None:
    names = [f"n{i}" for i in range(600)]
    table = ForwardingTable.compile(
        {**{name: f"`{name}` >= 0.5" for name in names}, "long": "contains(s, 'needle')"}
    )
    rng = np.random.default_rng(5)
    for size in (0, 1, 3, 150, 600, 7):
        message: dict[str, object] = {n: float(rng.integers(0, 2)) for n in names[:size]}
        expected = [name for name, value in message.items() if value]
        assert table.forward(message) == expected
        message["s"] = "x" * (100 * size) + "needle" + "è" * size
        assert table.forward(message) == [*expected, "long"]


def test_a_call_within_a_call() -> None:
    """A time zone is the caller's code: it may forward through the same table."""
    table = ForwardingTable.compile({"a": "x = 1", "b": "t > TIMESTAMP '2013-01-01'"})
    inner: list[list[str]] = []

    class Zone(tzinfo):
        def utcoffset(self, _when: datetime | None) -> timedelta:
            inner.append(table.forward({"x": 1}))
            return timedelta(0)

        def dst(self, _when: datetime | None) -> None:
            return None

    assert table.forward({"x": 2, "t": datetime(2013, 5, 5, tzinfo=Zone())}) == ["b"]
    assert table.forward({"x": 1, "t": datetime(2013, 5, 5, tzinfo=UTC)}) == ["a", "b"]
    assert inner
    assert all(found == ["a"] for found in inner)


def test_threads_do_not_disturb_each_other() -> None:
    load = workloads.sigcomm03(3_000, "all", 80, seed=9)
    table = ForwardingTable.compile(load.constraints)
    messages = workloads.message_dicts(load)
    expected = [table.forward(message) for message in messages]
    wrong: list[int] = []

    def work(first: int) -> None:
        order = [*range(first, len(messages)), *range(first)] * 5
        wrong.extend(i for i in order if table.forward(messages[i]) != expected[i])

    threads = [threading.Thread(target=work, args=(10 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
