"""Random expressions of literals, as SQL, each of a type: for comparisons with other engines."""

from __future__ import annotations

import random
from collections.abc import Callable

TEXTS = [
    "",
    "a",
    "Ab c",
    "  pad ",
    "x,y,,z",
    "Straße",
    "ΑΣ",
    "%_",
    "0",
    "42",
    "-7",
    "1.5",
    "true",
    "é",
]
TIMES = [
    "2024-02-29 23:59:59.5",
    "1999-12-31 00:00:00",
    "2024-03-01 10:30:00",
    "1970-01-01 00:00:00",
]
UNITS = ["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"]


class Drawing:
    """Draws expressions; deeper ones call functions of shallower ones.

    Decimals are not chosen from: in Spark the alternatives of a CASE have one type, here each its own.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def any(self, depth: int) -> str:
        kinds = [self.integer, self.double, self.decimal, self.text, self.boolean, self.time]
        return self._random.choice(kinds)(depth)

    def _one(self, *choices: Callable[[], str]) -> str:
        return self._random.choice(choices)()

    def integer(self, depth: int) -> str:
        number, pick = self._random.randint, self._random.choice
        if depth == 0:
            return f"{pick([0, 1, 2, 3, 7, 10, 250, 10**6, 2**40])}L"
        i, d, t, s = (
            self._deeper(kind, depth) for kind in (self.integer, self.double, self.time, self.text)
        )
        return self._one(
            lambda: f"({i()} {pick('+-*')} {i()})",
            lambda: f"({i()} DIV {i()})",
            lambda: f"({i()} % {i()})",
            lambda: f"(- {i()})",
            lambda: f"abs({i()})",
            lambda: f"round({i()}, {number(-3, 2)})",
            lambda: f"{pick(['floor', 'ceil'])}({d()})",
            lambda: f"{pick(['least', 'greatest'])}({i()}, {i()}, {i()})",
            lambda: f"length({s()})",
            lambda: f"locate({s()}, {s()})",
            lambda: (
                f"{pick(['year', 'quarter', 'month', 'day', 'hour', 'minute', 'second'])}({t()})"
            ),
            lambda: f"{pick(['dayofweek', 'weekday', 'dayofyear', 'weekofyear'])}({t()})",
            lambda: f"datediff({t()}, {t()})",
            lambda: f"CAST({pick([s, d, i, self._deeper(self.boolean, depth)])()} AS BIGINT)",
            lambda: self._chosen(i, depth),
        )

    def double(self, depth: int) -> str:
        pick = self._random.choice
        if depth == 0:
            return pick(
                ["0D", "1.5D", "-2.25D", "1E10", "0.1D", "1E-7", "CAST('NaN' AS DOUBLE)", "3D"]
            )
        i, d, s = (self._deeper(kind, depth) for kind in (self.integer, self.double, self.text))
        return self._one(
            lambda: f"({d()} {pick('+-*/%')} {d()})",
            lambda: f"({i()} / {i()})",
            lambda: f"({i()} {pick('+-*')} {d()})",
            lambda: f"abs({d()})",
            lambda: f"round({d()}, {self._random.randint(-2, 4)})",
            lambda: f"power({d()}, {pick(['2D', '0.5D', '-1D', '3D'])})",
            lambda: f"sqrt({d()})",
            lambda: f"sign({d()})",
            lambda: f"{pick(['least', 'greatest'])}({d()}, {d()})",
            lambda: f"CAST({pick([s, i])()} AS DOUBLE)",
            lambda: self._chosen(d, depth),
        )

    def decimal(self, depth: int) -> str:
        pick = self._random.choice
        if depth == 0:
            return pick(["0.1", "0.25", "1.10", "99.999", "3.0", "0.007"])
        c = self._deeper(self.decimal, depth)
        return self._one(
            lambda: f"({c()} {pick('+-*')} {c()})",
            lambda: f"({c()} {pick('/%')} {c()})",
            lambda: f"({c()} {pick('+-*/')} {self.integer(0)})",
            lambda: f"abs({c()})",
            lambda: f"(- {c()})",
        )

    def text(self, depth: int) -> str:
        pick, number = self._random.choice, self._random.randint
        if depth == 0:
            return f"'{pick(TEXTS)}'"
        s, i = (self._deeper(kind, depth) for kind in (self.text, self.integer))
        return self._one(
            lambda: f"{pick(['lower', 'upper', 'trim', 'ltrim', 'rtrim'])}({s()})",
            lambda: f"substring({s()}, {number(-4, 5)}, {number(-1, 4)})",
            lambda: f"{pick(['left', 'right'])}({s()}, {number(-1, 4)})",
            lambda: f"concat({s()}, {s()}, {s()})",
            lambda: f"({s()} || {s()})",
            lambda: f"replace({s()}, {s()}, {s()})",
            lambda: f"split_part({s()}, ',', {pick([-2, -1, 1, 2, 3])})",
            lambda: f"btrim({s()}, 'a ')",
            lambda: (
                f"CAST({pick([i, self._deeper(self.boolean, depth), self._deeper(self.time, depth)])()} AS STRING)"
            ),
            lambda: self._chosen(s, depth),
        )

    def boolean(self, depth: int) -> str:
        pick = self._random.choice
        if depth == 0:
            return pick(["TRUE", "FALSE"])
        b, s = self._deeper(self.boolean, depth), self._deeper(self.text, depth)
        kind = pick([self.integer, self.double, self.text, self.time, self.decimal])
        x = self._deeper(kind, depth)
        return self._one(
            lambda: f"({x()} {pick(['=', '!=', '<', '<=', '>', '>=', '<=>'])} {x()})",
            lambda: f"({b()} {pick(['AND', 'OR'])} {b()})",
            lambda: f"(NOT {b()})",
            lambda: f"{pick(['startswith', 'endswith', 'contains'])}({s()}, {s()})",
            lambda: f"{pick(['isnull', 'isnotnull'])}({x()})",
            lambda: f"({x()} IS NULL)",
            lambda: self._chosen(b, depth),
        )

    def time(self, depth: int) -> str:
        pick = self._random.choice
        if depth == 0:
            return f"TIMESTAMP '{pick(TIMES)}'"
        t = self._deeper(self.time, depth)
        return self._one(
            lambda: f"date_trunc('{pick(UNITS)}', {t()})",
            lambda: f"CAST(to_date({t()}) AS TIMESTAMP)",
            lambda: f"{pick(['least', 'greatest'])}({t()}, {t()})",
            lambda: self._chosen(t, depth),
        )

    def _deeper(self, kind: Callable[[int], str], depth: int) -> Callable[[], str]:
        return lambda: kind(self._random.randint(0, depth - 1))

    def _chosen(self, value: Callable[[], str], depth: int) -> str:
        b = self._deeper(self.boolean, depth)
        return self._one(
            lambda: f"coalesce({value()}, {value()})",
            lambda: f"nvl(nullif({value()}, {value()}), {value()})",
            lambda: f"if({b()}, {value()}, {value()})",
            lambda: f"CASE WHEN {b()} THEN {value()} WHEN {b()} THEN {value()} END",
        )
