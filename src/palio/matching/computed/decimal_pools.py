"""The decimals that columns point into: integers of 64 bits and how many digits stand behind the point.

unscaled   450    -7    0              4.50, -0.7, and one that does not fit
type       0      1     -1             positions in `types`: (precision, scale); -1: see `odd`
odd        {2: Exact(...)}
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cached_property

import numpy as np

from palio.matching.encode import codes
from palio.matching.encode.arrow_decimals import raw_number
from palio.matching.encode.columns import Ints
from palio.model.expressions.decimals import Exact
from palio.model.values import INT_MAX, INT_MIN

DIGITS = 18
"""A power of ten up to this one fits in 64 bits."""
POWERS = 10 ** np.arange(DIGITS + 1)
_SAFE = 2**53
_PLAIN = 10**15
"""A decimal of so many digits is the shortest text of its double."""
_EXACT_POWERS = 22
"""Powers of ten that are doubles."""


class DecimalPool:
    """Decimals by their positions."""

    def __init__(
        self,
        unscaled: Ints,
        type: Ints,
        types: Sequence[tuple[int, int]],
        odd: Mapping[int, Exact] | None = None,
    ) -> None:
        self.unscaled, self.type, self.types, self.odd = unscaled, type, types, odd or {}

    @classmethod
    def of(cls, values: Sequence[Exact]) -> DecimalPool:
        unscaled, type_ = np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
        types: dict[tuple[int, int], int] = {}
        odd: dict[int, Exact] = {}
        for i, exact in enumerate(values):
            sign, digits, exponent = exact.value.as_tuple()
            whole = int(exact.value.scaleb(exact.scale)) if len(digits) <= DIGITS else None
            if whole is None or exponent != -exact.scale or (sign and not whole):
                odd[i], type_[i] = exact, -1
            else:
                unscaled[i] = whole
                type_[i] = types.setdefault((exact.precision, exact.scale), len(types))
        return cls(unscaled, type_, [*types], odd)

    def __len__(self) -> int:
        return len(self.unscaled)

    def at(self, positions: Ints) -> list[Exact]:
        """The decimals at these positions."""
        found = []
        whole, types = self.unscaled[positions].tolist(), self.type[positions].tolist()
        for position, value, type_ in zip(positions.tolist(), whole, types, strict=True):
            if type_ < 0:
                found.append(self.odd[position])
            else:
                precision, scale = self.types[type_]
                found.append(Exact(Decimal(value).scaleb(-scale), precision, scale))
        return found

    @cached_property
    def scales(self) -> Ints:
        """The digits behind the point, of those that fit; 0 for others."""
        return np.array([*(scale for _, scale in self.types), 0])[self.type]

    @cached_property
    def doubles(self) -> Ints:
        """The nearest doubles."""
        found = self.unscaled / 10.0 ** np.minimum(self.scales, _EXACT_POWERS)
        is_exact = (np.abs(self.unscaled) <= _SAFE) & (self.scales <= _EXACT_POWERS)
        hard = np.flatnonzero(~is_exact | (self.type < 0))
        found[hard] = [float(exact) for exact in self.at(hard)]
        return found

    @cached_property
    def numbers(self) -> tuple[Ints, Ints]:
        """As constraints compare them: raw values of numbers, and their types until they are settled."""
        found = self.unscaled / 10.0 ** np.minimum(self.scales, _EXACT_POWERS)
        raw, kinds = found.view(np.int64), np.full(len(self), codes.FLOAT, np.uint8)
        is_plain = (np.abs(self.unscaled) < _PLAIN) & (self.scales <= _EXACT_POWERS)
        hard = np.flatnonzero(~is_plain | (self.type < 0))
        for at, exact in zip(hard.tolist(), self.at(hard), strict=True):
            raw[at], kinds[at] = raw_number(exact.compared)
        return raw, kinds

    @cached_property
    def floors(self) -> tuple[Ints, Ints]:
        """The greatest integers of 64 bits that are not above, and whether the decimals lie above (1)
        or below (-1) these."""
        hard = np.flatnonzero((self.type < 0) | (self.scales > DIGITS))
        power = POWERS[np.minimum(self.scales, DIGITS)]
        floor = self.unscaled // power
        place = (floor * power != self.unscaled).astype(np.int8)
        for at, exact in zip(hard.tolist(), self.at(hard), strict=True):
            floor[at], place[at] = _floor(exact.value)
        return floor, place


def _floor(value: Decimal) -> tuple[int, int]:
    floor = math.floor(value)
    if floor > INT_MAX:
        return INT_MAX, 1
    return (INT_MIN, -1) if floor < INT_MIN else (floor, int(floor != value))


NO_DECIMALS = DecimalPool(np.zeros(0, np.int64), np.zeros(0, np.int64), ())


def joined_decimals(pools: Sequence[DecimalPool]) -> DecimalPool:
    """One pool: the decimals of one behind those of the other."""
    if len(pools) <= 1:
        return pools[0] if pools else NO_DECIMALS
    type_: list[Ints] = []
    types: list[tuple[int, int]] = []
    odd: dict[int, Exact] = {}
    size = 0
    for pool in pools:
        type_.append(np.where(pool.type < 0, -1, pool.type + len(types)))
        types += pool.types
        odd |= {position + size: exact for position, exact in pool.odd.items()}
        size += len(pool)
    return DecimalPool(
        np.concatenate([pool.unscaled for pool in pools]), np.concatenate(type_), types, odd
    )
