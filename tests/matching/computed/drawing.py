"""Random expressions as trees, and random rows, of all types and of wrong ones."""

from __future__ import annotations

import random
from math import inf, nan
from typing import Any

from palio.model.expressions.decimals import Exact
from palio.model.expressions.functions import FUNCTIONS
from palio.model.expressions.number_functions import IntLiteral
from palio.model.expressions.tree import (
    AttributeOf,
    Call,
    Constant,
    Expression,
    Lambda,
    Slot,
    Variable,
)
from palio.model.values import instant_from_micros
from tests.strategies import TRICKY_FLOATS, TRICKY_INTS, TRICKY_STRINGS, TRICKY_TIMES

KINDS = ("bool", "int", "float", "string", "time", "decimal")
BOOL, INT, FLOAT, STRING, TIME, DECIMAL = KINDS
ARRAY = "array"
ATTRIBUTES = {
    "b": BOOL,
    "i": INT,
    "j": INT,
    "f": FLOAT,
    "g": FLOAT,
    "s": STRING,
    "o": STRING,
    "t": TIME,
    "u": TIME,
    "r": ARRAY,
}
MIXED = "m"
TEXTS = (
    *TRICKY_STRINGS,
    "Abc",
    " x ",
    "42",
    "-7.5",
    "1e3",
    "TRUE",
    "ΑΣ",
    "ß",
    "2024-02-29",
    "YEAR",
    "a,b,,c",
)
DECIMALS = ("0.1", "0.30", "2.50", "45.3", "99.999", "3.0", "0.007", "12345678901234567890.5")
UNITS = (
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MILLISECOND",
    "MM",
    "x",
)

PATTERNS = (
    *("%", "_", "", "%a%", "a_%", "_%_", "%_", "\\%%", "A%c", "%,%,%", "\\", "x_*", "_\\_b"),
    *("%\U0001f600%", "[a-c]+", "(", "%é", "é%", "%_é_%"),
)

ARITHMETIC = ("add", "subtract", "multiply", "divide", "mod", "div")
COMPARISONS = ("equal", "not_equal", "less", "less_or_equal", "greater", "greater_or_equal", "same")
OF_TIMES = (
    "year", "quarter", "month", "day", "hour", "minute", "second", "dayofweek", "weekday",
    "dayofyear", "weekofyear",
)  # fmt: skip


