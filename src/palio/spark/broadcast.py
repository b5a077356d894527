"""The broadcast strategy: every worker has the whole table, and an Arrow function asks it.

The function takes wide columns one by one, which is a tenth faster than a struct of them. Or it
takes one column, whose Arrow type tells the layout: a string is JSON, a map is a map, a list is a
list of attributes, a struct is wide columns; SQL uses it in that form. Its closure holds a Location
and names. The workers of a machine share the pages of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palio.carried_errors import carried
from palio.errors import InvalidMessage, InvalidValue, PalioError
from palio.matching.table import ForwardingTable
from palio.model.message import Message
from palio.spark.arrow_functions import arrow_function
from palio.spark.messages import MessageColumns
from palio.spark.tables import Location, opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RETURNS = {"array": "array<string>", "ids": "array<int>", "flag": "boolean"}
ARROW_TYPES = {"array": pa.list_(pa.string()), "ids": pa.list_(pa.int32()), "flag": pa.bool_()}
_SHOWN_MAX = 200  # characters of a bad message


def with_matches(
    df: DataFrame,
    messages: MessageColumns,
    location: Location,
    output: str,
    into: str,
    invalid: str,
    failures: str | None = None,
    *,
    strict: bool = False,
) -> DataFrame:
    """The DataFrame and a column of what each message matches; `output` is one of RETURNS. And a column
    `failures` of how many expressions could not be computed; with `strict` such a row is invalid."""
    counts = failures is not None
    match = function(location, output, invalid, messages.names, counts=counts, strict=strict)
    found = match(*messages.columns)
    if failures is None:
        return df.withColumn(into, found)
    both = df.withColumn(_BOTH, found)
    made = both.withColumn(into, both[_BOTH]["found"]).withColumn(failures, both[_BOTH]["failures"])
    return made.drop(_BOTH)


_BOTH = "__palio_found_and_failures"


def function(
    location: Location,
    output: str,
    invalid: str,
    names: tuple[str, ...] | None = None,
    *,
    counts: bool = False,
    strict: bool = False,
) -> Any:
    """The Arrow function from messages to what they match; `names` are those of wide columns. With
    `counts` also to how many expressions could not be computed for each; with `strict` that is an error."""

    def palio_match(*columns: pa.Array) -> pa.Array:
        with carried():
            table = opened(location)
            return matches(table, columns, names, output, invalid, counts=counts, strict=strict)

    returns = RETURNS[output]
    return arrow_function(
        palio_match, f"struct<found: {returns}, failures: int>" if counts else returns
    )


# ---- in the worker


def matches(
    table: ForwardingTable,
    columns: Sequence[pa.Array],
    names: Sequence[str] | None,
    output: str,
    invalid: str,
    *,
    counts: bool = False,
    strict: bool = False,
) -> pa.Array:
    """What each message matches; one that is no message is NULL or an error. With `strict` so is one for
    which an expression cannot be computed."""
    rows, options = rows_of(columns, names)
    if strict:
        options["strict"] = True
    if counts:
        output += _AND_FAILURES
    try:
        return _answers(table, rows, options, output)
    except InvalidValue:
        _answers(table, rows.slice(0, 0), options, output)  # if the type is wrong, all rows are
        if invalid == "error":
            raise _first_bad(table, rows, options, output) from None
    if "json" in options and not strict:
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
) -> tuple[pa.RecordBatch, dict[str, Any]]:
    """The messages as a table reads them, and the options of `forward_batch` for that: columns with
    names were chosen on the driver, and bring the values of expressions."""
    if names is not None:
        return pa.RecordBatch.from_arrays(list(columns), list(names)), {"computed": True}
    if len(columns) != 1:
        raise InvalidValue(
            f"the messages are one argument, not {len(columns)}",
            remedy="struct(*) makes one of columns",
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
    """The answers of rows that are messages; of `output` "... and failures" structs."""
    if output.endswith(_AND_FAILURES) and not options.get("strict"):
        failures = np.zeros(len(rows), np.int32)

        def count(_name: str, own: Sequence[int], _reason: str) -> None:
            np.add.at(failures, own, 1)

        counted = {**options, "on_failure": count}
        found = _answers(table, rows, counted, output.removesuffix(_AND_FAILURES))
        return pa.StructArray.from_arrays([found, pa.array(failures)], ["found", "failures"])
    if output.endswith(_AND_FAILURES):  # nothing has failed where failures are errors
        found = _answers(table, rows, options, output.removesuffix(_AND_FAILURES))
        none = pa.array(np.zeros(len(rows), np.int32))
        return pa.StructArray.from_arrays([found, none], ["found", "failures"])
    found = table.forward_batch(rows, ids=output != "array", **options)
    if output == "flag":
        return pc.greater(pc.list_value_length(found), 0)
    try:
        return found.cast(ARROW_TYPES[output])
    except pa.ArrowInvalid as error:
        raise PalioError(
            f"{len(rows):,} rows match too many interfaces for one Arrow batch ({error})",
            remedy="lower spark.sql.execution.arrow.maxRecordsPerBatch",
        ) from None


_AND_FAILURES = " and failures"


def _arrow_type(output: str) -> Any:
    if not output.endswith(_AND_FAILURES):
        return ARROW_TYPES[output]
    found = ARROW_TYPES[output.removesuffix(_AND_FAILURES)]
    return pa.struct([("found", found), ("failures", pa.int32())])


def _pieces(table: ForwardingTable, rows: Any, options: dict[str, str], output: str) -> Any:
    """The answers of rows of which a few are bad, found by halving."""
    try:
        yield _answers(table, rows, options, output)
    except InvalidValue:
        if len(rows) == 1:
            yield pa.nulls(1, _arrow_type(output))
            return
        half = len(rows) // 2
        yield from _pieces(table, rows.slice(0, half), options, output)
        yield from _pieces(table, rows.slice(half), options, output)


def _first_bad(
    table: ForwardingTable, rows: Any, options: dict[str, str], output: str
) -> InvalidValue:
    """The error of the first row that is no message, or for which a rule cannot be computed; there is one.

    It has no row number: Spark cuts a DataFrame into Arrow batches as it likes.
    """
    low, high = 0, len(rows)  # rows before `low` are good, one before `high` is bad
    found: InvalidValue | None = None
    while found is None:
        middle = max(low + 1, (low + high) // 2)
        try:
            _answers(table, rows.slice(low, middle - low), options, output)
            low = middle
        except InvalidValue as error:
            high = middle
            found = error if high - low == 1 else None
    shown = _shown(rows, low, options)
    if options.get("strict") and found.remedy:
        return InvalidValue(f"{found.detail}, in {shown}", remedy=found.remedy)
    return InvalidMessage(
        found.detail,
        attribute=found.attribute,
        message=shown,
        remedy="invalid='null' gives such rows NULL",
    )


def _shown(rows: Any, row: int, options: dict[str, Any]) -> str:
    """The message of a row that is wrong."""
    if "json" in options:
        return str(rows.column(0)[row].as_py())[:_SHOWN_MAX]
    if not options.get("strict"):
        return ""
    [values] = rows.slice(row, 1).to_pylist()
    there = {n: value for n, value in values.items() if value is not None and n[:1] != "="}
    return str(there)[:_SHOWN_MAX]
