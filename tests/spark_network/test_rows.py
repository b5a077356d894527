"""Rows as messages to publish: without a session, and without a broker."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.streaming.datasource")

from pyspark.sql.types import (
    BinaryType,
    DataType,
    LongType,
    StringType,
    StructType,
)

from palio import InvalidValue
from palio.net.client.attributes import to_bytes
from palio.spark_network.columns import PLAIN, ColumnLayout, StreamedMessage
from palio.spark_network.rows import Rows, in_order

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def schema(**columns: DataType) -> StructType:
    made = StructType()
    for name, kind in columns.items():
        made = made.add(name, kind)
    return made


def taken(message: dict[str, Any], body: bytes = b"") -> StreamedMessage:
    return StreamedMessage(7, to_bytes(message), body, "anyone/ann", 3, NOON)


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
        batch = ColumnLayout(PLAIN).batch([taken({"x": 2}), taken({"x": 1}, b"b")])
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
