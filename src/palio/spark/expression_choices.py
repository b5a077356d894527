"""Comparisons, conditions and choices in Spark SQL, over parts whose types are known.

Spark compares as we do where types agree; what it would cast, or round to compare, the worker computes.
"""

from __future__ import annotations

from palio.spark.expression_types import (
    ARRAY,
    BOOL,
    DOUBLE,
    FLOAT,
    INSTANTS,
    INT,
    MAP,
    NOTHING,
    NULL,
    NUMBERS,
    STRUCT,
    NotOnSpark,
    Typed,
    Write,
    common_kind,
    listed,
    require,
)

_EXACT_MAX = 1 << 53
"""Integers below are doubles exactly."""


def comparable(a: Typed, b: Typed) -> None:
    """Raise unless Spark compares them as we do: exactly, and nothing cast."""
    kinds = {a.kind, b.kind} - {NULL}
    if len(kinds) < 2:
        if kinds & {ARRAY, STRUCT, MAP}:
            raise NotOnSpark("arrays are not compared")
        return
    if not (kinds <= NUMBERS or kinds <= INSTANTS):
        raise NotOnSpark("nothing is cast")
    if INT in kinds and kinds & {FLOAT, DOUBLE} and not any(map(_is_small, (a, b))):
        raise NotOnSpark("an integer and a double")


def _is_small(part: Typed) -> bool:
    """A literal with which both an integer and a double compare exactly."""
    return isinstance(part.constant, int | float) and abs(part.constant) < _EXACT_MAX


def _compared(operator: str) -> Write:
    def write(parts: list[Typed]) -> Typed:
        a, b = parts
        comparable(a, b)
        if BOOL in (a.kind, b.kind) and operator in ("<", "<=", ">", ">="):
            raise NotOnSpark("booleans have no order")
        return Typed(f"({a.sql} {operator} {b.sql})", BOOL)

    return write


def _in(parts: list[Typed]) -> Typed:
    subject, *members = parts
    for member in members:
        comparable(subject, member)
    if subject.kind == NULL or not members:
        raise NotOnSpark("a list of nothing")
    return Typed(f"({subject.sql} IN ({listed(members)}))", BOOL)


def _between(parts: list[Typed]) -> Typed:
    subject, low, high = parts
    _compared("<")([subject, low])
    _compared("<")([subject, high])
    return Typed(f"({subject.sql} BETWEEN {low.sql} AND {high.sql})", BOOL)


# ---- conditions and choices


def _conditions(parts: list[Typed]) -> None:
    require(parts, frozenset({BOOL, NULL}))


def _junction(operator: str) -> Write:
    def write(parts: list[Typed]) -> Typed:
        _conditions(parts)
        return Typed("(" + f" {operator} ".join(part.sql for part in parts) + ")", BOOL)

    return write


def _not(parts: list[Typed]) -> Typed:
    _conditions(parts)
    return Typed(f"(NOT {parts[0].sql})", BOOL)


def _chosen(sql: str, parts: list[Typed]) -> Typed:
    """One of these: of the type that they have in common."""
    kind = common_kind(parts)
    if kind is None or kind in (STRUCT, MAP):
        raise NotOnSpark("a choice between types")
    if kind == NULL:
        return NOTHING
    return Typed(sql, kind, next((part.type for part in parts if part.type is not None), None))


def _choice(function: str) -> Write:
    def write(parts: list[Typed]) -> Typed:
        if function != "coalesce" and any(part.kind in (ARRAY, BOOL) for part in parts):
            raise NotOnSpark("they have no order")
        return _chosen(f"{function}({listed(parts)})", parts)

    return write


def _nullif(parts: list[Typed]) -> Typed:
    comparable(*parts)
    return parts[0].with_sql(f"nullif({listed(parts)})") if parts[0].kind != NULL else NOTHING


def _case(parts: list[Typed]) -> Typed:
    *choices, otherwise = parts
    _conditions(choices[::2])
    branches = "".join(
        f" WHEN {condition.sql} THEN {chosen.sql}"
        for condition, chosen in zip(choices[::2], choices[1::2], strict=True)
    )
    return _chosen(f"(CASE{branches} ELSE {otherwise.sql} END)", [*choices[1::2], otherwise])


def _case_of(parts: list[Typed]) -> Typed:
    subject, *choices, otherwise = parts
    for wanted in choices[::2]:
        comparable(subject, wanted)
    branches = "".join(
        f" WHEN {wanted.sql} THEN {chosen.sql}"
        for wanted, chosen in zip(choices[::2], choices[1::2], strict=True)
    )
    sql = f"(CASE {subject.sql}{branches} ELSE {otherwise.sql} END)"
    return _chosen(sql, [*choices[1::2], otherwise])


FORMS: dict[str, Write] = {
    "and": _junction("AND"),
    "or": _junction("OR"),
    "not": _not,
    "is null": lambda parts: Typed(f"({parts[0].sql} IS NULL)", BOOL),
    "coalesce": _choice("coalesce"),
    "case": _case,
    "case of": _case_of,
    "in": _in,
    "between": _between,
    "same": _compared("<=>"),
    "least": _choice("least"),
    "greatest": _choice("greatest"),
    "nullif": _nullif,
}
"""Functions of which some argument may be NULL."""
COMPARISONS: dict[str, Write] = {
    "equal": _compared("="),
    "not_equal": _compared("!="),
    "less": _compared("<"),
    "less_or_equal": _compared("<="),
    "greater": _compared(">"),
    "greater_or_equal": _compared(">="),
}
