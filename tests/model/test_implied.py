"""What an expression says of its attributes: true for every message, and exact where it can be.

Literals are drawn where expressions change their minds: what they are for some value of the attribute, and
what stands right beside that. Messages have those values, their neighbours, and the odd ones.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from palio.errors import ParseError
from palio.model.boxes import box, box_covers, extended
from palio.model.covering import covers
from palio.model.expressions.decimals import Exact
from palio.model.expressions.names import value_of
from palio.model.language import parse
from palio.model.long_decimals import LongDecimal
from palio.model.message import Message
from palio.model.predicate import Predicate
from palio.model.reduction import reduce
from palio.model.sql_text import value_sql
from tests.seeds import sizes

COVERED = [
    ("x LIKE 'a%'", "x LIKE 'a%b'"), ("x LIKE '%b'", "x LIKE 'a%b'"), ("x LIKE '%cd%'", "x LIKE 'a%cd%b_'"),
    ("x LIKE 'ab%'", "x RLIKE '^abc*d'"), ("x > 44", "abs(x - 45.3) < 0.1"), ("x < 45.5", "abs(x - 45.3) < 0.1"),
    ("x IS NOT NULL", "lower(x) = 'a'"), ("typeof(x) = 'string'", "length(lower(x)) > 3"),
    ("t >= TIMESTAMP '2026-01-01' AND t < TIMESTAMP '2027-01-01'", "year(t) = 2026"),
    ("t >= TIMESTAMP '2026-02-01' AND t < TIMESTAMP '2026-03-01'",
     "date_trunc('month', t) = TIMESTAMP '2026-02-01'"),
    ("t < TIMESTAMP '2024-03-01' OR typeof(t) = 'string'", "to_date(t) <= DATE '2024-02-29'"),
    ("t < TIMESTAMP '2024-03-01'", "t + INTERVAL 1 DAY < TIMESTAMP '2024-03-02'"),
    ("t >= TIMESTAMP '1970-01-02'", "unix_seconds(t) >= 86400"),
    ("x > -3", "-x < 3"), ("x < 3 OR typeof(x) = 'float'", "-x > -3"), ("x BETWEEN -2 AND 2", "abs(x) <= 2"),
    ("x >= 3.99", "x + 1 > 5"), ("x > 1", "x * 2 > 3"), ("x > 1", "x / -2 < -1"), ("x > 3", "coalesce(x, 0) > 3"),
    ("s LIKE 'A%'", "left(s, 1) = 'A'"), ("s LIKE 'Ab%'", "substring(s, 1, 2) = 'Ab'"),
    ("s = 'Ab'", "left(s, 5) = 'Ab'"), ("s LIKE '%bc'", "right(s, 2) = 'bc'"), ("s LIKE 'A%'", "left(s, 2) LIKE 'A%'"),
    ("x IS NOT NULL AND y IS NOT NULL", "x + y > 3"), ("x < 3", "x < 3 AND x + 1 > 9"),
    ("x > 44 OR y = 1", "abs(x - 45.3) < 0.1 OR y = 1 AND x = 3"), ("x > 4", "x + 1 > 6 AND y = 2"),
]  # fmt: skip
NOT_COVERED = [
    ("x < 3", "-x > -3"),  # NaN is above all numbers, and so is its opposite
    ("x > 4", "x + 1 >= 5"), ("x LIKE 'b%'", "x LIKE 'a%b'"), ("x IS NOT NULL", "coalesce(x, 0) = 0"),
    ("t < TIMESTAMP '2024-03-01'", "to_date(t) <= DATE '2024-02-29'"),  # it may be a text
    ("x IS NOT NULL", "lower(x) IS NULL"), ("s LIKE 'A%'", "NOT left(s, 1) = 'A'"), ("s LIKE 'A%'", "right(s, 1) = 'A'"),
    ("t >= TIMESTAMP '2024-01-01' AND t < TIMESTAMP '2024-01-31'",
     "date_trunc('month', t) = TIMESTAMP '2024-01-01'"),
]  # fmt: skip


@pytest.mark.parametrize(("wide", "narrow"), COVERED)
def test_covered(wide: str, narrow: str) -> None:
    assert covers(wide, narrow)
    if " OR " not in wide + narrow:
        assert reduce(f"{wide} OR {narrow}") == parse(wide)


@pytest.mark.parametrize(("wide", "narrow"), NOT_COVERED)
def test_not_covered(wide: str, narrow: str) -> None:
    assert not covers(wide, narrow)


def test_decimals_of_38_digits_are_rounded() -> None:
    """x + 1 keeps six digits of DECIMAL(38, 7), so it is 5 where x is less than 4; a schema excludes them."""
    exact = {"x": Exact(Decimal("3.9999996"), 38, 7)}
    message = Message.of_checked({"x": 3.9999996}, exact)
    wide, narrow = parse("x >= 4"), parse("x + 1 >= 5")
    assert narrow.matches(message)
    assert not wide.matches(message)
    assert not covers(wide, narrow)
    assert covers("x >= 3.9999994", narrow)
    assert covers(wide, narrow, schema={"x": "int"})
    for type_ in ("int", "float"):
        assert covers("x > 4", "x + 1 > 5", schema={"x": type_})


def test_doubles_are_exact() -> None:
    """0.1 + 0.2 is more than 0.3: 0.2 is the least double for which it is."""
    schema = {"x": "float"}
    assert not covers("x >= 4", "x + 1 >= 5", schema=schema)  # the double below 4 gives 5 too
    assert covers("x >= 0.2", "x + 0.1D > 0.3", schema=schema)
    assert not covers(f"x >= {math.nextafter(0.2, 1)!r}", "x + 0.1D > 0.3", schema=schema)
    assert covers("x >= 9007199254740991.0", "x + 1 >= 9007199254740992.0", schema=schema)


# ---- random pairs

_FUNCTIONS = [
    "{a} + {c}", "{c} + {a}", "{a} - {c}", "{c} - {a}", "{a} * {c}", "{a} / {c}", "-{a}", "abs({a})", "abs({a} - {c})",
    "{c} * {a} + {c}", "-(abs({a} - {c}) - {c})", "coalesce({a}, {c})", "left({a}, {n})", "right({a}, {n})",
    "substring({a}, 1, {n})", "substring({a}, {n}, {n})", "lower({a})", "length({a})", "year({a})", "to_date({a})",
    "date_trunc('{u}', {a})", "{a} + INTERVAL {n} {u}", "unix_seconds({a})", "unix_date({a})", "floor({a})",
    "to_date({a} - INTERVAL {n} DAY)", "unix_micros({a})", "left(lower({a}), {n})", "{a} LIKE '{p}'", "{a} RLIKE '^{p}'",
    "NOT {a} LIKE '{p}'", "{a} + {c} > {c}", "NOT ({a} * {c} <= {c})", "coalesce({a} < {c}, FALSE)", "{a} + {a}",
    "startswith({a}, '{p}')", "month({a})", "{a} % {c}", "CASE WHEN {a} > {c} THEN {a} END", "NOT isnull({a} + {c})",
    "least({a}, {c})", "date_trunc('{u}', {a}) > TIMESTAMP '2024-02-29'",
]  # fmt: skip
_CONSTANTS = "0 1 2 -3 0.1 -0.5 2.5D 0.1D 1e300D -1e-300D 3.00000000000000000001 9223372036854775807 1e19D 0D".split()
_UNITS = "YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND MICROSECOND".split()
_PATTERNS = ["a%", "a%b", "%b_", "ab", "_b%", "a%b%c", "A%", "%"]
_INSTANTS = [
    datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 23, 59, 59, 999999, UTC), datetime(2024, 1, 31, 5, tzinfo=UTC), datetime(2025, 12, 31, tzinfo=UTC),
]  # fmt: skip
_VALUES: list[Any] = [
    0, 1, 4, -7, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 0.0, -0.0, 0.1, 0.3, 45.3, 1e16, 1e308, 5e-324, math.inf,
    -math.inf, math.nan, Decimal("0.3"), Decimal("0.10000000000000001"), Decimal("45.30"), Decimal("4.00000000000000044406" + 17 * "0"),
    Decimal("3.9999996" + 30 * "0"), Decimal(2**53 + 1), Decimal("9007199254740993.5"), Decimal(10) ** 30, Decimal("-7.00"),
    "", "a", "ab", "abc", "axb", "A", "a\U0010ffff", "2024-02-29", "é", "bb_", *_INSTANTS, True, False, (1, 2), ("a",), b"x",
]  # fmt: skip


class PairDrawing:
    """Draws predicates and messages around the same values."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def expression(self, attribute: str = "x") -> str:
        pick = self.chance.choice
        text = pick(_FUNCTIONS)
        if self.chance.random() < 0.15:
            text = text.replace("{a}", f"({pick(_FUNCTIONS)})", 1)
        parts = {"a": attribute, "n": pick("0123"), "u": pick(_UNITS), "p": pick(_PATTERNS)}
        while "{c}" in text:
            text = text.replace("{c}", pick(_CONSTANTS), 1)
        return text.format(**parts)

    def value(self) -> Any:
        """One of the odd values, or one beside it."""
        value = self.chance.choice(_VALUES)
        step = self.chance.choice([0, 0, 1, -1])
        if isinstance(value, float) and step:
            return math.nextafter(value, step * math.inf)
        if type(value) is int:
            return max(-(2**63), min(value + step, 2**63 - 1))
        if isinstance(value, Decimal) and step:
            return value + step * Decimal("1e-22")
        if isinstance(value, datetime) and value.year not in (1, 9999):
            return value + timedelta(microseconds=step)
        return value

    def compared(self, text: str, value: Any) -> str:
        """An expression, compared with what it was."""
        op = self.chance.choice(["=", "<", "<=", ">", ">=", "!="])
        if isinstance(value, Decimal) and self.chance.random() < 0.3:
            return f"({text}) {op} {value:f}"
        if isinstance(value, Decimal):
            value = Message({"x": value})["x"]
        if isinstance(value, LongDecimal):
            return f"({text}) {op} {value.value:f}"
        if value is None or type(value) not in (int, float, str, bool, datetime) or value != value:
            return f"({text}) IS NOT NULL"
        if isinstance(value, bool):
            op = "="
        if isinstance(value, float) and math.isinf(value):
            return f"({text}) {op} 1e308D"
        return f"({text}) {op} {value_sql(value)}"

    def pair(self) -> tuple[str, str, list[Message]]:
        values = [self.value() for _ in range(3)]
        narrow = self._narrow(values[0])
        wide = self.compared("x", self.chance.choice(values[:2]))
        if self.chance.random() < 0.3:
            wide = f"{wide} {self.chance.choice(['AND', 'OR'])} {self.compared('x', values[1])}"
        if self.chance.random() < 0.1:
            wide = f"x LIKE '{self.chance.choice(['a%', '%b', '%a%'])}'"
        messages = [Message({"x": value}) for value in (*values, *_VALUES)]
        return wide, narrow, [Message({}), *messages]

    def _narrow(self, value: Any) -> str:
        found = []
        for _ in range(self.chance.choice([1, 1, 2])):
            text = self.expression()
            (name,) = {c.name for f in parse(f"({text}) IS NOT NULL") for c in f} or {""}
            found.append(self.compared(text, value_of(name, Message({"x": value}).read)))
        return " AND ".join(found)


