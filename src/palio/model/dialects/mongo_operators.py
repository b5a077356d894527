"""The operators of query documents as tests of a field: $eq, $gt, $in, $regex, $mod, $size, ...

Values of unlike types satisfy none of them, as in MongoDB; the negative operators are the complements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from palio.model.dialects.documents import RefusedRule, literal
from palio.model.dialects.mongo_fields import FieldTest, exists
from palio.model.dialects.mongo_values import MongoRegex, value_of
from palio.model.dialects.translation import (
    EACH,
    FALSE,
    LIST_MAX,
    TRUE,
    Binding,
    Sql,
    any_of,
    called,
    comparison,
    is_null,
    negation,
    settled,
)


def of_elements(test: Callable[[Sql], Sql]) -> FieldTest:
    """A value satisfies it, or an element of an array."""
    return FieldTest(test, lambda array: exists(array, test(EACH)))


def equals(raw: Any) -> FieldTest:
    value = value_of(raw)
    if value is None:
        return FieldTest(is_null, lambda array: exists(array, is_null(EACH)), accepts_missing=True)
    if isinstance(value, MongoRegex):
        return matches(value)
    if isinstance(value, list):
        return _equals_array(value)
    wanted = _operand(value)
    return FieldTest(
        lambda field: comparison(field, "=", wanted),
        lambda array: called("array_contains", array, wanted),
    )


def _operand(value: Any) -> Sql:
    if isinstance(value, dict):
        raise RefusedRule(
            "an object is not compared as a whole: a message has its fields as attributes; write "
            "'a.b': 1 instead of 'a': {'b': 1}"
        )
    return literal(value)


def _equals_array(values: list[Any]) -> FieldTest:
    if any(isinstance(one, list | MongoRegex) for one in values):
        raise RefusedRule("an array is compared with an array of plain values only")
    members = [Sql("NULL") if one is None else _operand(one) for one in values]
    wanted = called("array", *members)

    def is_same(field: Sql) -> Sql:
        return settled(comparison(field, "=", wanted))

    return of_elements(is_same)


def ordered(sign: str) -> Callable[[Any], FieldTest]:
    def test(raw: Any) -> FieldTest:
        value = value_of(raw)
        if value is None:
            return equals(None) if "=" in sign else FieldTest(lambda _: FALSE)
        if isinstance(value, list | MongoRegex):
            raise RefusedRule("arrays and regular expressions have no order")
        if isinstance(value, bool):
            return of_elements(lambda field: _boolean_order(field, sign, value))
        bound = _operand(value)
        return of_elements(lambda field: comparison(field, sign, bound))

    return test


def _boolean_order(field: Sql, sign: str, bound: bool) -> Sql:
    """false < true"""
    holds = {"<": bool.__lt__, "<=": bool.__le__, ">": bool.__gt__, ">=": bool.__ge__}[sign]
    return any_of(
        comparison(field, "=", TRUE if one else FALSE)
        for one in (False, True)
        if holds(one, bound) is True
    )


def among(raw: Any) -> FieldTest:
    """$in"""
    values = value_of(raw)
    if not isinstance(values, list):
        raise RefusedRule("$in and $nin take an array")
    by_type: dict[type, list[Any]] = {}
    special = []
    for value in values:
        if value is None or isinstance(value, MongoRegex | list | dict):
            special.append(equals(value))
        else:
            by_type.setdefault(float if type(value) is int else type(value), []).append(value)
    groups = [[_operand(one) for one in own] for own in by_type.values()]
    tests = [*map(_one_of, groups), *special]
    if len(tests) == 1:
        return tests[0]
    with_elements = [test.elements for test in tests if test.elements is not None]
    return FieldTest(
        lambda field: any_of(test.value(field) for test in tests),
        lambda array: any_of(elements(array) for elements in with_elements),
        any(test.accepts_missing for test in tests),
    )


def _in_list(field: Sql, members: list[Sql]) -> Sql:
    listed = ", ".join(one.text for one in members)
    return Sql(f"{field.text} IN ({listed})", Binding.COMPARISON)


_KEYS_MAX = 32
"""Members for each of which there is a filter that elements of arrays are looked up for."""


def _one_of(members: list[Sql]) -> FieldTest:
    def is_member(field: Sql) -> Sql:
        return _in_list(field, members)

    if len(members) == 1:
        return FieldTest(
            lambda field: comparison(field, "=", members[0]),
            lambda array: called("array_contains", array, members[0]),
        )
    if len(members) > _KEYS_MAX:
        parts = [members[at : at + LIST_MAX] for at in range(0, len(members), LIST_MAX)]
        return FieldTest(
            is_member, lambda array: any_of(exists(array, _in_list(EACH, part)) for part in parts)
        )
    return FieldTest(
        is_member, lambda array: called("arrays_overlap", array, called("array", *members))
    )


# ---- strings and numbers

_PLAIN = re.compile(r"[\w \-/@:,;=<>!#%&\"'~]+")
"""Characters that mean themselves in a regular expression."""


def matches(regex: MongoRegex) -> FieldTest:
    return of_elements(lambda field: _matched(field, regex))


def _matched(field: Sql, regex: MongoRegex) -> Sql:
    text, options = regex.pattern, regex.options.replace("u", "")
    if not options and _PLAIN.fullmatch(text):
        return called("contains", field, literal(text))
    if not options and text[:1] == "^" and _PLAIN.fullmatch(text, 1):
        return called("startswith", field, literal(text[1:]))
    flags = f"(?{''.join(sorted(set(options)))})" if options else ""
    return Sql(f"{field.text} RLIKE {literal(flags + text).text}", Binding.COMPARISON)


def remainder(raw: Any) -> FieldTest:
    """$mod"""
    values = value_of(raw)
    if not isinstance(values, list) or len(values) != 2:
        raise RefusedRule("$mod takes a divisor and a remainder")
    divisor, rest = (_truncated(one) for one in values)
    if divisor == 0:
        raise RefusedRule("the divisor of $mod is not 0")
    return of_elements(
        lambda field: comparison(
            Sql(f"{field.text} % {divisor}", Binding.PRODUCT), "=", literal(rest)
        )
    )


def _truncated(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value - value != 0:
        raise RefusedRule("the divisor and the remainder of $mod are numbers")
    return int(value)


# ---- what a field is


def size(raw: Any) -> FieldTest:
    count = value_of(raw)
    if isinstance(count, bool) or not isinstance(count, int | float) or count != int(count):
        raise RefusedRule("$size takes a whole number")
    return FieldTest(lambda field: comparison(called("size", field), "=", literal(int(count))))


def is_there(_raw: Any) -> FieldTest:
    return FieldTest(lambda field: negation(is_null(field)))


_ZERO, _EMPTY = Sql("0"), Sql("''")
_FIRST = datetime(1, 1, 1, tzinfo=UTC)


def _is_number(field: Sql) -> Sql:
    return any_of([comparison(field, "<", _ZERO), comparison(field, ">=", _ZERO)])


def _is_boolean(field: Sql) -> Sql:
    return any_of([comparison(field, "=", TRUE), comparison(field, "=", FALSE)])


_TYPE_TESTS: dict[str, Callable[[Sql], Sql]] = {
    "string": lambda field: comparison(field, ">=", _EMPTY),
    "number": _is_number,
    "bool": _is_boolean,
    "date": lambda field: comparison(field, ">=", literal(_FIRST)),
    "array": lambda field: comparison(called("size", field), ">=", _ZERO),
}
"""By their order, which every value of the type satisfies, in lambdas as well."""
_TYPEOF = {"double": "double", "int": "bigint", "long": "bigint"}
"""These are told apart by typeof, which asks for an attribute itself."""
_TYPE_NUMBERS = {1: "double", 2: "string", 4: "array", 8: "bool", 9: "date", 16: "int", 18: "long"}


def has_type(raw: Any) -> FieldTest:
    """$type; null and objects are refused, as a message does not hold them."""
    wanted = raw if isinstance(raw, list | tuple) else [raw]
    names = [_TYPE_NUMBERS.get(one, str(one)) if type(one) is int else str(one) for one in wanted]
    for name in names:
        if name not in _TYPE_TESTS and name not in _TYPEOF:
            known = ", ".join([*_TYPE_TESTS, *_TYPEOF])
            raise RefusedRule(f"$type {name[:40]} is not supported; there are {known}")

    def is_of_type(field: Sql) -> Sql:
        return any_of(_type_test(name, field) for name in names)

    in_elements = [_TYPE_TESTS[name] for name in names if name in _TYPE_TESTS and name != "array"]
    if not in_elements:
        return FieldTest(is_of_type)
    return FieldTest(
        is_of_type, lambda array: exists(array, any_of(test(EACH) for test in in_elements))
    )


def _type_test(name: str, field: Sql) -> Sql:
    if name in _TYPE_TESTS:
        return _TYPE_TESTS[name](field)
    return comparison(called("typeof", field), "=", literal(_TYPEOF[name]))


TESTS: dict[str, Callable[[Any], FieldTest]] = {
    "$eq": equals,
    "$gt": ordered(">"),
    "$gte": ordered(">="),
    "$lt": ordered("<"),
    "$lte": ordered("<="),
    "$in": among,
    "$mod": remainder,
    "$size": size,
    "$type": has_type,
}
