import math
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import InvalidValue
from palio.matching.encode.arrow_messages import encode_map, encode_wide
from palio.matching.encode.messages import BatchBuilder
from palio.model import rows
from palio.model.message import Message
from palio.model.values import INT_MAX, Type, Value
from tests.matching.encode.batches import assert_same, decoded
from tests.strategies import VALUES, values

NAMES = {"x": 4, "s.x": 2, "y": 0}
BEYOND = [0.0, -0.0, 0.5, -0.5, 1e300, -1e300, 2.0**63, -(2.0**63), 2.0**53, math.nan, math.inf]
INTS = [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, INT_MAX, INT_MAX - 511, -INT_MAX - 1, 2**60 + 1]


def check_table(table: Any, names: dict[str, int] = NAMES) -> None:
    """The batch is that of the rows as messages, or both refuse the table."""
    messages = list(rows.messages(table))
    assert_same(encode_wide(names, table), names, messages)


def check(items: list[Any], kind: Any) -> None:
    """A column in several chunks, as a batch, sliced, and inside a struct."""
    array = pa.array(items, kind)
    table = pa.table({"x": pa.chunked_array([array, array[:0], array], type=array.type)})
    check_table(table)
    check_table(table.slice(1))
    check_table(table.slice(len(items) - 1, 2))
    check_table(pa.record_batch({"x": array}))
    check_table(pa.record_batch({"x": array[1:]}))
    inside = pa.StructArray.from_arrays([array], ["x"])
    check_table(pa.record_batch({"s": inside, "y": array}))
    missing = pa.StructArray.from_arrays(
        [array], ["x"], mask=pa.array([i % 2 == 0 for i in range(len(items))])
    )
    check_table(pa.table({"s": missing[1:]}))


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_small_integers(kind: str) -> None:
    check([1, None, 100, 0], kind)


def test_integers() -> None:
    check([*INTS, None], pa.int64())
    check([0, None, INT_MAX, 2**53 + 1], pa.uint64())


def test_floats() -> None:
    check([*BEYOND, None, -math.inf, 5e-324, -5e-324, 1.5, -2.0], pa.float64())
    check([0.1, None, -0.0, math.nan, math.inf], pa.float32())
    check([np.float16(0.1), None, np.float16(-2)], pa.float16())


def test_bools_and_nulls() -> None:
    check([True, None, False, True] * 5, pa.bool_())
    check([None, None], pa.null())


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_strings(kind: Any) -> None:
    check(["a", None, "", "é😀", "a", "longer than a view holds inline"], kind)
    check([None, None], kind)
    check([""], kind)


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_instants(unit: str) -> None:
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    found = [first, None, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), last]
    check(found, pa.timestamp(unit, tz="UTC"))
    check(found[1:3], pa.timestamp(unit, tz="Europe/Rome"))


def test_nanoseconds_and_dates() -> None:
    check([1_000, None, -1_000, 0], pa.timestamp("ns", tz="UTC"))
    check([date(1, 1, 1), None, date(1969, 12, 31), date(9999, 12, 31)], pa.date32())
    check([date(1, 1, 1), None, date(1969, 12, 31), date(9999, 12, 31)], pa.date64())
    check([1, None, -1, -86_400_001], pa.date64())


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        (["a", None, "b", "a"], pa.string()),
        (["a", None, "b", "a"], pa.large_string()),
        ([1, None, 2**60 + 1], pa.int64()),
        ([1, None, INT_MAX], pa.uint64()),
        ([0.5, None, math.nan], pa.float64()),
        ([0, None, 1], pa.timestamp("ms", tz="UTC")),
        ([date(2013, 1, 31), None], pa.date32()),
        ([None, None], pa.null()),
    ],
    ids=str,
)
def test_dictionaries(items: list[Any], kind: Any) -> None:
    array = pa.array(items, kind).dictionary_encode()
    other = pa.array([*items[::-1], *items], kind).dictionary_encode()
    check_table(pa.table({"x": array}))
    check_table(pa.table({"x": array[1:]}))
    if kind != pa.null():
        check_table(pa.table({"x": pa.chunked_array([array, other[1:], array[:0]])}))


def test_dictionaries_of_odd_make() -> None:
    twice = pa.DictionaryArray.from_arrays([0, 1, 2, 0], ["a", "b", "a"])
    holes = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    unused = pa.DictionaryArray.from_arrays([1, 1], ["a", "b", "c", "d"])
    views = pa.DictionaryArray.from_arrays([1, 0, 1], pa.array(["a", "b"], pa.string_view()))
    small = [
        pa.DictionaryArray.from_arrays(
            pa.array(range(100), pa.int8()), [f"{part} {i}" for i in range(100)]
        )
        for part in "ab"
    ]
    for array in (twice, holes, unused, views):
        plain = [None if v is None else str(v) for v in array.to_pylist()]
        batch = encode_wide(NAMES, pa.table({"x": array}))
        assert_same(batch, NAMES, [{"x": v} if v is not None else {} for v in plain])
    table = pa.table({"x": pa.chunked_array(small)})
    assert_same(encode_wide(NAMES, table), NAMES, [{"x": v} for v in table["x"].to_pylist()])


