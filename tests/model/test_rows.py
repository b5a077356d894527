import subprocess
import sys
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import InvalidValue
from palio.model.message import Message
from palio.model.rows import messages
from palio.model.values import INT_MAX, Type, Value
from tests.strategies import VALUES

ARROW = {
    Type.BOOL: pa.bool_(),
    Type.INT: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.STRING: pa.string(),
    Type.TIME: pa.timestamp("us", tz="UTC"),
}


def read(**columns: Any) -> list[Message]:
    return list(messages(pa.table(columns)))


def column(values: list[Any], kind: Any) -> list[Value | None]:
    """What becomes of a column, as a table of several chunks, a batch, and inside a struct."""
    array = pa.array(values, kind)
    table = pa.table({"x": pa.chunked_array([array, array[:0], array], type=kind)})
    twice = [row.get("x") for row in messages(table)]
    once = [row.get("x") for row in messages(pa.record_batch({"x": array}))]
    inside = pa.StructArray.from_arrays([array], ["x"])
    nested = [row.get("s.x") for row in messages(pa.record_batch({"s": inside}))]
    assert repr(twice) == repr(once + once)
    assert repr(nested) == repr(once)
    assert repr([row.get("x") for row in messages(table.slice(1))]) == repr(twice[1:])
    return once


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries({str(kind): st.none() | VALUES[kind] for kind in Type}), max_size=5
    )
)
def test_rows_are_messages(rows: list[dict[str, Value | None]]) -> None:
    schema = pa.schema([(str(kind), ARROW[kind]) for kind in Type])
    assert list(messages(pa.Table.from_pylist(rows, schema))) == list(map(Message, rows))


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"])
def test_integers(kind: str) -> None:
    assert column([1, None, 100], kind) == [1, None, 100]


def test_uint64() -> None:
    assert column([0, INT_MAX, None], pa.uint64()) == [0, INT_MAX, None]
    table = pa.table({"n": pa.chunked_array([[0, 1], [2, INT_MAX + 1]], type=pa.uint64())})
    found = messages(table)
    assert [next(found)["n"] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(InvalidValue, match="attribute 'n', row 3: the integer 9223372036854775808"):
        next(found)


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_floats(kind: Any) -> None:
    got = column([1.5, None, float("-inf"), float("nan")], kind)
    assert repr(got) == "[1.5, None, -inf, nan]"
    assert {type(value) for value in got} == {float, type(None)}


def test_a_float32_keeps_its_own_value() -> None:
    assert column([0.1], pa.float32()) == [0.10000000149011612]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_strings(kind: Any) -> None:
    assert column(["", None, "caf\u00e9", "\U0001f600\0"], kind) == [
        "",
        None,
        "caf\u00e9",
        "\U0001f600\0",
    ]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_dictionary_of_strings(kind: Any) -> None:
    encoded = pa.DictionaryArray.from_arrays([1, None, 0, 2], pa.array(["a", "b", None], kind))
    assert [row.get("x") for row in read(x=encoded)] == ["b", None, "a", None]
    assert [row.get("x") for row in messages(pa.table({"x": encoded}).slice(2))] == ["a", None]


def test_dictionary_of_the_rest() -> None:
    indices = pa.array([1, None, 0], pa.int8())
    days = pa.DictionaryArray.from_arrays(indices, pa.array([0, 1], pa.date32()))
    nanos = pa.DictionaryArray.from_arrays(indices, pa.array([0, 1000], pa.timestamp("ns", "UTC")))
    bools = pa.DictionaryArray.from_arrays(indices, pa.array([False, True]))
    got = read(day=days, nano=nanos, bool=bools)
    assert got[0] == Message(
        {
            "day": datetime(1970, 1, 2, tzinfo=UTC),
            "nano": datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
            "bool": True,
        }
    )
    assert got[1] == Message()


def test_a_bad_entry_of_a_dictionary_counts_only_where_it_is_used() -> None:
    entries = pa.array([1, INT_MAX + 1], pa.uint64())
    assert read(x=pa.DictionaryArray.from_arrays([0, 0], entries))[1]["x"] == 1
    with pytest.raises(InvalidValue, match="attribute 'x', row 1"):
        read(x=pa.DictionaryArray.from_arrays([0, 1], entries))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "+05:30"])
def test_timestamps(unit: str, zone: str) -> None:
    kind = pa.timestamp(unit, tz=zone)
    moments = [datetime(1900, 1, 1, tzinfo=UTC), None, datetime(2200, 6, 1, 12, tzinfo=UTC)]
    got = column(moments, kind)
    assert got == moments
    assert all(isinstance(m, datetime) and m.tzinfo is UTC for m in got if m is not None)


def test_timestamps_before_1970() -> None:
    raw = pa.array([-1_000], pa.int64())
    moment = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert read(x=raw.cast(pa.timestamp("ns", "UTC")))[0]["x"] == moment
    assert read(x=raw.cast(pa.timestamp("us", "UTC")))[0]["x"] == moment.replace(microsecond=999000)


