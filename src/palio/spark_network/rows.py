"""Rows as messages to publish, in an order that is the same however often Spark computes them.

    a column `message` STRING   its text is the message (a JSON object), `body` BINARY the body;
                                publisher, number and time are those of the message that was read,
                                and are not sent
    otherwise                   every column is an attribute (NULL: not there), `body` BINARY the
                                body; _message, _publisher, _session, _number and _time are not
                                sent

A shuffle gives rows in another order each time. Messages are numbered by their order, and a broker
stores each number once. So they are sorted: by the columns of `orderBy`, then by their content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql.types import BinaryType, StringType, StructType

from palio.errors import InvalidValue
from palio.model import rows as model_rows
from palio.net.client.attributes import from_bytes, to_bytes

if TYPE_CHECKING:
    import pyarrow as pa

Encoded: TypeAlias = tuple[tuple[Any, ...], bytes, bytes]
"""Sort key, attributes, body."""

_NOT_SENT = ("publisher", "session", "number", "time")


class Rows:
    """How rows of a schema become messages."""

    def __init__(self, schema: StructType, order_by: tuple[str, ...] = ()) -> None:
        names = schema.fieldNames()
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise InvalidValue(
                f"the column {min(twice)!r} is there twice", remedy="rename one of the two"
            )
        self._order_by = order_by
        for name in order_by:
            if name not in names:
                raise InvalidValue(
                    f"orderBy names the column {name!r}", remedy=f"there are {', '.join(names)}"
                )
        self._has_body = "body" in names and isinstance(schema["body"].dataType, BinaryType)
        self._is_json = "message" in names and isinstance(schema["message"].dataType, StringType)
        left_out = {"body"} if self._has_body else set()
        left_out |= set(_NOT_SENT) if self._is_json else {f"_{name}" for name in _NOT_SENT}
        left_out |= {"message", "_message"} if self._is_json else {"_message"}
        self._attributes = [name for name in names if name not in left_out]
        if self._is_json and self._attributes:
            raise InvalidValue(
                f"beside the column `message`, which is a whole message, there is "
                f"{self._attributes[0]!r}: drop it, or rename `message` if it is an attribute"
            )

    def encode(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Encoded]:
        for batch in batches:
            bodies: Iterable[bytes] = (
                (body or b"" for body in batch.column("body").to_pylist())
                if self._has_body
                else (b"" for _ in range(batch.num_rows))
            )
            yield from zip(self._keys(batch), self._messages(batch), bodies, strict=True)

    def _keys(self, batch: pa.RecordBatch) -> Iterable[tuple[Any, ...]]:
        """NULL comes first, as in Spark."""
        if not self._order_by:
            return (() for _ in range(batch.num_rows))
        columns = [batch.column(name).to_pylist() for name in self._order_by]
        return (
            tuple((value is not None, value) for value in row) for row in zip(*columns, strict=True)
        )

    def _messages(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        if not self._is_json:
            chosen = batch.select(self._attributes)
            for message in model_rows.messages(chosen):
                yield to_bytes(dict(message))
            return
        for text in batch.column("message").to_pylist():
            if text is None:
                raise InvalidValue(
                    "a row has no message: the column `message` is NULL",
                    remedy="filter such rows out",
                )
            from_bytes(text)  # raises what is wrong with it
            yield text.encode()


def in_order(encoded: Iterable[Encoded]) -> list[tuple[bytes, bytes]]:
    """Attributes and bodies as they are numbered."""
    return [(attributes, body) for _, attributes, body in sorted(encoded)]