def _pairs(seed: int, count: int) -> Any:
    drawing = PairDrawing(seed)
    while count:
        try:
            wide, narrow, messages = drawing.pair()
            yield parse(wide), parse(narrow), messages
        except (ParseError, ValueError):  # 1 of literals alone, or an expression that is one
            continue
        count -= 1


@sizes(1_500, 100_000)
def test_what_the_narrow_selects_the_wide_selects(size: int) -> None:
    covered = 0
    for wide, narrow, messages in _pairs(7, size):
        if covers(wide, narrow):
            covered += 1
            for message in messages:
                assert not narrow.matches(message) or wide.matches(message), (wide, narrow, message)
    assert covered > size / 20


@sizes(300, 10_000)
def test_reduction_keeps_the_meaning(size: int) -> None:
    for wide, narrow, messages in _pairs(8, size):
        both = Predicate(wide.filters + narrow.filters)
        reduced = reduce(both)
        for message in messages:
            assert reduced.matches(message) is both.matches(message), (both, message)


@sizes(1_500, 50_000)
def test_a_schema_says_what_is_no_decimal(size: int) -> None:
    for wide, narrow, messages in _pairs(9, size):
        for type_, kind in (("int", int), ("float", float)):
            if covers(wide, narrow, schema={"x": type_}):
                for message in messages:
                    if type(message.read.get("x", kind())) is kind:
                        assert not narrow.matches(message) or wide.matches(message), (wide, narrow)


