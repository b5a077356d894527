"""The JSON form of a predicate: a list of filters, each a list of constraints.

    [[{"name": "price", "op": "<", "type": "int", "value": 500}],
     [{"name": "dest", "op": "in", "type": "string", "value": ["LIN", "MXP"]},
      {"name": "gate", "op": "absent"}]]

The operators are those of `Op`. `type` may be left out where the JSON value decides it (a string
is a string, never a time). A time is an ISO 8601 string, an infinite float the string "Infinity"
or "-Infinity". Reading what was written gives the same predicate.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from palio.errors import InvalidPredicate, InvalidValue
from palio.model.operators import Op
from palio.model.predicate import Constraint, Filter, Predicate
from palio.model.values import (
    INT_MAX,
    INT_MIN,
    Type,
    Value,
    format_instant,
    parse_instant,
    shortened,
)

_KEYS = ("name", "op", "type", "value")
_INFINITE = {"Infinity": math.inf, "-Infinity": -math.inf}


def to_json(predicate: Predicate) -> str:
    """The predicate as JSON text.

    >>> to_json(Predicate.of(Constraint("price", "<", 500)))
    '[[{"name": "price", "op": "<", "type": "int", "value": 500}]]'
    """
    return json.dumps(to_object(predicate), ensure_ascii=False, allow_nan=False)


def to_object(predicate: Predicate) -> list[list[dict[str, Any]]]:
    """The predicate as lists and dicts that every JSON library writes."""
    return [[_constraint_object(c) for c in f.constraints] for f in predicate.filters]


def from_json(text: str | bytes) -> Predicate:
    """Read JSON text; InvalidPredicate names the place that is wrong.

    >>> from_json('[[{"name": "dest", "op": "prefix", "value": "M"}], []]')
    Predicate(dest LIKE 'M%' OR TRUE)
    """
    if not isinstance(text, str | bytes | bytearray):
        raise InvalidPredicate(f"the JSON form is read from text, not a {type(text).__name__}")
    try:
        document = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError:
        raise InvalidPredicate("the predicate is nested too deeply") from None
    except ValueError as error:
        raise InvalidPredicate(f"the predicate cannot be read as JSON: {error}") from None
    return from_object(document)


def from_object(document: object) -> Predicate:
    """Read the lists and dicts of the JSON form."""
    if not isinstance(document, list | tuple):
        raise InvalidPredicate(f"a predicate is a list of filters, not {_kind(document)}")
    return Predicate(tuple(_filter(number, item) for number, item in enumerate(document, 1)))


def _filter(number: int, item: object) -> Filter:
    if not isinstance(item, list | tuple):
        raise InvalidPredicate(
            f"a filter is a list of constraints, not {_kind(item)}", filter=number
        )
    constraints = []
    for place, part in enumerate(item, 1):
        try:
            constraints.append(_constraint(part))
        except InvalidValue as error:
            refused = InvalidPredicate.of_value(error)
            raise refused.at(filter=number, constraint=place) from None
        except InvalidPredicate as error:
            raise error.at(filter=number, constraint=place) from None
    return Filter(tuple(constraints))


def _constraint(item: object) -> Constraint:
    if isinstance(item, _Repeated):
        raise InvalidPredicate(f"the key {item.key!r} is there twice")
    if not isinstance(item, dict):
        raise InvalidPredicate(f"a constraint is an object, not {_kind(item)}")
    for key in item:
        if key not in _KEYS:
            raise InvalidPredicate(
                f"no key {shortened(key, 40)}", remedy=f"there are {', '.join(_KEYS)}"
            )
    name, op, value = _word(item, "name"), _word(item, "op"), item.get("value")
    declared = _type(item.get("type"))
    if op == Op.IN:
        if not isinstance(value, list | tuple):
            raise InvalidPredicate(f"in takes a list of values, not {_kind(value)}")
        return Constraint(name, op, _members(declared, value))
    if op == Op.ANY or value is None:  # Constraint says what is wrong with the rest
        return Constraint(name, op, value, declared)
    return Constraint(name, op, _value(declared, value))


def _word(item: dict[str, Any], key: str) -> str:
    word = item.get(key)
    if not isinstance(word, str):
        lacks = "is missing" if word is None else f"is a string, not {_kind(word)}"
        raise InvalidPredicate(f"{key} {lacks}")
    return word


def _type(word: object) -> Type | None:
    if word is None:
        return None
    if not isinstance(word, str) or word not in list(Type):
        raise InvalidPredicate(
            f"no type {shortened(word, 40)}", remedy=f"there are {', '.join(Type)}"
        )
    return Type(word)


def _value(declared: Type | None, value: object) -> Value:
    """A value of this type from what JSON has for it."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidPredicate('the number does not fit in a double; infinity is "Infinity"')
    if declared is Type.FLOAT:
        if type(value) is int:
            return _as_float(value)
        if isinstance(value, str) and value in _INFINITE:
            return _INFINITE[value]
    if declared is Type.TIME and isinstance(value, str):
        return parse_instant(value)
    if not isinstance(value, bool | int | float | str):
        raise InvalidPredicate(f"{_kind(value)} is not a value")
    if declared not in (None, _TYPE_OF.get(type(value))):
        raise InvalidPredicate(f"the value {shortened(value, 40)} is not of type {declared}")
    return value


_TYPE_OF = {bool: Type.BOOL, int: Type.INT, float: Type.FLOAT, str: Type.STRING}


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise InvalidPredicate("the number does not fit in a double") from None


def _members(declared: Type | None, values: Sequence[object]) -> list[Value]:
    """The values of a list. Beside a float an int stays one, so that it stays exact."""
    mixed = declared is Type.FLOAT and not all(type(value) is int for value in values)
    return [
        value
        if mixed and type(value) is int and INT_MIN <= value <= INT_MAX
        else _value(declared, value)
        for value in values
    ]


def _constraint_object(constraint: Constraint) -> dict[str, Any]:
    made: dict[str, Any] = {"name": constraint.name, "op": str(constraint.op)}
    if constraint.type is not None:
        made["type"] = str(constraint.type)
    operand = constraint.value
    if isinstance(operand, tuple):
        made["value"] = list(map(_json_value, operand))
    elif operand is not None:
        made["value"] = _json_value(operand)
    return made


def _json_value(value: Value) -> bool | int | float | str:
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


class _Repeated:
    """What stands in place of an object that holds a key twice."""

    def __init__(self, key: str) -> None:
        self.key = key


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Repeated:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    keys = [key for key, _ in pairs]
    return _Repeated(next(key for key in keys if keys.count(key) > 1))


def _no_constant(word: str) -> None:
    raise ValueError(f'{word} is not JSON; infinity is the string "Infinity"')


_KINDS = {type(None): "null", bool: "a bool", str: "a string", dict: "an object", list: "a list"}
_KINDS |= {int: "a number", float: "a number", _Repeated: "an object"}


def _kind(item: object) -> str:
    return _KINDS.get(type(item), f"a {type(item).__name__}")
