"""Conditions on decimals, and rows whose values lie around their literals: equal, or apart by one last digit.

Each condition comes with what decides it in Python's Decimal, and with texts for Spark and DuckDB. Literals
have so many digits that neither engine rounds a side of a comparison to fit it into 38.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

SCHEMA = pa.schema(
    {
        "d": pa.decimal128(38, 20), "p": pa.decimal128(30, 20), "e": pa.decimal128(20, 2),
        "q": pa.decimal128(9, 2), "x": pa.float64(), "i": pa.int64(),
    }
)  # fmt: skip
_SCALES = {"d": 20, "p": 20, "e": 2, "q": 2}
_WHOLE_DIGITS = {"d": 18, "p": 10, "e": 18, "q": 7, "i": 18, "x": 18}
_BASES = (
    "0", "0.1", "0.2", "0.3", "1", "2.5", "0.30000000000000004", "99.99", "1234567.89", "1000000",
    "12345678901234567.88", "12345678901234567.89", "12345678901234568", "9007199254740993",
    "9007199254740992.5", "0.10000000000000000001", "0.1000000000000000055", "999999999999999999",
    "123456789012345678.25", "45.3", "0.07", "4503599627370497.5", "562949953421312.13",
)  # fmt: skip
_OPS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip
_EXACT = Context(prec=90)
_COMPUTED: dict[str, Callable[[Decimal], Decimal]] = {
    "p + 0": lambda p: p, "e + 0": lambda e: e, "e * 2": lambda e: e * 2, "-d": lambda d: -d,
    "abs(e)": abs, "p - 0.1": lambda p: _EXACT.subtract(p, Decimal("0.1")), "-e": lambda e: -e,
    "q + 0.05": lambda q: q + Decimal("0.05"),
}  # fmt: skip

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """A text that both engines and Palio read, and whether it selects a row (None: NULL)."""

    text: str
    holds: Callable[[Row], bool | None]
    is_plain: bool
    """Whether it compares an attribute, not something computed."""
    is_exact: bool
    """Whether it compares no double."""


class DecimalDrawing:
    """Draws of one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def number(self, whole_digits: int, scale: int) -> Decimal:
        """A base, or the next number of this scale above or below it."""
        while True:
            draw = self._random
            found = Decimal(draw.choice(_BASES)) * draw.choice((1, 1, 1, -1))
            if draw.random() < 0.2:
                found = Decimal(
                    repr(math.nextafter(float(found), draw.choice((-math.inf, math.inf))))
                )
            step = Decimal(draw.choice((0, 0, 0, 1, -1))).scaleb(-draw.randint(1, scale))
            found = _EXACT.quantize(_EXACT.add(found, step), Decimal(1).scaleb(-scale))
            if found.adjusted() < whole_digits:
                return found or found.copy_abs()

    def rows(self, count: int) -> list[Row]:
        return [
            {name: self._value(name) for name in SCHEMA.names if self._random.random() > 0.1}
            for _ in range(count)
        ]

    def _value(self, name: str) -> Any:
        if name in _SCALES:
            return self.number(_WHOLE_DIGITS[name], _SCALES[name])
        found = self.number(18, 20)
        return float(found) if name == "x" else round(found)

    # ---- conditions

    def condition(self) -> Condition:
        draw = self._random
        if draw.random() < 0.3:
            subject = draw.choice([*_COMPUTED])
            name = next(name for name in SCHEMA.names if name in subject.replace("abs", ""))
            compute = _COMPUTED[subject]
        else:
            subject = name = draw.choice(SCHEMA.names)
            compute = lambda value: value  # noqa: E731
        whole = max(_WHOLE_DIGITS[name], 1)
        made = self._comparison(subject, name, compute, whole)
        if draw.random() < 0.2:
            inner = made.holds
            negated = lambda row: None if (held := inner(row)) is None else not held  # noqa: E731
            return Condition(f"NOT ({made.text})", negated, made.is_plain, made.is_exact)
        return made

    def _comparison(
        self, subject: str, name: str, compute: Callable[[Any], Any], whole: int
    ) -> Condition:
        draw = self._random
        kind = draw.random()
        count = 1 if kind < 0.7 else 2 if kind < 0.85 else draw.choice((2, 3, 5))
        literals = [self._literal(whole) for _ in range(count)]
        # An integer is compared with a double in another way than in Spark (language.md).
        texts = [f"{one:f}" if name == "x" else self._text(one) for one in literals]
        wanted = [float(one) for one in literals] if name == "x" else literals
        flags = (subject == name, name != "x")

        def of(decide: Callable[[Any], bool]) -> Callable[[Row], bool | None]:
            return lambda row: None if row.get(name) is None else decide(compute(row[name]))

        if kind < 0.7:
            op = draw.choice([*_OPS])
            return Condition(
                f"{subject} {op} {texts[0]}", of(lambda v: _OPS[op](v, wanted[0])), *flags
            )
        if kind < 0.85:
            low, high = wanted
            between = of(lambda v: low <= v <= high)
            return Condition(f"{subject} BETWEEN {texts[0]} AND {texts[1]}", between, *flags)
        return Condition(f"{subject} IN ({', '.join(texts)})", of(lambda v: v in wanted), *flags)

    def _literal(self, whole_digits: int) -> Decimal:
        scale = self._random.choice((1, 2, 2, 16, 17, 18))
        return self.number(whole_digits, scale)

    def _text(self, value: Decimal) -> str:
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if self._random.random() < 0.7 else text


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)
