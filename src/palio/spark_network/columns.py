"""Messages as columns: which column of a DataFrame holds which part of a received message.

    no schema given      message STRING (the attributes, JSON), body BINARY, publisher STRING,
                         number BIGINT, time TIMESTAMP
    a schema given       a column is the attribute of that name; NULL: it is not there
                         body BINARY is the body; _message, _publisher, _number and _time are
                         what the first form calls without the underscore; _session says which of
                         the clients with the publisher's name it was

An attribute fits its column when it has the column's type, or is a number that the column holds
exactly. What does not fit is NULL, or with mode FAILFAST an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from palio.errors import InvalidValue
from palio.net.client.attributes import from_bytes
from palio.net.client.notes import ReceivedMessage

if TYPE_CHECKING:
    import pyarrow as pa

PLAIN = (
    StructType()
    .add("message", StringType())
    .add("body", BinaryType())
    .add("publisher", StringType())
    .add("number", LongType())
    .add("time", TimestampType())
)


class StreamedMessage(NamedTuple):
    """A message that a subscription has received."""

    position: int
    attributes: bytes
    body: bytes
    publisher: str
    number: int
    time: datetime
    session: str = ""

    @classmethod
    def of(cls, note: ReceivedMessage) -> StreamedMessage:
        return cls(
            note.position,
            note.json,
            note.body,
            note.publisher,
            note.number,
            note.time,
            note.session,
        )


Fit: TypeAlias = Callable[[Any], Any]

_OF_THE_NETWORK: dict[str, tuple[type[DataType], Callable[[StreamedMessage], Any]]] = {
    "message": (StringType, lambda received: received.attributes.decode()),
    "publisher": (StringType, lambda received: received.publisher),
    "session": (StringType, lambda received: received.session),
    "number": (LongType, lambda received: received.number),
    "time": (TimestampType, lambda received: received.time),
}
_INTEGERS: dict[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_NO_FIT = object()


class ColumnLayout:
    """How messages become record batches of a schema."""

    def __init__(self, schema: StructType, is_strict: bool = False) -> None:
        self._schema = schema
        self._is_strict = is_strict
        self._meta: dict[str, Callable[[StreamedMessage], Any]] = {}
        self._fits: dict[str, Fit] = {}
        is_plain = _described(schema) == _described(PLAIN)
        for field in schema.fields:
            self._add(field.name, field.dataType, is_plain)
            if not field.nullable:
                raise InvalidValue(
                    f"column {field.name!r} is NOT NULL, but a message may be without it",
                    remedy="leave NOT NULL out",
                )

    def __reduce__(self) -> tuple[type[ColumnLayout], tuple[StructType, bool]]:
        return (
            ColumnLayout,
            (self._schema, self._is_strict),
        )  # functions cannot be pickled: they are made anew

    @property
    def attributes(self) -> frozenset[str]:
        """The columns that are attributes."""
        return frozenset(self._fits)

    def _add(self, name: str, kind: DataType, is_plain: bool) -> None:
        own = name if is_plain else name.removeprefix("_") if name.startswith("_") else ""
        if name == "body" and isinstance(kind, BinaryType):
            self._meta[name] = lambda received: received.body
        elif own in _OF_THE_NETWORK:
            expected, get = _OF_THE_NETWORK[own]
            if not isinstance(kind, expected):
                raise InvalidValue(
                    f"column {name!r} is {expected().simpleString()}, not {kind.simpleString()}"
                )
            self._meta[name] = get
        else:
            self._fits[name] = _fit(name, kind)

    def batch(self, messages: Sequence[StreamedMessage]) -> pa.RecordBatch:
        import pyarrow as pa

        values: dict[str, list[Any]] = {
            name: [get(received) for received in messages] for name, get in self._meta.items()
        }
        if self._fits:
            values.update(self._attributes(messages))
        fields = [pa.field(f.name, _arrow(f.dataType)) for f in self._schema.fields]
        arrays = [pa.array(values[field.name], field.type) for field in fields]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _attributes(self, messages: Sequence[StreamedMessage]) -> dict[str, list[Any]]:
        values: dict[str, list[Any]] = {name: [] for name in self._fits}
        for received in messages:
            attributes = from_bytes(received.attributes)
            for name, fit in self._fits.items():
                value = attributes.get(name)
                fitted = None if value is None else fit(value)
                if fitted is _NO_FIT:
                    if self._is_strict:
                        raise InvalidValue(self._misfit(received, name, value))
                    fitted = None
                values[name].append(fitted)
        return values

    def _misfit(self, received: StreamedMessage, name: str, value: object) -> str:
        kind = self._schema[name].dataType.simpleString()
        return (
            f"message {received.number} of {received.publisher}: the attribute {name!r} is {value!r}, "
            f"which does not fit into a column of type {kind}; narrow the predicate, change the "
            "schema, or take mode PERMISSIVE, which gives NULL"
        )


def _described(schema: StructType) -> list[tuple[str, DataType]]:
    return [(field.name, field.dataType) for field in schema.fields]


def _fit(name: str, kind: DataType) -> Fit:
    bits = _INTEGERS.get(type(kind))
    if bits is not None:
        return _integer(-(1 << bits - 1), (1 << bits - 1) - 1)
    if isinstance(kind, DoubleType):
        return _double
    if type(kind) in _TYPES:
        return _exactly(_TYPES[type(kind)])
    raise InvalidValue(
        f"column {name!r}: no attribute has the type {kind.simpleString()}",
        remedy="take BOOLEAN, an "
        "integer, DOUBLE, STRING or TIMESTAMP (and `body BINARY` for the body)",
    )


def _integer(least: int, most: int) -> Fit:
    def fit(value: Any) -> Any:
        if type(value) is float and value.is_integer():
            value = int(value)
        return value if type(value) is int and least <= value <= most else _NO_FIT

    return fit


def _double(value: Any) -> Any:
    if type(value) is float:
        return value
    return float(value) if type(value) is int and int(float(value)) == value else _NO_FIT


def _exactly(kind: type) -> Fit:
    return lambda value: value if type(value) is kind else _NO_FIT


_TYPES: dict[type[DataType], type] = {BooleanType: bool, StringType: str, TimestampType: datetime}


def _arrow(kind: DataType) -> pa.DataType:
    import pyarrow as pa

    if isinstance(kind, TimestampType):
        return pa.timestamp("us", tz="UTC")
    names: dict[type[DataType], str] = {
        BinaryType: "binary",
        BooleanType: "bool",
        ByteType: "int8",
        ShortType: "int16",
        IntegerType: "int32",
        LongType: "int64",
        DoubleType: "float64",
        StringType: "string",
    }
    return pa.type_for_alias(names[type(kind)])
