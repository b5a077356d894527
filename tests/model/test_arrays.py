"""Arrays, decimals, UUIDs, bytes and nested objects in messages: what they become, and their bounds."""

from __future__ import annotations

import json
import math
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import palio
from palio import InvalidValue, Message
from palio.model.arrays import DEPTH_MAX, MEMBERS_MAX, array_text, read_array
from palio.model.message import Attribute
from palio.model.predicate import Constraint
from palio.model.values import Type
from tests.strategies import VALUES

SCALARS = st.one_of(st.none(), *VALUES.values(), st.binary(max_size=4))
MEMBERS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)
ARRAYS = st.lists(MEMBERS, max_size=5)


class Row(tuple[Any, ...]):
    """As Spark's: a tuple with names."""

    __fields__ = ("x", "tags")

    def asDict(self) -> dict[str, Any]:  # noqa: N802
        return dict(zip(self.__fields__, self, strict=True))


def test_what_python_objects_become() -> None:
    message = Message(
        {
            "tags": ["a", ("b", None), {"k": [Decimal("2.0")]}],
            "price": Decimal("12.50"),
            "count": Decimal("5.00"),
            "large": Decimal(10) ** 30,
            "id": UUID(int=7),
            "blob": bytearray(b"xy"),
            "numpy": np.array([[1, 2]]),
            "flight": {"carrier": "UA", "legs": [{"from": "MXP"}], "none": None, "of": {"x": 1}},
            "at": {"$time": "2013-01-31"},
            "row": Row((3, ["q"])),
        }
    )
    assert dict(message) == {
        "tags": ("a", ("b", None), {"k": (2,)}),
        "price": 12.5,
        "count": 5,
        "large": 1e30,
        "id": "00000000-0000-0000-0000-000000000007",
        "blob": b"xy",
        "numpy": ((1, 2),),
        "flight.carrier": "UA",
        "flight.legs": ({"from": "MXP"},),
        "flight.of.x": 1,
        "at": datetime(2013, 1, 31, tzinfo=UTC),
        "row.x": 3,
        "row.tags": ("q",),
    }
    assert type(message["count"]) is int
    assert {a.name: a.type for a in message.attributes}["tags"] is None
    assert Message(Row((1, []))) == Message({"x": 1, "tags": []})  # type: ignore[arg-type]
    assert palio.parse("x = 1").matches(Row((1, [])))  # type: ignore[arg-type]
    assert Attribute("x", [1]).value == (1,)


@pytest.mark.parametrize(
    ("decimal", "value"),
    [
        ("0", 0),
        ("-0.0", 0),
        ("1E+3", 1000),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", 2.0**63),
        ("0.1", 0.1),
        ("1E+1000000", None),
        ("1E-1000000", 0.0),
        ("Infinity", math.inf),
        ("NaN", math.nan),
        ("sNaN", math.nan),
    ],
)
def test_decimals(decimal: str, value: float | None) -> None:
    if value is None:
        with pytest.raises(
            InvalidValue, match="attribute 'x': the decimal does not fit in a double"
        ):
            Message({"x": Decimal(decimal)})
    else:
        assert Message({"x": Decimal(decimal)}) == Message({"x": value})


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([1, {2}], "of type set"),
        ([datetime(2013, 1, 1)], "has no time zone"),  # noqa: DTZ001
        (["\ud800"], "lone surrogate"),
        ([{"\ud800": 1}], "lone surrogate"),
        ([{5: 1}], "5 is the name of a member"),
        ({"y": {5: 1}}, "a string, not 5"),
        ([{"$time": "soon"}], "not an instant"),
        ({"$binary": "a"}, r"\$binary takes base64"),
        ({"$float": 5}, "takes a string"),
    ],
)
def test_what_is_refused(value: object, says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        Message({"price": value})


def test_numbers_that_fit_no_type_are_doubles_in_arrays() -> None:
    message = Message.from_json('{"a": [18446744073709551616, 1e400, -1e400]}')
    assert message == Message({"a": [2.0**64, math.inf, -math.inf]})
    assert Message({"a": [10**400]}) == Message({"a": [math.inf]})


def test_of_members_of_one_name_the_last_counts() -> None:
    assert Message.from_json('{"a": [{"b": 1, "c": 2, "b": 3}]}')["a"] == ({"b": 3, "c": 2},)


def nested(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels - 1):
        found = [found]
    return found


def test_depth_and_size_are_bounded() -> None:
    deep = nested(DEPTH_MAX - 1)
    assert Message({"a": deep}) == Message.from_json(json.dumps({"a": deep}))
    for beyond in ({"a": nested(DEPTH_MAX)}, {"a": {"b": deep}}):
        with pytest.raises(InvalidValue, match="at most 64 levels"):
            Message(beyond)
        with pytest.raises(InvalidValue, match="at most 64 levels"):
            Message.from_json(json.dumps(beyond))
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidValue, match="at most 64 levels"):
        Message({"a": endless})
    wide: list[Any] = [0] * 1024
    for _ in range(3):
        wide = [wide] * 1024
    with pytest.raises(InvalidValue, match=f"more than {MEMBERS_MAX:,} members"):
        Message({"a": wide})


