"""Options, columns, rows and filters: without a session, and without a broker."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.streaming.datasource")

from pyspark import cloudpickle
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

from palio import InvalidValue
from palio.net.client.attributes import to_bytes
from palio.spark_network.columns import PLAIN, ColumnLayout, StreamedMessage

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def schema(**columns: DataType) -> StructType:
    made = StructType()
    for name, kind in columns.items():
        made = made.add(name, kind)
    return made


def taken(message: dict[str, Any], body: bytes = b"") -> StreamedMessage:
    return StreamedMessage(7, to_bytes(message), body, "anyone/ann", 3, NOON)


class TestColumns:
    def test_plain(self) -> None:
        batch = ColumnLayout(PLAIN).batch([taken({"x": 1}, b"body")])
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
        assert ColumnLayout(chosen).batch(messages).to_pylist() == [
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
        columns = cloudpickle.loads(cloudpickle.dumps(ColumnLayout(chosen)))  # as in a task
        assert columns.batch([taken({"x": value})]).to_pylist() == [{"x": fitted}]
        if fitted is None:
            with pytest.raises(InvalidValue, match="message 3 of anyone/ann: the attribute 'x'"):
                ColumnLayout(chosen, is_strict=True).batch([taken({"x": value})])

    def test_sentences(self) -> None:
        with pytest.raises(InvalidValue, match="no attribute has the type float"):
            ColumnLayout(schema(x=FloatType()))
        with pytest.raises(InvalidValue, match="'_time' is timestamp, not string"):
            ColumnLayout(schema(_time=StringType()))
        with pytest.raises(InvalidValue, match="NOT NULL"):
            ColumnLayout(StructType().add("x", LongType(), nullable=False))
