"""What callers hold rows in, as Arrow: tables and frames of any library that speaks Arrow's C interface.

pandas, polars, relations of DuckDB, readers of Arrow and many others have it. A frame of pandas has NaN
where a value is missing, which is NULL then, as in `pyarrow.Table.from_pandas`; its index is no column.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from palio.errors import InvalidValue


def is_frame(rows: object) -> bool:
    """Does it hold columns that Arrow can read?"""
    return hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__")


def arrow_rows(rows: Any) -> Any:
    """The rows as an Arrow table or batch."""
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return rows
    try:
        if type(rows).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(rows, preserve_index=False)
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(rows).read_all()
        return pa.record_batch(rows)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidValue(f"this {type(rows).__name__} is no table of columns: {error}") from None


def with_column(rows: Any, column: str) -> Any:
    """The same, checked: it has this column, unless there is none to be had."""
    if not is_frame(rows):
        raise InvalidValue(
            f"rows are an Arrow table, a frame, or a list of messages, not {type(rows).__name__}",
            remedy="`forward` takes one message",
        )
    found = arrow_rows(rows)
    names = found.schema.names
    if column and column not in names:
        raise InvalidValue(f"no column {column!r}; there are {', '.join(names) or 'none'}")
    return found