def test_each_distinct_string_once() -> None:
    table = pa.table({"x": pa.chunked_array([["a", "b", "a"], ["b", "c"]])})
    assert len(encode_wide(NAMES, table).text_begin) - 1 == 3
    encoded = pa.DictionaryArray.from_arrays([5, 5, 7], [str(i) for i in range(1000)])
    assert len(encode_wide(NAMES, pa.table({"x": encoded})).text_begin) - 1 == 2


def refused(table: Any, names: dict[str, int] = NAMES) -> str:
    with pytest.raises(InvalidValue) as caught:
        encode_wide(names, table)
    return str(caught.value)


def test_values_that_do_not_fit() -> None:
    array = pa.array([1, None, 2**63], pa.uint64())
    said = "attribute 'x', row 2: the integer 9223372036854775808 does not fit"
    assert said in refused(pa.table({"x": array}))
    assert "row 5" in refused(pa.table({"x": pa.chunked_array([array[:2], array[:1], array])}))
    assert said in refused(pa.table({"x": array.dictionary_encode()}))
    late = pa.array([0, 253_402_300_800], pa.timestamp("s", tz="UTC"))
    assert "'x', row 1: the instant lies outside the years" in refused(pa.table({"x": late}))
    wild = pa.array([2**62], pa.timestamp("s", tz="UTC"))
    assert "row 0: the instant lies outside" in refused(pa.table({"x": wild}))
    fine = pa.array([1_001], pa.timestamp("ns", tz="UTC"))
    assert "row 0: the instant (1001 nanoseconds) is finer" in refused(pa.table({"x": fine}))
    days = pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    assert "row 0: the instant lies outside" in refused(pa.table({"x": days}))


def test_what_is_null_is_not_checked() -> None:
    mask = np.array([True, False])
    big = pa.array(np.array([2**63, 1], np.uint64), mask=mask)
    late = pa.array(np.array([2**62, 1]), mask=mask).cast(pa.timestamp("s", tz="UTC"))
    check_table(pa.table({"x": big, "y": late}))


def test_types_that_hold_no_value() -> None:
    naive = pa.array([0], pa.timestamp("us"))
    assert "has no time zone; if it is in UTC, cast it" in refused(pa.table({"x": naive}))
    for array in (
        pa.array([1], pa.time64("us")),
        pa.array([1], pa.duration("s")),
        pa.array([1], pa.time64("us")).dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays([1], ["a"]),
    ):
        assert "column 'x': the type" in refused(pa.table({"x": array}))
        inside = pa.StructArray.from_arrays([array], ["x"])
        assert "column 's.x': the type" in refused(pa.table({"s": inside}))
        known = pa.table({"z": array, "y": [1]})
        assert_same(encode_wide(NAMES, known), NAMES, [{"y": 1}])
    assert "not a list" in refused([1])


def test_columns_that_are_there_twice() -> None:
    one, nested = pa.array([1]), pa.StructArray.from_arrays([pa.array([1])], ["x"])
    assert "'x' is there twice" in refused(pa.Table.from_arrays([one, one], ["x", "x"]))
    assert "'s.x' is there twice" in refused(pa.Table.from_arrays([one, nested], ["s.x", "s"]))
    assert "'z' is there twice" in refused(pa.Table.from_arrays([one, one], ["z", "z"]))


def test_tables_of_nothing() -> None:
    check_table(pa.table({"z": [1, 2]}))
    check_table(pa.table({"x": pa.array([], pa.string()), "y": pa.array([], pa.int64())}))
    check_table(pa.table({"x": pa.chunked_array([], pa.dictionary(pa.int8(), pa.string()))}))
    check_table(pa.table({"x": pa.nulls(3)}))
    check_table(pa.table({"s": pa.array([{}, None], pa.struct([]))}))


def test_strings_that_are_not_utf8() -> None:
    offsets = pa.py_buffer(np.array([0, 1], np.int32))
    column = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff")])
    assert "attribute 'x': a string is not UTF-8" in refused(pa.table({"x": column}))


def test_many_blocks() -> None:
    rng = np.random.default_rng(1)
    size = 70_000
    mask = rng.random(size) < 0.3
    table = pa.table(
        {
            "x": pa.array(rng.integers(-(2**62), 2**62, size), mask=mask),
            "y": pa.array([f"t{i % 7}" for i in range(size)]),
            "s": pa.StructArray.from_arrays([pa.array(rng.normal(0, 1e18, size))], ["x"]),
        }
    )
    check_table(table)


