"""Random predicates in two dialects, and rows to try them on.

A predicate is drawn as a tree and written twice: as Spark SQL, which is Palio's language, and as
DuckDB SQL. The Spark text has only the parentheses that it needs, and now and then one too many;
the DuckDB text has them all, so it does not depend on anybody's precedence. Nothing here comes
from Palio: the texts are an independent oracle.

Rows and literals come from the same small pools, so that hits are common. The generator stays
inside what all three agree on by design:

- nothing is cast between strings, numbers, booleans and times;
- an integer and a double are compared only where rounding the integer to a double changes
  nothing (`Column.literals` says with what a column may be compared);
- a literal with a fraction that is long or large is written as a double, since Spark and DuckDB
  read it as a DECIMAL.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

OR, AND, NOT, LEAF = range(4)  # how tightly the Spark text binds


@dataclass(frozen=True, slots=True)
class Text:
    """An expression in both dialects."""

    spark: str
    duckdb: str
    rank: int = LEAF


NULL = Text("NULL", "NULL")


@dataclass(frozen=True, slots=True)
class Column:
    """A column, the values of its rows, and the literals that it may be compared with.

    `rounds`: some value or literal is an integer that no double equals, so a list that mixes
    integers and doubles must be avoided: the engines make them all doubles.
    """

    name: str
    type: pa.DataType
    values: tuple[Any, ...]
    literals: tuple[Any, ...]
    rounds: bool = False

    @property
    def text(self) -> Text:
        if self.name.isidentifier():
            return Text(self.name, f'"{self.name}"')
        return Text(f"`{self.name}`", f'"{self.name}"')


# ---- the pools

BIG = 2**53
INT_MIN, INT_MAX = -(2**63), 2**63 - 1
INF, NAN = float("inf"), float("nan")

_SMALL = (-2, -1, 0, 1, 2, 10)
_WIDE = (BIG - 1, BIG, BIG + 1, BIG + 2, BIG + 3, -BIG - 1, -BIG, -BIG + 1)
_LIMITS = (INT_MIN, INT_MIN + 1, INT_MAX - 1, INT_MAX)
_AS_DOUBLES = (*_SMALL, BIG - 1, BIG, BIG + 2, -BIG, -BIG - 2, 2**62, INT_MIN)
_FRACTIONS = (-1.5, -0.1, -0.0, 0.0, 0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 0.1 + 0.2, 1e-300, 5e-324)
_LARGE = (BIG - 1.0, BIG - 0.5, float(BIG), BIG + 2.0, -float(BIG), 2.0**62, 2.0**63, -(2.0**63))
_HUGE = (1e300, 1.7976931348623157e308, -1e300, INF, -INF)
# Doubles that no other integer of the pools is rounded to.
_LONELY = (*_FRACTIONS, BIG - 1.0, BIG + 2.0, 1.0 - BIG, 2.0**62, *_HUGE)

_STRINGS = (
    *("", " ", "a", "A", "ab", "abc", "abcd", "b", "ba", "Z", "z", "10", "9"),
    *("it's", "''", '"', 'say "a"', "\\", "\\\\", "a\\b", "\\n", "c:\\%", "\\'", "\\_"),
    *("%", "_", "50%", "50%%", "a_c", "a%c", "100 %_", "a\nb", "\t", "a ", "--a", "/*a*/", "`a`"),
    *("é", "e\u0301", "ÿ", "ß", "ł", "日本", "日本語", "\uffee", "\ue000", "😀", "a😀", "😀a", "𐀀"),
)
_TIMES = tuple(
    datetime.fromisoformat(text).replace(tzinfo=UTC)
    for text in (
        "0001-01-01 00:00:00",
        "1582-10-10 12:00:00",
        "1969-12-31 23:59:59.999999",
        "1970-01-01 00:00:00",
        "2013-01-31 10:00:00",
        "2013-01-31 10:00:00.000001",
        "2013-01-31 10:00:00.250000",
        "2013-02-01 00:00:00",
        "2038-01-19 03:14:08",
        "9999-12-31 23:59:59.999999",
    )
)

COLUMNS = (
    Column("b", pa.bool_(), (True, False), (True, False)),
    Column("c", pa.bool_(), (True, False), (True, False)),
    Column("i", pa.int64(), _SMALL + _WIDE + _LIMITS, _SMALL + _WIDE + _LIMITS + _LONELY, True),
    Column("j", pa.int64(), _AS_DOUBLES, _AS_DOUBLES + _FRACTIONS + _LARGE + _HUGE),
    Column("n", pa.int64(), _SMALL, (*_SMALL, 1.0, 0.5, -0.0)),
    Column("x", pa.float64(), (*_FRACTIONS, *_LARGE, *_HUGE, NAN, NAN), _FRACTIONS + _AS_DOUBLES),
    Column("y", pa.float64(), (*_SMALL, *_LARGE, NAN), _FRACTIONS + _LARGE + _HUGE + _AS_DOUBLES),
    Column("s", pa.string(), _STRINGS, _STRINGS),
    Column("t", pa.string(), _STRINGS[:8], _STRINGS[:12]),
    Column("a.b c", pa.string(), _STRINGS[13:], _STRINGS[13:]),
    Column("at", pa.timestamp("us", tz="UTC"), _TIMES, _TIMES),
    Column("until", pa.timestamp("us", tz="UTC"), _TIMES[4:7], _TIMES[3:8]),
)


def columns_of(table: pa.Table, size: int = 40) -> tuple[Column, ...]:
    """The columns of a table, with values of its own for pools."""
    columns = []
    for name in table.schema.names:
        found = table[name].drop_null().unique().to_pylist()
        pool = tuple(found[:: max(1, len(found) // size)])
        columns.append(Column(name, table.schema.field(name).type, pool, pool))
    return tuple(columns)


def draw_rows(rng: random.Random, count: int, columns: Sequence[Column] = COLUMNS) -> pa.Table:
    """Rows in which three of ten values are missing."""
    drawn = {
        column.name: pa.array(
            [None if rng.random() < 0.3 else rng.choice(column.values) for _ in range(count)],
            column.type,
        )
        for column in columns
    }
    return pa.table(drawn)


def draw_predicates(
    rng: random.Random, count: int, columns: Sequence[Column] = COLUMNS
) -> list[Text]:
    """Predicates over the columns: from a bare column to nests of a dozen leaves."""
    artist = _Artist(rng, columns)
    return [artist.tree(rng.choice((0, 1, 1, 2, 2, 3))) for _ in range(count)]


# ---- literals


def duckdb_string(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


_ESCAPED = {"\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def spark_string(rng: random.Random, value: str) -> str:
    """One of the ways to write a string in Spark SQL."""
    quote = rng.choice("'''\"")
    form = rng.random()
    if form < 0.1 and "'" not in value:
        return f"r'{value}'"
    if form < 0.2:
        return quote + "".join(map(_code, value)) + quote
    doubled = rng.random() < 0.5
    body = "".join(_ESCAPED.get(char, char) for char in value)
    return quote + body.replace(quote, quote * 2 if doubled else "\\" + quote) + quote


def _code(char: str) -> str:
    if ord(char) < 0o200:
        return f"\\{ord(char):03o}"
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08X}"


def _spark_int(rng: random.Random, value: int) -> str:
    forms = [str(value)] * 4 + [f"{value}L", f"CAST('{value}' AS BIGINT)"]
    if abs(value) < 100:
        forms += [f"{value}S", f"{value}Y"]
    return rng.choice(forms)


def _spark_float(rng: random.Random, value: float) -> str:
    text = repr(value)
    forms = [f"CAST('{text}' AS DOUBLE)"]
    if value not in (INF, -INF):
        forms += [f"{text}D", text if "e" in text else f"{text}E0"]
        if "e" not in text and len(text) < 8:
            forms += [text, text, f"{text}BD"]  # a DECIMAL to Spark, with the same meaning
    return rng.choice(forms)


def _spark_time(rng: random.Random, value: datetime) -> str:
    plain = value.replace(tzinfo=None)
    forms = [
        f"TIMESTAMP '{plain}'",
        f"TIMESTAMP '{plain.isoformat()}Z'",
        f"CAST('{plain}' AS TIMESTAMP)",
    ]
    if 1 < value.year < 9999:
        forms.append(f"TIMESTAMP '{plain + timedelta(hours=5, minutes=30)}+05:30'")
        forms.append(f"TIMESTAMP '{plain - timedelta(hours=8)}-08:00'")
    if plain == plain.replace(hour=0, minute=0, second=0, microsecond=0):
        forms += [f"DATE '{plain.date()}'", f"TIMESTAMP '{plain.date()}'"]
    return rng.choice(forms)


def literal(rng: random.Random, value: object) -> Text:
    """A literal of this value in both dialects."""
    if isinstance(value, bool):
        return Text(str(value).upper(), str(value).upper())
    if isinstance(value, int):
        return Text(_spark_int(rng, value), str(value))
    if isinstance(value, float):
        return Text(_spark_float(rng, value), f"CAST('{value!r}' AS DOUBLE)")
    if isinstance(value, datetime):
        return Text(_spark_time(rng, value), f"TIMESTAMPTZ '{value.replace(tzinfo=None)}+00'")
    assert isinstance(value, str)
    return Text(spark_string(rng, value), duckdb_string(value))


# ---- trees


_COMPARISONS = ("=", "=", "==", "!=", "<>", "<", "<=", ">", ">=")
_CALLS = {"startswith": "starts_with", "endswith": "ends_with", "contains": "contains"}


class _Artist:
    """Draws trees over some columns."""

    def __init__(self, rng: random.Random, columns: Sequence[Column]) -> None:
        self.rng = rng
        self.columns = columns

    def one_in(self, n: int) -> bool:
        return self.rng.randrange(n) == 0

    def either(self, *words: str) -> str:
        """One of the words, sometimes in lower case."""
        word = self.rng.choice(words)
        return word.lower() if self.one_in(5) else word

    def tree(self, depth: int) -> Text:
        if depth == 0:
            return self.leaf()
        if self.one_in(4):
            return self.negation(self.tree(depth - 1))
        return self.junction(depth)

    def junction(self, depth: int) -> Text:
        rank = self.rng.choice((AND, OR))
        word = "AND" if rank == AND else "OR"
        count = self.rng.choice((2, 2, 2, 3, 4)) if depth < 3 else 2
        parts = [self.tree(self.rng.randrange(depth)) for _ in range(count)]
        spark = f" {self.either(word)} ".join(self.enclosed(part, rank) for part in parts)
        return Text(spark, "(" + f" {word} ".join(part.duckdb for part in parts) + ")", rank)

    def negation(self, part: Text) -> Text:
        word = self.either("NOT ", "NOT ", "NOT ", "! ")
        return Text(word + self.enclosed(part, NOT), f"(NOT {part.duckdb})", NOT)

    def enclosed(self, part: Text, rank: int) -> str:
        """In parentheses if it binds less tightly, or by a whim."""
        return f"({part.spark})" if part.rank < rank or self.one_in(8) else part.spark

    def leaf(self) -> Text:
        if self.one_in(30):
            return self.rng.choice((Text("TRUE", "TRUE"), Text("FALSE", "FALSE"), NULL))
        column = self.rng.choice(self.columns)
        kinds = [self.comparison, self.comparison, self.null_safe, self.membership, self.is_null]
        if pa.types.is_boolean(column.type):
            kinds += [self.bare, self.bare, self.is_truth, self.is_truth]
        else:
            kinds += [self.comparison, self.comparison, self.between, self.between]
        if pa.types.is_string(column.type):
            kinds += [self.like] * 3 + [self.call] * 3
        made = self.rng.choice(kinds)(column)
        return Text(made.spark, f"({made.duckdb})")

    def operand(self, column: Column) -> Text:
        if self.one_in(25):
            return NULL
        return literal(self.rng, self.rng.choice(column.literals))

    def operands(self, column: Column, count: int) -> list[Text]:
        values = self.rng.choices(column.literals, k=count)
        if column.rounds:
            values = [v for v in values if type(v) is type(values[0])]
            values += self.rng.choices(values, k=count - len(values))
        return [literal(self.rng, value) for value in values]

    def comparison(self, column: Column) -> Text:
        ops = _COMPARISONS[:5] if pa.types.is_boolean(column.type) else _COMPARISONS
        op = self.rng.choice(ops)
        left, right = column.text, self.operand(column)
        if self.one_in(3):
            left, right = right, left
        if self.one_in(12):
            left = Text(f"({left.spark})", left.duckdb)
        return Text(f"{left.spark} {op} {right.spark}", f"{left.duckdb} {op} {right.duckdb}")

    def null_safe(self, column: Column) -> Text:
        left, right = column.text, self.operand(column)
        if self.one_in(3):
            left, right = right, left
        op = self.rng.choice(("<=>", "IS NOT DISTINCT FROM", "IS DISTINCT FROM"))
        meaning = "IS NOT DISTINCT FROM" if op == "<=>" else op
        return Text(f"{left.spark} {op} {right.spark}", f"{left.duckdb} {meaning} {right.duckdb}")

    def membership(self, column: Column) -> Text:
        # From 11 members on, Spark looks them up in a set.
        members = self.operands(column, self.rng.choice((1, 2, 3, 5, 15)))
        if self.one_in(6):
            members.insert(self.rng.randrange(len(members) + 1), NULL)
        op = self.rng.choice(("IN", "NOT IN"))
        spark = ", ".join(member.spark for member in members)
        duckdb = ", ".join(member.duckdb for member in members)
        name = column.text
        return Text(f"{name.spark} {op} ({spark})", f"{name.duckdb} {op} ({duckdb})")

    def between(self, column: Column) -> Text:
        low, high = sorted(self.rng.choices(column.literals, k=2))
        if column.rounds and type(low) is not type(high):
            high = low
        if self.one_in(8):
            low, high = high, low
        bounds = [literal(self.rng, low), literal(self.rng, high)]
        if self.one_in(10):
            bounds[self.rng.randrange(2)] = NULL
        op = self.either("BETWEEN", "NOT BETWEEN")
        name = column.text
        return Text(
            f"{name.spark} {op} {bounds[0].spark} AND {bounds[1].spark}",
            f"{name.duckdb} {op} {bounds[0].duckdb} AND {bounds[1].duckdb}",
        )

    def piece(self, column: Column) -> str:
        """A part of a string that may be there."""
        text = str(self.rng.choice(column.literals))
        start = self.rng.randrange(len(text) + 1)
        return self.rng.choice((text, text[:start], text[start:], text[start : start + 2]))

    def like(self, column: Column) -> Text:
        escape = "|" if self.one_in(6) else "\\"
        text = "".join(escape * (c in ("%", "_", escape)) + c for c in self.piece(column))
        pattern = self.rng.choice(("", "", "%", "%%")) + text + self.rng.choice(("", "%", "%"))
        op = self.either("LIKE", "NOT LIKE")
        name = column.text
        spark = f"{name.spark} {op} {spark_string(self.rng, pattern)}"
        if escape != "\\":
            spark += f" ESCAPE '{escape}'"
        duckdb = f"{name.duckdb} {op} {duckdb_string(pattern)} ESCAPE '{escape}'"
        return Text(spark, duckdb)

    def call(self, column: Column) -> Text:
        name, function = column.text, self.rng.choice(tuple(_CALLS))
        part = NULL if self.one_in(25) else literal(self.rng, self.piece(column))
        return Text(
            f"{function}({name.spark}, {part.spark})",
            f"{_CALLS[function]}({name.duckdb}, {part.duckdb})",
        )

    def is_null(self, column: Column) -> Text:
        op = self.either("IS NULL", "IS NOT NULL")
        return Text(f"{column.text.spark} {op}", f"{column.text.duckdb} {op}")

    def is_truth(self, column: Column) -> Text:
        op = self.either("IS TRUE", "IS FALSE", "IS NOT TRUE", "IS NOT FALSE")
        return Text(f"{column.text.spark} {op}", f"{column.text.duckdb} {op}")

    def bare(self, column: Column) -> Text:
        return column.text