def test_names_of_nested_objects_are_there_once() -> None:
    with pytest.raises(InvalidValue, match=r"'a\.b' is there twice"):
        Message({"a": {"b": 1}, "a.b": 2})
    with pytest.raises(InvalidValue, match="is an object, not a value"):
        Attribute("a", {"b": 1})


@settings(max_examples=150, deadline=None)
@given(ARRAYS)
def test_arrays_are_values(array: list[Any]) -> None:
    message = Message({"a": array, "b": {"c": array}})
    assert Message.from_json(message.to_json()) == message
    assert Message(json.loads(message.to_json())) == message
    assert pickle.loads(pickle.dumps(message)) == message
    assert hash(Message(dict(message))) == hash(message)
    assert Message({"a": read_array(array_text(message["a"]))}) == Message({"a": array})
    assert message.memory_bytes >= Message({"a": [], "b": {"c": []}}).memory_bytes


def test_equality_knows_types_in_arrays() -> None:
    assert Message({"x": [1]}) != Message({"x": [1.0]})
    assert Message({"x": [True, {"a": 0}]}) != Message({"x": [1, {"a": False}]})
    assert Message({"x": [math.nan]}) == Message({"x": [math.nan]})
    assert Message({"x": []}) != Message({"x": b""})
    assert Message({"x": ["a"]}) != Message({"x": "a"})


def test_memory_counts_what_arrays_hold() -> None:
    empty = Message({"a": []}).memory_bytes
    assert Message({"a": ["x" * 1000]}).memory_bytes >= empty + 1000
    assert Message({"a": [{"k": ["x" * 1000]}] * 10}).memory_bytes >= empty + 10_000
    assert Message({"a": list(range(1000))}).memory_bytes >= empty + 30_000
    assert Message({"a": b"x" * 1000}).memory_bytes >= empty + 1000


@pytest.mark.parametrize("held", [["a"], [], b"a", [{"a": 1}]])
def test_an_array_is_there_and_nothing_else(held: object) -> None:
    content = Message({"x": held})["x"]
    assert Constraint("x", "any").matches(content)
    assert not Constraint("x", "absent").matches(content)
    for type in Type:
        assert not Constraint("x", "any", None, type).matches(content)
    for op, value in (
        *(("=", 1), ("!=", 1), ("!=", "a"), ("<", 5), (">=", "a"), ("in", ["a", "b"])),
        *(
            ("prefix", ""),
            ("not contains", "z"),
            ("=", True),
            ("=", datetime(2013, 1, 1, tzinfo=UTC)),
        ),
    ):
        assert not Constraint("x", op, value).matches(content)


def test_explanations_show_arrays_shortened() -> None:
    found = palio.parse("tags = 'x'").explain({"tags": list(range(1000))})
    assert "(tags is the array [0, 1, 2, 3, 4, ...])" in str(found)
    found = palio.parse("x = 'x'").explain({"x": b"12"})
    assert "(x is 2 bytes)" in str(found)


def test_dates_in_arrays_are_instants() -> None:
    assert Message({"x": [date(2013, 1, 2)]})["x"] == (datetime(2013, 1, 2, tzinfo=UTC),)


@pytest.mark.parametrize("member", ['{"$time": "", "$time": 1}', '{"$time": 1}'])
def test_the_last_member_of_a_name_counts_for_tags_too(member: str) -> None:
    """Else it was read as an object that could not be read again as it is written."""
    with pytest.raises(InvalidValue, match=r"\$time takes a string"):
        Message.from_json(f'{{"a": [8, {member}]}}')
    read = Message.from_json('{"a": [{"$float": 1, "$float": "NaN"}, {"x": 1, "x": 2}]}')
    assert Message.from_json(read.to_json()) == read