# ---- maps


@pytest.mark.parametrize(
    ("kind", "items"),
    [
        (pa.string(), ["a", None, "é", "a"]),
        (pa.int64(), INTS),
        (pa.int16(), [1, None, -1]),
        (pa.float64(), BEYOND),
        (pa.bool_(), [True, None, False]),
        (pa.timestamp("ms", tz="UTC"), [0, None, -1]),
        (pa.dictionary(pa.int8(), pa.string()), ["a", None, "é", "a"]),
        (pa.null(), [None]),
    ],
    ids=str,
)
@pytest.mark.parametrize("keys", [pa.string(), pa.large_string()], ids=str)
def test_maps(kind: Any, items: list[Any], keys: Any) -> None:
    entries = [[("x", v), ("y", items[0]), ("unknown", v)] for v in items]
    entries[1:1] = [None, [], [("unknown", items[0])]]
    plain = pa.array(items, kind)
    of = dict(zip(map(repr, items), [plain[i] for i in range(len(items))], strict=True))
    scalars = [
        {} if row is None else {k: of[repr(v)] for k, v in row if of[repr(v)].is_valid}
        for row in entries
    ]
    messages = [
        next(rows.messages(pa.table({k: pa.array([v], kind) for k, v in row.items()})))
        if row
        else Message()
        for row in scalars
    ]
    column = pa.array(entries, pa.map_(keys, kind))
    assert_same(encode_map(NAMES, column), NAMES, messages)
    assert_same(encode_map(NAMES, column[1:-1]), NAMES, messages[1:-1])
    chunked = pa.chunked_array([column[2:], column[:0], column[:3]])
    assert_same(encode_map(NAMES, chunked), NAMES, messages[2:] + messages[:3])


def refused_map(entries: list[Any], kind: Any) -> str:
    column = pa.array([[], *entries], pa.map_(pa.string(), kind))
    with pytest.raises(InvalidValue) as caught:
        encode_map(NAMES, pa.chunked_array([column[:1], column]))
    return str(caught.value)


def test_bad_maps() -> None:
    assert refused_map([[("x", 1), ("x", 1)]], pa.int64()) == (
        "row 2: the attribute 'x' is there twice"
    )
    assert "'unknown' is there twice" in refused_map([[("unknown", 1)] * 2], pa.int64())
    assert refused_map([[("", 1)]], pa.int64()) == "row 2: an attribute's name is empty"
    assert "attribute 'x', row 3" in refused_map([[("x", 1)], [("x", 2**63)]], pa.uint64())
    assert "the type duration[s] holds" in refused_map([[("x", 1)]], pa.duration("s"))
    clocks = pa.array([[("unknown", 1)]], pa.map_(pa.string(), pa.duration("s")))
    assert_same(encode_map(NAMES, clocks), NAMES, [{}])
    with pytest.raises(InvalidValue, match="the keys of a map are strings, not int64"):
        encode_map(NAMES, pa.array([[(1, 1)]], pa.map_(pa.int64(), pa.int64())))
    with pytest.raises(InvalidValue, match=r"a map column is map<string, \.\.\.>, not int64"):
        encode_map(NAMES, pa.array([1]))


# ---- properties


ARROW = {
    Type.BOOL: pa.bool_(),
    Type.INT: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.STRING: pa.string(),
    Type.TIME: pa.timestamp("us", tz="UTC"),
}
COLUMNS = {f"{type} {i}": type for type in Type for i in range(2)}


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries({c: st.none() | VALUES[type] for c, type in COLUMNS.items()}),
        max_size=6,
    ),
    st.sets(st.sampled_from(sorted(COLUMNS))),
    st.booleans(),
)
def test_messages_as_wide_rows(
    found: list[dict[str, Value | None]], known: set[str], encoded: bool
) -> None:
    schema = pa.schema([(column, ARROW[type]) for column, type in COLUMNS.items()])
    table = pa.Table.from_pylist(found, schema)
    if encoded:
        arrays = [column.combine_chunks().dictionary_encode() for column in table.columns]
        table = pa.Table.from_arrays(arrays, table.column_names)
    names = {name: i for i, name in enumerate(sorted(known))}
    messages = list(map(Message, found))
    assert_same(encode_wide(names, table), names, messages)
    assert_same(encode_wide(names, table.slice(1)), names, messages[1:])


@settings(max_examples=300, deadline=None)
@given(st.lists(values, min_size=1, max_size=8))
def test_raw_values_settle_as_the_oracle_says(found: list[Value]) -> None:
    for value in found:
        message = Message({"x": value})
        table = pa.table({"x": pa.array([value], ARROW[message.attributes[0].type])})
        builder = BatchBuilder(NAMES)
        builder.add(message)
        assert decoded(encode_wide(NAMES, table)) == decoded(builder.batch())
