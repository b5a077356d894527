"""Filters of the CloudEvents Subscriptions API, read as predicates (Subscriptions API 3.2.4).

    {"any": [{"exact": {"type": "a"}}, {"not": {"sql": "n > 5"}}]}     one filter
    [{"prefix": {"type": "com."}}, {"suffix": {"subject": ".jpg"}}]    several, which must all hold

A filter is true or false and nothing else: where an attribute is missing, or an expression is an error, it is false, and
`not` makes it true. An attribute that is no string is compared as its canonical text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from palio.errors import LimitExceeded, ParseError
from palio.model.dialects.cesql import attribute_matches, condition_of, condition_of_tree
from palio.model.dialects.cesql_conditions import CesqlCondition
from palio.model.dialects.cesql_tree import CesqlAttribute, CesqlOperation, Literal
from palio.model.dialects.documents import RefusedRule, document_of, located, within
from palio.model.dialects.translation import (
    SQL_MAX,
    TRUE,
    Binding,
    Sql,
    all_of,
    any_of,
    complement,
    predicate_of,
)
from palio.model.language import FILTERS_MAX
from palio.model.predicate import Predicate
from palio.model.sql_text import name_sql
from palio.model.values import shortened

WHAT = "CloudEvents filter"


def read(document: object, *, limit: int = FILTERS_MAX, shape_max: int = SQL_MAX) -> Predicate:
    """The predicate of a filter, or of a list of filters that must all hold; an empty list selects everything.

    `document` is a text of JSON, or dicts and lists. `limit` bounds the number of filters of the predicate, `shape_max`
    its SQL without the literals. Raises ParseError, which points at the character or names the way to the part.

    >>> read([{"prefix": {"type": "com.example."}}, {"not": {"exact": {"subject": "x"}}}])
    Predicate(type LIKE 'com.example.%' AND subject != 'x' OR type LIKE 'com.example.%' AND subject IS NULL)
    """
    given, text = document_of(document, WHAT)
    try:
        if isinstance(given, list | tuple):
            filters = []
            for at, one in enumerate(given):
                with within(at):
                    filters.append(_filter(one))
            holds = all_of(one.holds for one in filters)
        else:
            holds = _filter(given).holds
        if len(holds.text) > 4 * shape_max:
            raise RefusedRule("the filters are too long together", is_limit=True)
    except RefusedRule as error:
        raise located(error, text) from None
    return predicate_of(holds, text, limit, shape_max)


@dataclass(frozen=True, slots=True)
class _Filter:
    """When it is true, and when it is false."""

    holds: Sql
    fails: Sql


def _filter(given: Any) -> _Filter:
    if not isinstance(given, Mapping):
        raise RefusedRule(f"a filter is an object, not {shortened(given)}")
    if len(given) != 1:
        raise RefusedRule(f"a filter has one member, the name of its dialect, not {len(given)}")
    ((dialect, content),) = given.items()
    with within(dialect):
        read_dialect = _DIALECTS.get(dialect)
        if read_dialect is None:
            known = ", ".join(_DIALECTS)
            raise RefusedRule(f"there is no filter dialect {shortened(dialect)}; there are {known}")
        return read_dialect(content)


def _of_attributes(compare: Callable[[str, str], CesqlCondition]) -> Callable[[Any], _Filter]:
    """exact, prefix and suffix: all of the attributes must compare so."""

    def read_dialect(content: Any) -> _Filter:
        if not isinstance(content, Mapping) or not content:
            raise RefusedRule("an object is needed here, of attributes and strings")
        parts = []
        for name, text in content.items():
            with within(name):
                _check(name, text)
                condition = compare(name, text)
                parts.append(_Filter(condition.holds, _unless(name, condition)))
        return _Filter(all_of(one.holds for one in parts), any_of(one.fails for one in parts))

    return read_dialect


def _check(name: str, text: Any) -> None:
    if not name or not (name.isascii() and name.isalnum() and name == name.lower()):
        raise RefusedRule("the name of an attribute is small letters and digits")
    if not isinstance(text, str):
        raise RefusedRule(f"an attribute is compared with a string, not {shortened(text)}")
    if not text:
        raise RefusedRule("an attribute is not compared with an empty string")


def _unless(name: str, condition: CesqlCondition) -> Sql:
    is_missing = Sql(f"{name_sql(name)} IS NULL", Binding.COMPARISON)
    return any_of([condition.fails, is_missing])


def _exact(name: str, text: str) -> CesqlCondition:
    return condition_of_tree(CesqlOperation("=", CesqlAttribute(name, 0), Literal(text, 0), 0))


def _prefix(name: str, text: str) -> CesqlCondition:
    return attribute_matches(name, _taken_literally(text) + "%")


def _suffix(name: str, text: str) -> CesqlCondition:
    return attribute_matches(name, "%" + _taken_literally(text))


def _taken_literally(text: str) -> str:
    return "".join(f"\\{char}" if char in "%_\\" else char for char in text)


def _nested(content: Any) -> list[_Filter]:
    if not isinstance(content, list | tuple) or not content:
        raise RefusedRule("an array of at least one filter is needed here")
    found = []
    for at, one in enumerate(content):
        with within(at):
            found.append(_filter(one))
    return found


def _all(content: Any) -> _Filter:
    parts = _nested(content)
    return _Filter(all_of(one.holds for one in parts), any_of(one.fails for one in parts))


def _any(content: Any) -> _Filter:
    parts = _nested(content)
    return _Filter(any_of(one.holds for one in parts), all_of(one.fails for one in parts))


def _not(content: Any) -> _Filter:
    inner = _filter(content)
    return _Filter(inner.fails, inner.holds)


def _sql(content: Any) -> _Filter:
    if not isinstance(content, str):
        raise RefusedRule(f"a CESQL expression is a string, not {shortened(content)}")
    try:
        condition = condition_of(content)
    except (ParseError, LimitExceeded) as error:
        _refuse(error)
    if condition.defined == TRUE:
        return _Filter(condition.holds, condition.fails)
    return _Filter(condition.holds, complement(condition.holds))


def _refuse(error: ParseError | LimitExceeded) -> NoReturn:
    place = f", at character {error.position + 1} of it" if error.position else ""
    reason = f"the expression cannot be read: {error.reason}{place}"
    raise RefusedRule(reason, is_limit=isinstance(error, LimitExceeded))


_DIALECTS: dict[str, Callable[[Any], _Filter]] = {
    "exact": _of_attributes(_exact),
    "prefix": _of_attributes(_prefix),
    "suffix": _of_attributes(_suffix),
    "all": _all,
    "any": _any,
    "not": _not,
    "sql": _sql,
}
