"""The broadcast strategy: every worker has the whole table, and an Arrow function asks it.

The function gets wide columns one by one, which is a tenth quicker than as a struct; or one column,
whose Arrow type tells the layout: a string is JSON, a map a map, a list a list of attributes, a
struct wide columns. So it serves SQL as well. It carries a Location and names; workers of a machine
share the table's pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from palio.errors import InvalidValue, MissingSoftware, PalioError
from palio.matching.table import ForwardingTable
from palio.model.message import Message
from palio.spark.tables import Location, opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from palio.spark.messages import Messages

RETURNS = {"array": "array<string>", "ids": "array<int>", "flag": "boolean"}
_ARROW = {"array": pa.list_(pa.string()), "ids": pa.list_(pa.int32()), "flag": pa.bool_()}
_SHOWN_MAX = 200  # characters of a bad message


def with_matches(
    df: DataFrame, messages: Messages, location: Location, output: str, into: str, invalid: str
) -> DataFrame:
    """The DataFrame and a column of what each message matches; `output` is one of RETURNS."""
    match = function(location, output, invalid, messages.names)
    return df.withColumn(into, match(*messages.columns))


def function(
    location: Location, output: str, invalid: str, names: tuple[str, ...] | None = None
) -> Any:
    """The Arrow function from messages to what they match; `names` are those of wide columns."""

    def palio_match(*columns: pa.Array) -> pa.Array:
        return matches(opened(location), columns, names, output, invalid)

    return arrow_function(palio_match, RETURNS[output])


def arrow_function(function: Any, returns: str) -> Any:
    """A column function out of one from Arrow arrays to an Arrow array."""
    try:
        from pyspark.sql.pandas.functions import arrow_udf
    except ImportError:
        import pyspark

        raise MissingSoftware(
            f"palio.spark needs PySpark 4.1 or newer, this is {pyspark.__version__}: "
            "pip install --upgrade 'palio[spark]'"
        ) from None
    return arrow_udf(function, returns)  # type: ignore[call-overload]


# ---- in the worker


def matches(
    table: ForwardingTable,
    columns: Sequence[pa.Array],
    names: Sequence[str] | None,
    output: str,
    invalid: str,
) -> pa.Array:
    """What each message matches; one that is no message is NULL or an error."""
    rows, options = rows_of(columns, names)
    try:
        return _answers(table, rows, options, output)
    except InvalidValue:
        _answers(table, rows.slice(0, 0), options, output)  # if the type is wrong, all rows are
        if invalid == "error":
            raise InvalidValue(
                f"a row is no message: {_first_bad(table, rows, options, output)} "
                "(invalid='null' gives such rows NULL)"
            ) from None
    if "json" in options:
        texts = columns[0]
        kept = pa.array([_is_message(text) for text in texts.to_pylist()])
        nothing = pa.scalar(None, texts.type)
        readable = pa.RecordBatch.from_arrays([pc.if_else(kept, texts, nothing)], ["message"])
        found = _answers(table, readable, options, output)
        return pc.if_else(kept, found, pa.scalar(None, found.type))
    return pa.concat_arrays(list(_pieces(table, rows, options, output)))


def _is_message(text: str | None) -> bool:
    try:
        Message.from_json("{}" if text is None else text)
    except InvalidValue:
        return False
    return True


def rows_of(
    columns: Sequence[pa.Array], names: Sequence[str] | None
) -> tuple[pa.RecordBatch, dict[str, str]]:
    """The messages as a table reads them, and the options of `forward_batch` for that."""
    if names is not None:
        return pa.RecordBatch.from_arrays(list(columns), list(names)), {}
    if len(columns) != 1:
        raise InvalidValue(
            f"the messages are one argument, not {len(columns)}; struct(*) makes one of columns"
        )
    messages = columns[0]
    kind, is_ = messages.type, pa.types
    if is_.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        if any(field.metadata and b"variant" in field.metadata for field in fields):
            raise InvalidValue("a variant is matched as its JSON: write to_json(column)")
        return pa.RecordBatch.from_arrays(messages.flatten(), [f.name for f in fields]), {}
    if is_.is_map(kind):
        layout = "map"
    elif is_.is_list(kind) or is_.is_large_list(kind):
        layout = "attributes"
    else:
        layout = "json"
    return pa.RecordBatch.from_arrays([messages], ["message"]), {layout: "message"}


def _answers(
    table: ForwardingTable, rows: pa.RecordBatch, options: dict[str, Any], output: str
) -> pa.Array:
    found = table.forward_batch(rows, ids=output != "array", **options)
    if output == "flag":
        return pc.greater(pc.list_value_length(found), 0)
    try:
        return found.cast(_ARROW[output])
    except pa.ArrowInvalid as error:
        raise PalioError(
            f"{len(rows):,} rows match too many interfaces for one Arrow batch ({error}); "
            "lower spark.sql.execution.arrow.maxRecordsPerBatch"
        ) from None


def _pieces(table: ForwardingTable, rows: Any, options: dict[str, str], output: str) -> Any:
    """The answers of rows of which a few are bad, found by halving."""
    try:
        yield _answers(table, rows, options, output)
    except InvalidValue:
        if len(rows) == 1:
            yield pa.nulls(1, _ARROW[output])
            return
        half = len(rows) // 2
        yield from _pieces(table, rows.slice(0, half), options, output)
        yield from _pieces(table, rows.slice(half), options, output)


def _first_bad(table: ForwardingTable, rows: Any, options: dict[str, str], output: str) -> str:
    """What is wrong with the first row that is no message; there is one."""
    low, high = 0, len(rows)  # rows before `low` are good, one before `high` is bad
    reason = ""
    while low < high and not reason:
        middle = max(low + 1, (low + high) // 2)
        try:
            _answers(table, rows.slice(low, middle - low), options, output)
            low = middle
        except InvalidValue as error:
            high = middle
            if high - low == 1:
                reason = str(error).removeprefix("row 0: ").replace(", row 0: ", ": ")
    if "json" in options:
        reason += f", in {rows.column(0)[low].as_py()[:_SHOWN_MAX]}"
    return reason
