"""Query documents evaluated as MongoDB's manual has it: what translated queries are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

MISSING = object()


def matches(query: dict[str, Any], document: Any) -> bool:
    return all(_member(name, operand, document) for name, operand in query.items())


def _member(name: str, operand: Any, document: Any) -> bool:
    if name == "$and":
        return all(matches(one, document) for one in operand)
    if name == "$or":
        return any(matches(one, document) for one in operand)
    if name == "$nor":
        return not any(matches(one, document) for one in operand)
    return _conditions(operand, lambda test: _holds(document, name.split("."), test))


def _conditions(operand: Any, holds: Callable[[Any], bool]) -> bool:
    if not isinstance(operand, dict):
        return holds(_equal(operand))
    return all(_operator(name, inner, holds) for name, inner in operand.items())


def _operator(name: str, operand: Any, holds: Callable[[Any], bool]) -> bool:
    if name == "$not":
        return not _conditions(operand, holds)
    if name == "$ne":
        return not holds(_equal(operand))
    if name == "$nin":
        return not any(holds(_equal(one)) for one in operand)
    if name == "$in":
        return any(holds(_equal(one)) for one in operand)
    if name == "$all":
        return bool(operand) and all(holds(_equal(one)) for one in operand)
    if name == "$exists":
        return holds(_Whole(lambda value: value is not MISSING)) is operand
    if name == "$size":
        return holds(_Whole(lambda value: isinstance(value, list) and len(value) == operand))
    if name == "$elemMatch":
        return holds(_Whole(lambda value: _any_element(value, operand)))
    return holds(_ordered(name, operand))


def _any_element(value: Any, operand: dict[str, Any]) -> bool:
    if not isinstance(value, list):
        return False
    if next(iter(operand)).startswith("$"):
        return any(_conditions(operand, lambda test, one=one: test(one)) for one in value)  # type: ignore[misc]
    return any(isinstance(one, dict) and matches(operand, one) for one in value)


class _Whole:
    """A test of a value itself, not of its elements."""

    def __init__(self, test: Callable[[Any], bool]) -> None:
        self.test = test

    def __call__(self, value: Any) -> bool:
        return self.test(value)


def _holds(document: Any, path: list[str], test: Any) -> bool:
    for value in _values(document, path):
        if test(value):
            return True
        is_array = isinstance(value, list) and not isinstance(test, _Whole)
        if is_array and any(test(one) for one in value):
            return True
    return False


def _values(document: Any, path: list[str]) -> Iterator[Any]:
    if not path:
        yield document
    elif isinstance(document, dict):
        yield from _values(document.get(path[0], MISSING), path[1:])
    elif isinstance(document, list):
        for one in document:
            if isinstance(one, dict):
                yield from _values(one, path)
    else:
        yield MISSING


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _equal(wanted: Any) -> Callable[[Any], bool]:
    if wanted is None:
        return lambda value: value is MISSING or value is None
    return lambda value: _kind(value) == _kind(wanted) and bool(value == wanted)


def _ordered(name: str, bound: Any) -> Callable[[Any], bool]:
    compare: dict[str, Callable[[Any, Any], bool]] = {
        "$eq": lambda a, b: a == b,
        "$lt": lambda a, b: a < b,
        "$lte": lambda a, b: a <= b,
        "$gt": lambda a, b: a > b,
        "$gte": lambda a, b: a >= b,
        "$mod": lambda a, b: a % b[0] == b[1],
    }
    kind = "number" if name == "$mod" else _kind(bound)
    return lambda value: _kind(value) == kind and compare[name](value, bound)
