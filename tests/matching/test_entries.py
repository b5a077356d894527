"""What a table is compiled from, what is said of what it is not, and strictness of every way to ask."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from palio import ForwardingTable, ParseError
from palio.errors import InvalidPredicate, InvalidValue


def test_a_bad_rule_names_its_interface() -> None:
    with pytest.raises(ParseError, match="interface 'bob': the function lowr") as caught:
        ForwardingTable.compile({"ann": "x = 1", "bob": "lowr(x) = 1"})
    assert caught.value.interface == "bob"
    with pytest.raises(ParseError, match="interface 'cy': the expression ends"):
        ForwardingTable.compile({"ann": "x = 1"}).updated(add={"cy": "x ="})


@pytest.mark.parametrize(
    "entries",
    [
        ["x = 1"],
        "x = 1",
        None,
        [("a", "x = 1", 3)],
    ],
)
def test_what_is_no_mapping_and_no_pairs(entries: Any) -> None:
    with pytest.raises(InvalidPredicate, match="a mapping, or pairs, of interface and predicate"):
        ForwardingTable.compile(entries)


def test_an_interface_is_named_by_a_string() -> None:
    with pytest.raises(InvalidPredicate, match="named by a string, not by 5"):
        ForwardingTable.compile({5: "x = 1"})


def test_texts_are_in_a_zone() -> None:
    rule = "at = TIMESTAMP '2024-01-01 10:00:00'"
    table = ForwardingTable.compile({"ann": rule}, zone="Europe/Rome")
    later = table.updated(add={"bob": rule}, zone="Europe/London")
    assert later.forward({"at": datetime(2024, 1, 1, 9, tzinfo=UTC)}) == ["ann"]
    assert later.forward({"at": datetime(2024, 1, 1, 10, tzinfo=UTC)}) == ["bob"]


def test_strict_holds_for_json_and_for_new_rules() -> None:
    table = ForwardingTable.compile({"ann": "1 / x > 2"}).updated(add={"bob": "1 / y > 2"})
    assert table.forward_json(b'{"x": 0, "y": 0}') == []
    for rule, message in (("ann", b'{"x": 0}'), ("bob", b'{"y": 0}')):
        with pytest.raises(InvalidValue, match=f"division by zero; the rule of '{rule}'"):
            table.forward_json(message, strict=True)
    with pytest.raises(InvalidValue, match="the rule of 'bob'"):
        table.forward({"y": 0}, strict=True)


def test_rows_are_a_sample_of_a_table_with_expressions() -> None:
    rows = pa.table({"x": ["A", "b", None]})
    table = ForwardingTable.compile({"ann": "lower(x) = 'a'"}, sample=rows)
    assert table.stats(rows).sampled == 3
    assert table.forward({"x": "A"}) == ["ann"]


def test_a_frame_has_interfaces_and_predicates() -> None:
    frame = pd.DataFrame(
        {"interface": ["ann", "bob", "ann"], "predicate": ["x = 1", "x > 1", "y = 1"]}
    )
    table = ForwardingTable.compile(frame)
    assert table.interfaces == ("ann", "bob")
    assert table.forward({"y": 1, "x": 5}) == ["ann", "bob"]
    frame.loc[1, "predicate"] = "x >"
    with pytest.raises(ParseError, match="bob"):
        ForwardingTable.compile(frame)