@sizes(30, 1_000)
def test_covering_is_a_preorder(size: int) -> None:
    for number in range(size):
        drawing = PairDrawing(1000 + number)
        text, values = drawing.expression(), [drawing.value() for _ in range(6)]
        try:
            some = [parse(drawing.compared(text, _of(text, value))) for value in values]
            some += [parse(drawing.compared("x", value)) for value in values[:3]]
        except (ParseError, ValueError):
            continue
        yes = {
            (a, b)
            for a, b in itertools.product(range(len(some)), repeat=2)
            if covers(some[a], some[b])
        }
        assert all((a, a) in yes for a in range(len(some)))
        for (a, b), (c, d) in itertools.product(yes, yes):
            if b == c:
                assert (a, d) in yes, (some[a], some[b], some[d])


def _of(text: str, value: Any) -> Any:
    (name,) = {c.name for f in parse(f"({text}) IS NOT NULL") for c in f} or {""}
    return value_of(name, Message({"x": value}).read)


def test_an_extended_box_is_narrower() -> None:
    plain = box(parse("abs(x - 3) < 1 AND x > 0").filters[0])
    more = extended(plain)
    assert box_covers(plain, more)
    assert not box_covers(more, plain)
    assert extended(more) == more


@pytest.mark.parametrize(
    "text",
    [
        "x + 0.1D IN ({})".format(", ".join(f"{i}.5D" for i in range(3_000))),
        "date_trunc('month', x) IN ({})".format(
            ", ".join(f"TIMESTAMP '{1000 + i}-01-01'" for i in range(3_000))
        ),
        "left(x, 3) IN ({})".format(", ".join(f"'a{i}'" for i in range(3_000))),
        "abs(" * 49 + "x" + " - 0.1D)" * 49 + " < 3",
        "(" * 90 + "x" + " * 0.1)" * 90 + " < 3",
        "x LIKE '{}'".format("%a" * 4_000),
        " OR ".join(f"x * 0.{i}1D > {i} AND y = {i}" for i in range(300)),
    ],
    ids=["IN", "times", "texts", "abs", "decimals", "pattern", "filters"],
)  # fmt: skip
def test_time_is_bounded(text: str) -> None:
    """Beside what it takes to parse the text."""
    begin = time.process_time()
    narrow = parse(text)
    middle = time.process_time()
    assert not covers("x = -99 OR y = -1", narrow)
    assert time.process_time() - middle < 0.1 + 2 * (middle - begin)


def test_constraints_that_say_nothing() -> None:
    assert extended(box(parse("coalesce(x, 0) > -1").filters[0])).keys() == {"=coalesce(x, 0)"}
    absent = extended({"=x + y": box(parse("x IS NULL").filters[0])["x"]})
    assert absent.keys() == {"=x + y"}
