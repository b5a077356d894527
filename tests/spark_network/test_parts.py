"""Options, columns, rows and filters: without a session, and without a broker."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.streaming.datasource")

from pyspark import cloudpickle
from pyspark.sql import datasource as ds
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from palio import InvalidValue, parse
from palio.net.attributes import to_bytes
from palio.spark_network import PalioSource
from palio.spark_network.columns import PLAIN, Columns, Taken
from palio.spark_network.options import BATCH_READ, STREAM_READ, WRITE, read_options
from palio.spark_network.pushdown import narrowed
from palio.spark_network.rows import Rows, in_order

URL = {"url": "palio://127.0.0.1:7400"}
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def schema(**columns: DataType) -> StructType:
    made = StructType()
    for name, kind in columns.items():
        made = made.add(name, kind)
    return made


def taken(message: dict[str, Any], body: bytes = b"") -> Taken:
    return Taken(7, to_bytes(message), body, "anyone/ann", 3, NOON)


class TestOptions:
    @pytest.mark.parametrize(
        ("given", "sentence"),
        [
            ({}, r'needs the broker: .option\("url", "palio://host:port"\)'),
            ({"path": "palio://x"}, "not as a path"),
            ({"url": "http://x"}, "palio://host:port"),
            (URL | {"predicat": "x = 1"}, "no option 'predicat'; did you mean 'predicate'"),
            (URL | {"durable": "x", "endingTime": "2026-01-01"}, "no option 'endingtime'"),
            (URL | {"predicate": "x <"}, "the option `predicate`"),
            (URL | {"maxMessages": "0"}, "a number from 1 to"),
            (URL | {"timeout": "soon"}, "a number of seconds"),
            (URL | {"startingTime": "yesterday"}, "a time such as 2026"),
            (URL | {"mode": "DROPMALFORMED"}, "PERMISSIVE or FAILFAST"),
            (URL | {"full": "wait"}, "block or drop or end"),
            (URL | {"certificate": "x.pem"}, "give both"),
        ],
    )
    def test_sentences(self, given: dict[str, str], sentence: str) -> None:
        with pytest.raises(InvalidValue, match=sentence):
            read_options(given, STREAM_READ, "a stream that is read")

    def test_names_in_any_case_and_times_in_utc(self) -> None:
        given = URL | {
            "STARTINGTIME": "2026-11-01T13:00:00+01:00",
            "endingtime": "2026-11-01T12:00",
        }
        options = read_options(given, BATCH_READ, "a batch that is read")
        assert options.starting_time == options.ending_time == NOON.timestamp() * 1e6
        assert options.predicate == "TRUE"

    def test_a_stream_needs_a_name(self) -> None:
        with pytest.raises(InvalidValue, match="durable"):
            PalioSource(URL).streamReader(PLAIN)

    def test_messages_are_not_overwritten(self) -> None:
        with pytest.raises(InvalidValue, match="cannot be taken back"):
            PalioSource(URL).writer(PLAIN, True)

    def test_order_by(self) -> None:
        assert read_options(URL | {"orderBy": "a, b"}, WRITE, "w").order_by == ("a", "b")


class TestColumns:
    def test_plain(self) -> None:
        batch = Columns(PLAIN).batch([taken({"x": 1}, b"body")])
        expected = {
            "message": '{"x":1}',
            "body": b"body",
            "publisher": "anyone/ann",
            "number": 3,
            "time": NOON,
        }
        assert batch.to_pylist() == [expected]

    def test_typed(self) -> None:
        chosen = schema(
            price=LongType(), dest=StringType(), at=TimestampType(), time=StringType(),
            _time=TimestampType(), _number=LongType(), body=BinaryType(),
        )  # fmt: skip
        messages = [taken({"price": 5, "dest": "MXP", "at": NOON}, b"b"), taken({"time": "noon"})]
        common = {"_time": NOON, "_number": 3}
        assert Columns(chosen).batch(messages).to_pylist() == [
            {"price": 5, "dest": "MXP", "at": NOON, "time": None, "body": b"b", **common},
            {"price": None, "dest": None, "at": None, "time": "noon", "body": b"", **common},
        ]

    @pytest.mark.parametrize(
        ("kind", "value", "fitted"),
        [
            (LongType(), 3.0, 3),
            (LongType(), 3.5, None),
            (LongType(), float("inf"), None),
            (LongType(), True, None),
            (LongType(), "3", None),
            (ByteType(), 127, 127),
            (ByteType(), 128, None),
            (DoubleType(), 3, 3.0),
            (DoubleType(), 2**53 + 1, None),
            (DoubleType(), "3", None),
            (StringType(), 3, None),
            (BooleanType(), 1, None),
            (BooleanType(), False, False),
            (TimestampType(), "2026-11-01T12:00:00Z", None),
        ],
    )
    def test_nothing_is_cast(self, kind: DataType, value: object, fitted: object) -> None:
        chosen = schema(x=kind)
        columns = cloudpickle.loads(cloudpickle.dumps(Columns(chosen)))  # as in a task
        assert columns.batch([taken({"x": value})]).to_pylist() == [{"x": fitted}]
        if fitted is None:
            with pytest.raises(InvalidValue, match="message 3 of anyone/ann: the attribute 'x'"):
                Columns(chosen, is_strict=True).batch([taken({"x": value})])

    def test_sentences(self) -> None:
        with pytest.raises(InvalidValue, match="no attribute has the type float"):
            Columns(schema(x=FloatType()))
        with pytest.raises(InvalidValue, match="'_time' is timestamp, not string"):
            Columns(schema(_time=StringType()))
        with pytest.raises(InvalidValue, match="NOT NULL"):
            Columns(StructType().add("x", LongType(), nullable=False))


class TestRows:
    def test_columns_are_attributes(self) -> None:
        chosen = schema(x=LongType(), dest=StringType(), body=BinaryType(), _number=LongType())
        rows = [
            {"x": 2, "dest": None, "body": None, "_number": 9},
            {"x": None, "dest": "MXP", "body": b"b", "_number": 9},
        ]
        found = in_order(Rows(chosen).encode([pa.RecordBatch.from_pylist(rows)]))
        assert found == [(b'{"dest":"MXP"}', b"b"), (b'{"x":2}', b"")]

    def test_what_was_read_can_be_written(self) -> None:
        batch = Columns(PLAIN).batch([taken({"x": 2}), taken({"x": 1}, b"b")])
        assert in_order(Rows(PLAIN).encode([batch])) == [(b'{"x":1}', b"b"), (b'{"x":2}', b"")]

    def test_the_order_is_that_of_the_content_however_rows_come(self) -> None:
        rows = [{"x": i % 7 or None, "y": i} for i in range(50)]
        chosen = schema(x=LongType(), y=LongType())
        found = set()
        for seed in range(5):
            random.Random(seed).shuffle(rows)
            batches = [pa.RecordBatch.from_pylist(rows[i : i + 8]) for i in range(0, 50, 8)]
            found.add(tuple(in_order(Rows(chosen, ("x",)).encode(batches))))
        (order,) = found
        keys = [a for a, _ in order]
        assert keys[0] == b'{"y":0}'  # NULL first, and then by x
        assert keys[-1].startswith(b'{"x":6')

    def test_sentences(self) -> None:
        with pytest.raises(InvalidValue, match=r"beside the column `message`.*'x'"):
            Rows(schema(message=StringType(), x=LongType()))
        with pytest.raises(InvalidValue, match="orderBy names the column 'z'; there are x"):
            Rows(schema(x=LongType()), ("z",))
        rows = Rows(schema(message=StringType()))
        for text, sentence in ((None, "a row has no message"), ("[1]", "object")):
            with pytest.raises(InvalidValue, match=sentence):
                list(rows.encode([pa.RecordBatch.from_pylist([{"message": text}])]))


class TestPushdown:
    def test_the_broker_is_asked_for_less(self) -> None:
        filters = [
            ds.LessThan(("price",), 500),
            ds.Not(ds.EqualTo(("dest",), "MXP")),
            ds.In(("kind",), (1, 2)),
            ds.IsNotNull(("price",)),
            ds.StringStartsWith(("dest",), "M"),
            ds.EqualTo(("at",), NOON),
        ]
        names = frozenset({"price", "dest", "kind", "at"})
        found = parse(narrowed("kind = 1 OR kind = 2", filters, names))
        inside = {"price": 499, "dest": "MIL", "kind": 1, "at": NOON}
        assert found.matches(inside)
        for change in ({"price": 500}, {"dest": "MXP"}, {"dest": "LIN"}, {"kind": 3}):
            assert not found.matches(inside | change)

    @pytest.mark.parametrize(
        "filter",
        [
            ds.IsNull(("price",)),
            ds.Not(ds.IsNotNull(("price",))),
            ds.EqualTo(("time",), NOON),
            ds.EqualTo(("price", "x"), 1),
            ds.EqualTo(("price",), float("nan")),
            ds.EqualTo(("price",), None),
            ds.Not(ds.EqualNullSafe(("price",), 1)),
            ds.Not(ds.In(("price",), (1, 2))),
            ds.EqualTo(("price",), [1]),
        ],
    )
    def test_what_spark_must_do(self, filter: Any) -> None:
        assert narrowed("x = 1", [filter], frozenset({"price"})) == "x = 1"