@pytest.mark.parametrize("value", [1, 999, -1, 1_000_000_001])
def test_nanoseconds_are_not_rounded(value: int) -> None:
    with pytest.raises(InvalidValue, match=r"attribute 'x', row 1: .* finer than a microsecond"):
        read(x=pa.array([0, value], pa.timestamp("ns", "UTC")))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.timestamp("s", "UTC"), 253402300800),
        (pa.timestamp("ms", "UTC"), -62135596800001),
        (pa.timestamp("us", "UTC"), 253402300800_000_000),
        (pa.timestamp("s", "UTC"), 2**63 - 1),
        (pa.timestamp("us", "UTC"), -(2**63)),
        (pa.date32(), 2**31 - 1),
        (pa.date64(), -62135596800001),
    ],
)
def test_instants_outside_the_calendar(kind: Any, value: int) -> None:
    array = pa.array([value], pa.int32() if kind == pa.date32() else pa.int64()).view(kind)
    with pytest.raises(InvalidValue, match=r"attribute 'x', row 0: .* outside the years 1 to 9999"):
        read(x=array)


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_dates(kind: Any) -> None:
    days = [date(1, 1, 1), None, date(1969, 12, 31), date(9999, 12, 31)]
    wanted = [day and datetime(day.year, day.month, day.day, tzinfo=UTC) for day in days]
    assert column(days, kind) == wanted


def test_a_date64_within_the_day_is_the_day() -> None:
    array = pa.array([-1, 1], pa.int64()).view(pa.date64())
    assert [row["x"] for row in read(x=array)] == [
        datetime(1969, 12, 31, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
    ]


def test_timestamp_without_a_zone() -> None:
    with pytest.raises(InvalidValue, match=r"column 'when': .*timestamp\('us', tz='UTC'\)"):
        messages(pa.table({"when": pa.array([], pa.timestamp("us"))}))
    encoded = pa.DictionaryArray.from_arrays([0], pa.array([0], pa.timestamp("s")))
    inside = pa.StructArray.from_arrays([encoded], ["when"])
    with pytest.raises(InvalidValue, match=r"column 's\.when': .*no time zone"):
        messages(pa.table({"s": inside}))


def test_struct() -> None:
    kind = pa.struct([("a", pa.int64()), ("in", pa.struct([("b", pa.string())]))])
    rows = [{"a": 1, "in": {"b": "x"}}, None, {"a": None, "in": None}, {"a": 2, "in": {"b": None}}]
    table = pa.table({"s": pa.array(rows, kind), "t": [1, 2, 3, 4]})
    first = Message({"s.a": 1, "s.in.b": "x", "t": 1})
    wanted = [first, Message({"t": 2}), Message({"t": 3}), Message({"s.a": 2, "t": 4})]
    assert list(messages(table)) == wanted
    assert list(messages(table.slice(1, 2))) == wanted[1:3]
    assert list(next(messages(table))) == ["s.a", "s.in.b", "t"]


def test_what_a_null_struct_hides_is_not_read() -> None:
    hidden = pa.array([INT_MAX + 1, 5], pa.uint64())
    struct = pa.StructArray.from_arrays([hidden], ["a"], mask=pa.array([True, False]))
    assert read(s=struct) == [Message(), Message({"s.a": 5})]


def test_null_column_and_no_columns() -> None:
    assert read(x=pa.nulls(2), y=[1, None]) == [Message({"y": 1}), Message()]
    assert list(messages(pa.table({"x": [1, 2]}).select([]))) == [Message(), Message()]
    assert read() == []


@pytest.mark.parametrize(
    "kind",
    [
        pa.duration("s"),
        pa.time32("s"),
        pa.time64("us"),
        pa.month_day_nano_interval(),
        pa.run_end_encoded(pa.int32(), pa.string()),
    ],
    ids=str,
)
def test_type_without_a_value(kind: Any) -> None:
    schema = pa.schema([("ok", pa.int8()), ("odd", kind)])
    with pytest.raises(InvalidValue) as caught:
        messages(schema.empty_table())
    assert str(caught.value).startswith(f"column 'odd': the type {kind} ")


def test_columns_that_nobody_asks_for_never_fail() -> None:
    naive = pa.array([0, 0], pa.timestamp("us"))
    large = pa.array([1, 2**63], pa.uint64())
    table = pa.table({"t": naive, "n": large, "s": pa.array([[1], []], pa.list_(pa.int8()))})
    assert list(messages(table, asked={"x"})) == [
        Message({"n": 1, "s": [1]}),
        Message({"s": []}),
    ]
    with pytest.raises(InvalidValue, match="column 't'"):
        messages(table, asked={"t"})
    with pytest.raises(InvalidValue, match="'n', row 1"):
        list(messages(table, asked={"n"}))


def test_columns_of_one_name() -> None:
    twice = pa.table([[1], [2]], names=["x", "x"])
    with pytest.raises(InvalidValue, match="column 'x' is there twice"):
        messages(twice)
    flat = pa.table({"a.b": [1], "a": [{"b": 2}]})
    with pytest.raises(InvalidValue, match=r"column 'a\.b' is there twice"):
        messages(flat)


def test_column_without_a_name() -> None:
    with pytest.raises(InvalidValue, match="name is empty"):
        messages(pa.table([[1]], names=[""]))


def test_string_that_is_not_utf8() -> None:
    offsets = pa.py_buffer(b"\0\0\0\0\1\0\0\0")
    broken = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff")])
    with pytest.raises(InvalidValue, match="attribute 'x': a string is not UTF-8"):
        read(x=broken)


@pytest.mark.parametrize("table", [None, [], {"x": [1]}, "x"])
def test_what_is_no_table(table: object) -> None:
    with pytest.raises(InvalidValue, match="pyarrow Table or RecordBatch"):
        messages(table)


def test_many_rows_come_in_order() -> None:
    count = 10_000
    encoded = pa.array([f"k{i % 7}" for i in range(count)]).dictionary_encode()
    rows = messages(pa.table({"i": range(count), "k": encoded}).combine_chunks())
    for i, row in enumerate(rows):
        assert row == Message({"i": i, "k": f"k{i % 7}"})
    assert i == count - 1


def test_pyarrow_is_not_imported() -> None:
    script = "import sys, palio.model.rows; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == 0