class Drawing:
    """Draws of one seed: trees with the calls that their kinds allow, and now and then of wrong kinds."""

    def __init__(self, seed: int, slots: int = 0) -> None:
        self._random = random.Random(seed)
        self._slot_kinds = [self._random.choice(KINDS) for _ in range(slots)]

    # ---- values

    def value(self, kind: str) -> Any:
        pick, number = self._random.choice, self._random
        if kind == BOOL:
            return pick((True, False))
        if kind == INT:
            return pick((number.randint(-9, 9), number.randint(-1000, 1000), pick(TRICKY_INTS)))
        if kind == FLOAT:
            return pick(
                (
                    number.uniform(-100, 100), round(number.uniform(-9, 9), number.randint(0, 3)),
                    float(number.randint(-9, 9)), pick((*TRICKY_FLOATS, nan, inf, -inf)),
                    number.randint(-40, 40) / 8, number.uniform(-1, 1) * 10 ** number.randint(-20, 20),
                )
            )  # fmt: skip
        if kind == STRING:
            return pick(TEXTS)
        if kind == ARRAY and number.random() < 0.05:
            return b""
        if kind == ARRAY:
            own = pick((INT, STRING, FLOAT))
            members = [self.value(own) for _ in range(number.randint(0, 3))]
            return tuple([*members, pick((None, 5, ("a",), {"k": 1}))][: number.randint(0, 4)])
        if kind == TIME:
            return pick(
                (pick(TRICKY_TIMES), instant_from_micros(number.randint(-(10**16), 10**16)))
            )
        return Exact.of_text(pick(DECIMALS))

    def literal(self, kind: str) -> Any:
        value = self.value(kind)
        return IntLiteral(value) if kind == INT else value

    def rows(self, count: int) -> list[dict[str, Any]]:
        """Attributes of messages; some are NULL."""
        kinds = [*ATTRIBUTES.values()]
        missing = {name: self._random.choice((0, 0, 0.2, 1)) for name in (*ATTRIBUTES, MIXED)}
        return [
            {
                name: self.value(ATTRIBUTES.get(name) or self._random.choice(kinds))
                for name, share in missing.items()
                if self._random.random() >= share
            }
            for _ in range(count)
        ]

    def slots(self, count: int) -> list[list[Any]]:
        """For each slot the literal of each row."""
        return [[self.literal(kind) for _ in range(count)] for kind in self._slot_kinds]

    # ---- trees

    def tree(self, depth: int) -> Expression:
        return self.of_kind(self._random.choice(KINDS), depth)

    def of_kind(self, kind: str, depth: int) -> Expression:
        if self._random.random() < 0.04:
            kind = self._random.choice(KINDS)
        if depth == 0 or self._random.random() < 0.1:
            return self._leaf(kind)
        if self._random.random() < 0.25:
            return self._chosen(kind, depth)
        if kind == BOOL and self._random.random() < 0.04:
            return self._over_elements(depth)
        name, arguments = self._random.choice(_CALLS[kind])
        return self._call(name, arguments, depth)

    def _call(self, name: str, kinds: tuple[str, ...], depth: int) -> Expression:
        number = self._random.choice(KINDS[1:3])
        same = self._random.choice(KINDS)
        any_kinds = {"number": number, "same": same}
        if name in COMPARISONS and self._random.random() < 0.4:  # all pairs of numbers
            pair = self._random.choices((INT, FLOAT, DECIMAL), k=2)
            return Call(name, tuple(self.of_kind(kind, depth - 1) for kind in pair))
        parts: list[Expression] = []
        for kind in kinds:
            if kind == "pattern" and self._random.random() < 0.8:
                parts.append(Constant(self._random.choice(PATTERNS)))
            elif kind == "unit":
                parts.append(Constant(self._random.choice(UNITS)))
            elif kind == "small":
                parts.append(Constant(IntLiteral(self._random.randint(-4, 5))))
            else:
                wanted = STRING if kind == "pattern" else any_kinds.get(kind, kind)
                parts.append(self.of_kind(wanted, depth - 1))
        return Call(name, tuple(parts))

    def _over_elements(self, depth: int) -> Expression:
        element = self._random.choice((INT, STRING))
        body = Call(
            self._random.choice(COMPARISONS), (Variable(0), self.of_kind(element, depth - 1))
        )
        name = self._random.choice(("exists", "forall"))
        return Call(name, (self.of_kind(ARRAY, depth - 1), Lambda(0, body)))

    def _chosen(self, kind: str, depth: int) -> Expression:
        def value() -> Expression:
            return self.of_kind(kind, depth - 1)

        def condition() -> Expression:
            return self.of_kind(BOOL, depth - 1)

        return self._random.choice(
            (
                lambda: Call("coalesce", tuple(value() for _ in range(self._random.randint(1, 3)))),
                lambda: Call("nullif", (value(), value())),
                lambda: Call("case", (condition(), value(), value())),
                lambda: Call("case of", tuple(value() for _ in range(6))),
                lambda: Call("case", (condition(), value(), condition(), value(), Constant(None))),
                lambda: Call(
                    self._random.choice(("least", "greatest")),
                    tuple(value() for _ in range(self._random.randint(2, 4))),
                ),
            )
        )()

    def _leaf(self, kind: str) -> Expression:
        names = [name for name, own in ATTRIBUTES.items() if own == kind]
        slots = [number for number, own in enumerate(self._slot_kinds) if own == kind]
        drawn = self._random.random()
        if drawn < 0.06:
            return AttributeOf(MIXED)
        if drawn < 0.1:
            return Constant(None)
        if slots and drawn < 0.4:
            return Slot(self._random.choice(slots))
        if names and drawn < 0.75:
            return AttributeOf(self._random.choice(names))
        return Constant(self.literal(kind))


