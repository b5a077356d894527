"""Columns of arrays, decimals, bytes, UUIDs and maps: read where the table knows them."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import InvalidValue
from palio.matching.encode.arrow_messages import encode_map, encode_wide
from palio.model import rows
from palio.model.message import Message
from palio.model.values import INT_MAX, INT_MIN
from tests.matching.encode.batches import assert_same
from tests.matching.encode.test_arrow_messages import NAMES, check, check_table, refused

STAMP = pa.timestamp("us", tz="UTC")
LISTS = [
    ([["a", None, "é]"], None, [], ["a", None, "é]"]], pa.string()),
    ([["a"], None, ["b", "c"]], pa.large_string()),
    ([["longer than a view holds inline"], None], pa.string_view()),
    ([[1, None, INT_MIN], None, [], [INT_MAX]], pa.int64()),
    ([[1, 2**64 - 1 - 2**63]], pa.uint64()),
    ([[True, None], []], pa.bool_()),
    ([[0.1, math.nan, -math.inf, None, -0.0, 1e300], None], pa.float64()),
    ([[0.1, None]], pa.float32()),
    ([[datetime(2013, 1, 31, 10, tzinfo=UTC), None], []], STAMP),
    ([[1_000, None, -1_000]], pa.timestamp("ns", tz="Europe/Rome")),
    ([[date(2013, 1, 31), None]], pa.date32()),
    ([[date(2013, 1, 31), None]], pa.date64()),
    ([[Decimal("1.50"), None, Decimal("2.00"), Decimal("-0.10")]], pa.decimal128(10, 2)),
    ([[b"x", None, b""]], pa.binary()),
    ([[None, None], []], pa.null()),
    ([[[1], None, []], None, []], pa.list_(pa.int32())),
    ([[["a", None], []], None], pa.large_list(pa.string())),
    ([[[1, 2], None]], pa.list_(pa.int8(), 2)),
    (
        [[{"a": 1, "t": 0}, None, {"a": None, "t": None}], [], None],
        pa.struct([("a", pa.int64()), ("t", pa.timestamp("s", tz="UTC"))]),
    ),
    ([[[("k", 1), ("l", None)], None, []]], pa.map_(pa.string(), pa.int64())),
    ([["a", "b", None, "a"]], pa.dictionary(pa.int8(), pa.string())),
]


@pytest.mark.parametrize(("items", "kind"), LISTS, ids=lambda part: str(part)[:50])
def test_lists(items: list[Any], kind: Any) -> None:
    check(items, pa.list_(kind))
    check([None, *items, None], pa.large_list(kind))
    if not pa.types.is_dictionary(kind):
        pair = [(one or [None])[:1] * 2 if one is not None else None for one in items]
        check(pair, pa.list_(kind, 2))


def test_what_arrays_hold() -> None:
    kind = pa.list_(pa.struct([("at", STAMP), ("m", pa.map_(pa.string(), pa.decimal128(5, 1)))]))
    moment = datetime(2013, 1, 31, 10, tzinfo=UTC)
    array = pa.array([[{"at": moment, "m": [("k", Decimal("1.5")), ("k", Decimal("2.0"))]}]], kind)
    found = list(rows.messages(pa.table({"x": array})))
    assert found == [Message({"x": [{"at": moment, "m": {"k": 2}}]})]


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (pa.decimal128(10, 2), ["0.00", "-0.10", "1.50", "2.00", "99999999.99", "-3.00", None]),
        (
            pa.decimal128(38, 0),
            ["0", str(INT_MAX), str(INT_MIN), str(INT_MAX + 1), "-1" + "0" * 30],
        ),
        (pa.decimal128(38, 18), ["0.1", "1", "-7.000000000000000001", "9007199254740.993", None]),
        (pa.decimal128(38, 20), ["0.1", "0", "3", "123456789012345678"]),
        (pa.decimal128(38, 37), ["0.1", "0", "3", "-9.9999999999999999999999999999999999999"]),
        (pa.decimal128(5, -2), ["100", "-12300", "0", None]),
        (pa.decimal256(76, 2), ["0.10", "5.00", "1" + "0" * 60, "-2.50"]),
        (pa.decimal256(20, 4), ["0.1000", "5", None]),
        (pa.decimal32(7, 3), ["0.125", "5", "-1.001", None]),
        (pa.decimal64(18, 3), ["0.125", "5", "999999999999999.999", None]),
    ],
    ids=str,
)
def test_decimals(kind: Any, texts: list[str | None]) -> None:
    decimals = [None if text is None else Decimal(text) for text in texts]
    check(decimals, kind)
    if kind.bit_width > 64:
        check_table(pa.table({"x": pa.array(decimals, kind).dictionary_encode()}))
    found = [row.get("x") for row in rows.messages(pa.table({"x": pa.array(decimals, kind)}))]
    for one, decimal in zip(found, decimals, strict=True):
        if decimal is not None:
            fits = decimal == int(decimal) and INT_MIN <= decimal <= INT_MAX
            assert repr(one) == repr(int(decimal) if fits else float(decimal))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.decimals(-(10**15), 10**15, places=4), min_size=1), st.integers(4, 18))
def test_random_decimals(decimals: list[Decimal], scale: int) -> None:
    check_table(pa.table({"x": pa.array(decimals, pa.decimal128(38, scale))}))


def test_bytes_and_uuids() -> None:
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)):
        check([b"ab", None, b"cd"], kind)
    uuids = pa.array([UUID(int=5).bytes, None], pa.binary(16))
    column = pa.ExtensionArray.from_storage(pa.uuid(), uuids)
    check_table(pa.table({"x": column, "s": pa.StructArray.from_arrays([column], ["x"])}))
    found = list(rows.messages(pa.table({"x": column})))
    assert found == [Message({"x": "00000000-0000-0000-0000-000000000005"}), Message()]
    json = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None]))
    check_table(pa.table({"x": json}))


def test_maps_in_wide_rows() -> None:
    table = pa.table(
        {
            "s": pa.array(
                [[("x", 1), ("other", 2)], None, [("x", None)], [], [("y", 3), ("x", 4)]],
                pa.map_(pa.string(), pa.int64()),
            ),
            "y": [1, 2, None, 4, 5],
        }
    )
    check_table(table)
    check_table(table.slice(2))
    check_table(pa.table({"s": pa.chunked_array([table["s"].chunk(0)[:2], table["s"].chunk(0)])}))
    check_table(pa.table({"z": table["s"], "y": table["y"]}))
    deep = pa.array(
        [[("a", {"x": 1, "t": [1]}), ("b", None)], [("a.x", {"x": 2, "t": None})]],
        pa.map_(pa.large_string(), pa.struct([("x", pa.int64()), ("t", pa.list_(pa.int8()))])),
    )
    names = {"s.a.x": 0, "s.a.t": 1, "s.a.x.x": 2, "s.b.x": 3}
    check_table(pa.table({"s": deep}), names)
    maps = pa.array(
        [[("a", [("x", 1), ("x.x", 2)]), ("b", [("x", 3)])], [("a.x", [("x", 4)])], None],
        pa.map_(pa.string(), pa.map_(pa.string(), pa.int8())),
    )
    check_table(pa.table({"s": maps}), names)
    both = pa.array([[("a", [("x.x", 1)]), ("a.x", [("x", 2)])]], maps.type)
    assert refused(pa.table({"s": both}), names) == "row 0: the attribute 's.a.x.x' is there twice"
    empty = pa.chunked_array([], pa.map_(pa.string(), pa.int8()))
    check_table(pa.table({"s": empty}), {"s.x": 0})


def test_maps_that_are_refused_where_they_are_asked_about() -> None:
    twice = pa.array([[], [("x", 1), ("x", 2)]], pa.map_(pa.string(), pa.int64()))
    assert refused(pa.table({"s": twice})) == "row 1: the attribute 's.x' is there twice"
    assert_same(encode_wide({"s.y": 0}, pa.table({"s": twice})), {"s.y": 0}, [{}, {}])
    numbers = pa.array([[(1, 1)]], pa.map_(pa.int64(), pa.int64()))
    assert "the keys of a map are strings, not int64" in refused(pa.table({"s": numbers}))
    assert_same(encode_wide(NAMES, pa.table({"q": numbers})), NAMES, [{}])
    clocks = pa.array([[("x", 1)]], pa.map_(pa.string(), pa.time64("us")))
    assert "column 's.x': the type time64[us] holds" in refused(pa.table({"s": clocks}))


def test_maps_of_arrays_decimals_and_objects() -> None:
    for kind, items in (
        (pa.list_(pa.string()), [["a", None], None, []]),
        (pa.decimal128(5, 2), [Decimal("1.50"), None, Decimal("2.00")]),
        (pa.binary(), [b"x", None]),
    ):
        column = pa.array(
            [[("x", v), ("y", v), ("q", v)] for v in items], pa.map_(pa.string(), kind)
        )
        messages = [Message({"x": v, "y": v}) for v in items]
        assert_same(encode_map(NAMES, column), NAMES, messages)
        assert_same(encode_map(NAMES, column[1:]), NAMES, messages[1:])
    objects = pa.array(
        [[("s", {"x": 1}), ("q", {"x": 2})], None, [("s", None)]],
        pa.map_(pa.string(), pa.struct([("x", pa.int64())])),
    )
    assert_same(encode_map(NAMES, objects), NAMES, [{"s.x": 1}, {}, {}])


def test_members_that_do_not_fit() -> None:
    late = pa.array([[0], [253_402_300_800]], pa.list_(pa.timestamp("s", tz="UTC")))
    said = "attribute 'x', row 1: the instant lies outside"
    assert said in refused(pa.table({"x": late}))
    assert "row 3" in refused(pa.table({"x": pa.chunked_array([late[:1], late[:1], late])}))
    with pytest.raises(InvalidValue, match=said):
        list(rows.messages(pa.table({"x": late})))
    maps = pa.array(
        [[("x", [0])], [("q", [2**40]), ("x", [2**40])]], pa.map_(pa.string(), late.type)
    )
    with pytest.raises(InvalidValue, match=said):
        encode_map(NAMES, maps)
    assert_same(encode_map({"z": 0}, maps), {"z": 0}, [{}, {}])
    for kind in (pa.timestamp("us"), pa.time64("us"), pa.struct([("a", pa.duration("s"))])):
        array = pa.array([[None]], pa.list_(kind))
        assert "column 'x': the type" in refused(pa.table({"x": array}))
        assert_same(encode_wide(NAMES, pa.table({"q": array})), NAMES, [{}])
