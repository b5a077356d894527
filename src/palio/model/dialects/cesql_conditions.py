"""Conditions of CESQL in SQL: when one holds, when it is false, and when it is neither because of an error.

An error anywhere that is evaluated makes the whole expression false for a filter, and AND and OR are evaluated
from the left: `a = 'x' OR b = 'y'` does not hold where a is missing, although SQL's OR would. So a condition
has two texts, and both are needed:

    holds(A OR B)  = holds(A) OR  defined(A) AND holds(B)      fails(A OR B)  = fails(A) AND fails(B)
    fails(A AND B) = fails(A) OR  defined(A) AND fails(B)      holds(A AND B) = holds(A) AND holds(B)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from palio.errors import LimitExceeded
from palio.model.dialects.translation import (
    FALSE,
    SQL_MAX,
    TRUE,
    Binding,
    Sql,
    all_of,
    any_of,
    negation,
)
from palio.model.sql_text import name_sql

Names = frozenset[str]
NOTHING: Names = frozenset()


@dataclass(frozen=True, slots=True)
class CesqlCondition:
    """`holds_with` and `fails_with`: attributes that are there whenever it holds, or is false.

    `attributes`: it is defined exactly where these are there; None where that is not all.
    `value`: one text that is TRUE, FALSE or NULL, where there is one.
    """

    holds: Sql
    fails: Sql
    defined: Sql
    holds_with: Names = NOTHING
    fails_with: Names = NOTHING
    attributes: Names | None = None
    value: str | None = None

    def __post_init__(self) -> None:
        check_length(max(len(self.holds.text), len(self.fails.text), len(self.defined.text)))

    @property
    def as_value(self) -> str:
        """A text that is TRUE, FALSE or NULL."""
        if self.value is not None:
            return self.value
        return f"CASE WHEN {self.holds.text} THEN TRUE WHEN {self.fails.text} THEN FALSE END"


def check_length(characters: int) -> None:
    """Before texts are put together again and again."""
    if characters > SQL_MAX:
        raise LimitExceeded(
            f"the expression becomes more than {SQL_MAX:,} characters of SQL, because each part "
            f"of it may be an error; divide it"
        )


ALWAYS = CesqlCondition(TRUE, FALSE, TRUE, attributes=NOTHING, value="TRUE")
FALSEHOOD = CesqlCondition(FALSE, TRUE, TRUE, attributes=NOTHING, value="FALSE")
ERROR = CesqlCondition(FALSE, FALSE, FALSE)


def there(names: Iterable[str]) -> Sql:
    return all_of(
        Sql(f"{name_sql(name)} IS NOT NULL", Binding.COMPARISON) for name in sorted(names)
    )


def atom(condition: Sql, attributes: Names, *, is_total: bool) -> CesqlCondition:
    """A text that is NULL where an attribute is missing and, unless `is_total`, where a cast fails."""
    defined = (
        there(attributes)
        if is_total
        else Sql(f"({condition.text}) IS NOT NULL", Binding.COMPARISON)
    )
    return CesqlCondition(
        condition,
        negation(condition),
        defined,
        attributes,
        attributes,
        attributes if is_total else None,
        condition.text,
    )


def opposite(condition: CesqlCondition) -> CesqlCondition:
    value = None if condition.value is None else f"NOT ({condition.value})"
    return replace(
        condition,
        holds=condition.fails,
        fails=condition.holds,
        holds_with=condition.fails_with,
        fails_with=condition.holds_with,
        value=value,
    )


def disjunction(parts: list[CesqlCondition]) -> CesqlCondition:
    """OR, evaluated from the left until a part holds."""
    attributes = _same_attributes(parts)
    return CesqlCondition(
        holds=any_of(_each_after_the_others(parts)),
        fails=all_of(one.fails for one in parts),
        defined=there(attributes) if attributes is not None else _defined(parts),
        holds_with=frozenset.intersection(*(one.holds_with for one in parts)),
        fails_with=frozenset().union(*(one.fails_with for one in parts)),
        attributes=attributes,
    )


def conjunction(parts: list[CesqlCondition]) -> CesqlCondition:
    return opposite(disjunction([opposite(one) for one in parts]))


def difference(left: CesqlCondition, right: CesqlCondition) -> CesqlCondition:
    """XOR, where both are evaluated."""
    for one, other in ((left, right), (right, left)):
        if one in (ALWAYS, FALSEHOOD):
            return opposite(other) if one == ALWAYS else other
    names = left.holds_with & left.fails_with | right.holds_with & right.fails_with
    text = Sql(f"({left.as_value}) <> ({right.as_value})", Binding.COMPARISON)
    both = None
    if left.attributes is not None and right.attributes is not None:
        both = left.attributes | right.attributes
    defined = all_of([left.defined, right.defined]) if both is None else there(both)
    return CesqlCondition(text, negation(text), defined, names, names, both, text.text)


def _each_after_the_others(parts: list[CesqlCondition]) -> Iterable[Sql]:
    """When a part holds and no error is in those before it (where one of them holds, the whole does)."""
    asked: set[str] = set()
    others: list[Sql] = []
    length = 0
    for part in parts:
        found = all_of([there(asked - part.holds_with), *others, part.holds])
        length += len(found.text)
        check_length(length)
        yield found
        if part.attributes is not None:
            asked |= part.attributes
        elif part.defined not in others:
            others.append(part.defined)


def _defined(parts: list[CesqlCondition]) -> Sql:
    """The first part is, and each later one unless a part before it holds."""
    found = parts[-1].defined
    for part in reversed(parts[:-1]):
        found = all_of([part.defined, any_of([part.holds, found])])
        check_length(len(found.text))
    return found


def _same_attributes(parts: list[CesqlCondition]) -> Names | None:
    """What all of them are defined by, if that is the same for all."""
    first = parts[0].attributes
    return first if all(one.attributes == first for one in parts) else None