_NUMBERS = [(name, ("number", "number")) for name in ARITHMETIC] + [
    (name, ("number",)) for name in ("negative", "abs", "round", "floor", "ceil", "sqrt", "sign")
]
_CALLS: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    BOOL: [
        *((name, ("same", "same")) for name in COMPARISONS * 2),
        ("and", (BOOL, BOOL)), ("or", (BOOL, BOOL)), ("and", (BOOL, BOOL, BOOL)), ("not", (BOOL,)),
        ("is null", ("same",)), ("startswith", (STRING, STRING)), ("contains", (STRING, STRING)),
        ("cast as BOOLEAN", ("same",)), ("endswith", (STRING, STRING)),
        ("like", (STRING, "pattern")), ("like", (STRING, "pattern")), ("like", (STRING, STRING)),
        ("rlike", (STRING, "pattern")), ("in", ("same", "same", "same")), ("in", ("same", "same")),
        ("between", ("same", "same", "same")), ("array_contains", (ARRAY, "same")),
        ("like any", (STRING, "pattern", "pattern")),
    ],
    INT: [
        *((name, (INT, INT)) for name in ("add", "subtract", "multiply", "mod", "div")),
        *((name, (INT,)) for name in ("negative", "abs", "round")),
        *((name, (FLOAT,)) for name in ("floor", "ceil")),
        *((name, (TIME,)) for name in OF_TIMES),
        ("datediff", (TIME, TIME)), ("length", (STRING,)), ("locate", (STRING, STRING)),
        ("round", (INT, "small")), ("size", (ARRAY,)), ("get", (ARRAY, "small")),
        *((f"cast as {kind}", ("same",)) for kind in ("BIGINT", "INT", "SMALLINT", "TINYINT")),
    ],
    FLOAT: [
        *_NUMBERS,
        *((name, (FLOAT, FLOAT)) for name in ARITHMETIC[:-1]),
        *((name, (FLOAT, DECIMAL)) for name in ARITHMETIC[:-1]),
        ("round", (FLOAT, "small")), ("round", (FLOAT, "small")), ("power", ("number", "number")),
        ("power", (FLOAT, "small")), ("cast as DOUBLE", ("same",)), ("cast as FLOAT", ("same",)),
    ],
    ARRAY: [("array", ("same", STRING)), ("array", (INT, "same", FLOAT, TIME))],
    DECIMAL: [
        *((name, (DECIMAL, INT)) for name in ARITHMETIC[:-1]),
        *((name, (INT, DECIMAL)) for name in ARITHMETIC[:-1]),
        ("abs", (DECIMAL,)), ("round", (DECIMAL, "small")),
    ],
    STRING: [
        *((name, (STRING,)) for name in ("lower", "upper", "trim", "ltrim", "rtrim")),
        ("substring", (STRING, "small", "small")), ("left", (STRING, "small")),
        ("concat", (STRING, STRING)), ("replace", (STRING, STRING, STRING)),
        ("split_part", (STRING, STRING, "small")), ("cast as STRING", ("same",)),
    ],
    TIME: [
        ("date_trunc", ("unit", TIME)), ("date_trunc", ("unit", TIME)), ("to_date", (TIME,)),
        ("cast as TIMESTAMP", ("same",)), ("cast as DATE", ("same",)),
    ],
}  # fmt: skip
assert {name for calls in _CALLS.values() for name, _ in calls} - {
    "and", "or", "not", "is null",
} <= FUNCTIONS.keys()  # fmt: skip
