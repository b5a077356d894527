"""Decimals of Arrow as raw values: an int where the decimal is integral and fits, else a double where one
stands for it, else the number below it (`long_decimals`).

A decimal of 128 bits is an integer, its two halves in memory the lower first, over a power of ten.
What takes more than one exact operation is left to Python.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from palio.matching.encode import codes
from palio.matching.encode.columns import Ints
from palio.model.expressions.decimals import Exact
from palio.model.long_decimals import LongDecimal
from palio.model.values import as_value

_SCALE_MAX = 18  # of a power of ten in 64 bits
_PLAIN = 10**15
"""A decimal of so many digits is the shortest text of its double."""


def decimal_values(array: Any) -> tuple[Ints, Ints]:
    """Raw values and their types; those of NULL mean nothing."""
    kind = array.type
    if not pa.types.is_decimal128(kind):
        if kind.precision > 38:
            return _left_to_python(array, np.arange(len(array)), _nothing(array))
        array = array.cast(pa.decimal128(38, kind.scale))
    if not 0 <= kind.scale <= _SCALE_MAX:
        return _left_to_python(array, np.arange(len(array)), _nothing(array))
    low, high = halves(array)
    fits = high == low >> 63
    whole = low // 10**kind.scale
    is_whole = fits & (whole * 10**kind.scale == low)
    is_near = fits & ~is_whole & (low < _PLAIN) & (low > -_PLAIN)
    quotient = low / 10.0**kind.scale  # of two doubles that are exact: the nearest one
    raw = np.where(is_whole, whole, quotient.view(np.int64))
    kinds = np.where(is_whole, codes.INT, codes.FLOAT)
    return _left_to_python(array, np.flatnonzero(~is_whole & ~is_near), (raw, kinds))


def halves(array: Any) -> tuple[Ints, Ints]:
    """The lower and the upper 64 bits of decimals of 128 bits."""
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), np.int64), np.zeros(len(array), np.int64)
    found = np.frombuffer(data, np.int64, 2 * len(array), 16 * array.offset).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _nothing(array: Any) -> tuple[Ints, Ints]:
    return np.zeros(len(array), np.int64), np.full(len(array), codes.INT)


def _left_to_python(array: Any, hard: Ints, found: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """The same, with some of them as the model has them."""
    raw, kinds = found
    for at, decimal in zip(hard.tolist(), array.take(pa.array(hard)).to_pylist(), strict=True):
        if decimal is not None:
            raw[at], kinds[at] = raw_number(_compared(decimal))
    return raw, kinds


def _compared(decimal: Decimal) -> int | float | LongDecimal:
    value = as_value("", decimal)
    exact = None if isinstance(value, int) else Exact.of_decimal(decimal)
    return value if exact is None else exact.compared  # type: ignore[return-value]


def raw_number(number: int | float | LongDecimal) -> tuple[int, int]:
    """The raw value of a number, and its type until it is settled."""
    if isinstance(number, LongDecimal):
        below = number.below
        kind = codes.ABOVE_INT if isinstance(below, int) else codes.ABOVE_FLOAT
        return (below if isinstance(below, int) else _bits(below)), kind
    return (number, codes.INT) if isinstance(number, int) else (_bits(number), codes.FLOAT)


def _bits(number: float) -> int:
    return int(np.float64(number).view(np.int64))
