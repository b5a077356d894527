"""The decimals of Arrow rows as columns: what expressions read in place of the doubles of a batch.

Decimals of up to 18 digits are integers of 64 bits where they lie in memory; others become Python's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from palio.matching.computed.columns import ABSENT, DECIMAL, ValueColumn
from palio.matching.computed.decimal_pools import DIGITS, DecimalPool
from palio.matching.encode.arrow_columns import decoded, is_valid
from palio.matching.encode.arrow_decimals import halves
from palio.matching.encode.arrow_lists import key_columns
from palio.matching.encode.arrow_messages import leaves
from palio.model.expressions.decimals import Exact
from palio.model.long_decimals import DIGITS_MAX

_LIMIT = 10**DIGITS


def decimal_columns(
    rows: Any, layout: str, column: str, wanted: Iterable[str]
) -> dict[str, ValueColumn]:
    """The decimals among the attributes that are wanted, of rows in a layout of `encode_rows`."""
    found: dict[str, Any] = {}
    if layout in ("wide", "computed"):
        if any("decimal" in str(field.type) for field in rows.schema):
            table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
            found = leaves(dict.fromkeys(wanted, 0), table)
    elif layout == "map":
        values = rows.column(column)
        if pa.types.is_map(values.type) and "decimal" in str(values.type):
            chunked = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
            keyed = key_columns("", chunked, [f".{name}" for name in wanted])
            found = {name.removeprefix("."): one for name, one in keyed}
    plain = {name: _plain(found[name]) for name in wanted if name in found}
    return {name: _column(one) for name, one in plain.items() if _is_exact(one.type)}


def _plain(column: Any) -> Any:
    return decoded(column) if pa.types.is_dictionary(column.type) else column


def _is_exact(kind: Any) -> bool:
    return bool(pa.types.is_decimal(kind) and kind.precision <= DIGITS_MAX and kind.scale >= 0)


def _column(column: Any) -> ValueColumn:
    precision, scale = column.type.precision, column.type.scale
    array = pa.concat_arrays(column.cast(pa.decimal128(DIGITS_MAX, scale)).chunks)
    low, high = halves(array)
    valid = is_valid(array)
    fits = (high == low >> 63) & (low < _LIMIT) & (low > -_LIMIT)
    hard = np.flatnonzero(~fits & valid)
    decimals = array.take(pa.array(hard)).to_pylist()
    pool = DecimalPool(
        np.where(fits, low, 0),
        np.where(fits | ~valid, 0, -1),
        [(precision, scale)],
        {
            place: Exact(value, precision, scale)
            for place, value in zip(hard.tolist(), decimals, strict=True)
        },
    )
    type_ = np.where(valid, np.uint8(DECIMAL), np.uint8(ABSENT))
    return ValueColumn(type_, np.arange(len(array)), decimals=pool)
