"""Hypothesis strategies for values, messages and predicates: the one place where they live.

Names and values come from small pools as often as from everywhere, so that constraints and
messages meet; the pools hold what printers, parsers and number formats trip over.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import inf, nan

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from palio.model.advertisement import Advertisement
from palio.model.message import Message
from palio.model.operators import ORDER_OPS, STRING_OPS, Op
from palio.model.predicate import Constraint, Filter, Predicate
from palio.model.values import INT_MAX, INT_MIN, Type, Value

PLAIN_NAMES = ("a", "b", "price", "dest", "carrier", "_x1", "Class")

KEYWORDS = (
    *("and", "or", "not", "null", "true", "false", "in", "any", "absent", "like"),
    *("is", "between", "typeof", "select", "from", "case", "when", "then", "end", "cast"),
    *(
        "timestamp",
        "date",
        "interval",
        "table",
        "group",
        "order",
        "exists",
        "string",
        "int",
        "float",
    ),
    *("bool", "time", "double", "current_date", "all", "array", "map", "struct", "x'1'", "r'a'"),
    *("b'1'", "NaN"),
)

TRICKY_NAMES = (
    "flight.carrier",
    "a.b.c",
    ".",
    "..a",
    "two words",
    " lead",
    "trail ",
    "back`tick",
    "`",
    "``",
    "quo'te",
    'quo"te',
    "back\\slash",
    "1st",
    "1e5",
    "-5",
    "--",
    "/*",
    "$0",
    "@x",
    "a=b",
    ">*",
    "a,b",
    "(",
    "#",
    "%s",
    "{x}",
    "new\nline",
    "tab\tbed",
    "nul\0",
    "\u2028",
    "\u00a0",
    "caf\u00e9",
    "\u0130",
    "\u540d\u524d",
    "\U0001f600",
    *KEYWORDS,
)

TRICKY_STRINGS = (
    "",
    " ",
    "  lead",
    "trail  ",
    "MXP",
    "U",
    "finance/exchanges/",
    "it's",
    "''",
    "'",
    '"',
    '"quoted"',
    'a "b" c',
    "\\",
    "\\\\",
    "\\'",
    "\\n",
    "\\%",
    "\\u0041",
    "100%",
    "%",
    "%%",
    "_",
    "a_b",
    "`",
    "--",
    "-- a",
    "/* a */",
    "#",
    "or",
    "true",
    "null",
    "5",
    "1e5",
    "inf",
    "[1]",
    "\n",
    "a\nb",
    "a\r\nb",
    "\r",
    "\t",
    "\0",
    "a\0b",
    "\x0012",
    "\n12",
    "\x1a",
    "\x1c",
    "\x7f",
    "\x85",
    "\u00a0",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\ufffd",
    "\uffff",
    "\u202e",
    "e\u0301",
    "\u00e9",
    "\u00df",
    "\U0001f600",
    "\U0010ffff",
    "2013-01-31T10:00:00Z",
    "Infinity",
    "{}",
)

TRICKY_INTS = tuple(
    sorted(
        {INT_MIN, INT_MIN + 1, INT_MAX - 1, INT_MAX}
        | {
            sign * (2**power + step)
            for sign in (-1, 1)
            for power in (31, 53)
            for step in (-1, 0, 1)
        }
        | set(range(-3, 4))
    )
)

TRICKY_FLOATS = (
    *(0.0, -0.0, 0.5, -0.5, 1.0, 2.0, 0.1, 1e16, 1e22, 1e-5, 123456789.125),
    *(inf, -inf, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308),
    *(2.0**53 - 1, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 2.0**64),
)

TRICKY_TIMES = (
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=1),
    datetime(999, 12, 31, 23, 59, 59, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1970, 1, 1, 2, 40, 3, tzinfo=UTC),
    datetime(2013, 1, 31, 10, 0, 0, 500000, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
)

names: SearchStrategy[str] = st.one_of(
    st.sampled_from(PLAIN_NAMES), st.sampled_from(TRICKY_NAMES), st.text(min_size=1, max_size=6)
)

strings: SearchStrategy[str] = st.one_of(
    st.sampled_from(TRICKY_STRINGS),
    st.text(max_size=8),
    st.text("ab%_'\\\"\n", max_size=6),
    st.builds(str.__add__, st.sampled_from(TRICKY_STRINGS), st.sampled_from(TRICKY_STRINGS)),
)
ints: SearchStrategy[int] = st.one_of(
    st.sampled_from(TRICKY_INTS), st.integers(-5, 5), st.integers(INT_MIN, INT_MAX)
)
floats: SearchStrategy[float] = st.one_of(
    st.sampled_from(TRICKY_FLOATS), st.floats(allow_nan=False), st.integers(-5, 5).map(float)
)
times: SearchStrategy[datetime] = st.one_of(
    st.sampled_from(TRICKY_TIMES), st.datetimes(timezones=st.just(UTC))
)

VALUES: dict[Type, SearchStrategy[Value]] = {
    Type.BOOL: st.booleans(),
    Type.INT: ints,
    Type.FLOAT: floats,
    Type.STRING: strings,
    Type.TIME: times,
}

types: SearchStrategy[Type] = st.sampled_from(list(Type))
constraint_values: SearchStrategy[Value] = types.flatmap(VALUES.__getitem__)
values: SearchStrategy[Value] = st.one_of(constraint_values, st.just(nan))
"""What an attribute may hold; no constraint compares with NaN."""

_COMPARISONS = sorted({Op.EQ, Op.NE, *ORDER_OPS})


@st.composite
def _comparisons(draw: st.DrawFn, names: SearchStrategy[str]) -> Constraint:
    kind = draw(types)
    ops = [Op.EQ, Op.NE] if kind is Type.BOOL else _COMPARISONS
    return Constraint(draw(names), draw(st.sampled_from(ops)), draw(VALUES[kind]))


_SETS: SearchStrategy[list[Value]] = st.one_of(
    types.flatmap(lambda kind: st.lists(VALUES[kind], min_size=1, max_size=5)),
    st.lists(st.one_of(ints, floats), min_size=1, max_size=5),
)


def constraints_on(names: SearchStrategy[str]) -> SearchStrategy[Constraint]:
    """Constraints of every operator and type on attributes of these names."""
    return st.one_of(
        _comparisons(names),
        st.builds(Constraint, names, st.sampled_from(sorted(STRING_OPS)), strings),
        st.builds(Constraint, names, st.just(Op.IN), _SETS),
        st.builds(Constraint, names, st.just(Op.ANY), st.none(), st.none() | types),
        st.builds(Constraint, names, st.just(Op.ABSENT)),
    )


def filters_of(
    constraints: SearchStrategy[Constraint], min_size: int = 0, max_size: int = 4
) -> SearchStrategy[Filter]:
    """Conjunctions of these constraints."""
    parts = st.lists(constraints, min_size=min_size, max_size=max_size)
    return parts.map(lambda found: Filter(tuple(found)))


def predicates_of(
    filters: SearchStrategy[Filter], min_size: int = 0, max_size: int = 3
) -> SearchStrategy[Predicate]:
    """Disjunctions of these filters."""
    parts = st.lists(filters, min_size=min_size, max_size=max_size)
    return parts.map(lambda found: Predicate(tuple(found)))


asked_names = names.filter(lambda name: name[0] != "=")  # where a name with = says an expression
constraints: SearchStrategy[Constraint] = constraints_on(asked_names)
filters: SearchStrategy[Filter] = filters_of(constraints)
predicates: SearchStrategy[Predicate] = predicates_of(filters)

messages: SearchStrategy[Message] = st.dictionaries(names, values, max_size=5).map(Message)
advertisements: SearchStrategy[Advertisement] = st.lists(constraints, max_size=4).map(
    lambda found: Advertisement(tuple(found))
)


# ---- topics of MQTT

_TOPIC_LEVELS = ["", "a", "b", "$s", "'", "\\"]
topics: st.SearchStrategy[str] = (
    st.lists(st.sampled_from(_TOPIC_LEVELS), min_size=1, max_size=3).map("/".join).filter(bool)
)


@st.composite
def topic_filters(draw: st.DrawFn) -> str:
    levels = draw(st.lists(st.sampled_from([*_TOPIC_LEVELS, "+", "+"]), max_size=3))
    if draw(st.booleans()) or not "/".join(levels):
        levels.append("#")
    return "/".join(levels)
