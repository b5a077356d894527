"""Functions of what an attribute holds, be it a value, an object, or arrays of them at any depth.

x                                    leaves(x)        leaves(x, 'a')      objects(x)
NULL                                 []               []                  []
5                                    [5]              []                  []
[5, [NULL], {"a": 6}, {"a": [7]}]    [5, NULL]        [6, 7]              [{"a": 6}, {"a": [7]}]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from palio.model.expressions.errors import ExpressionError

Held: TypeAlias = Any
"""A value, an array (a tuple), an object (a mapping), or None."""

DEPTH_MAX = 64
"""Arrays within arrays."""


def leaves(value: Held, *path: Held) -> tuple[Held, ...]:
    """The values that something holds, through arrays; with a path, those of the objects that it holds.

    NULLs in arrays are kept, and objects at the end of the path are left out.

    >>> leaves((5, (None, {"a": 6}), {"a": (7,)}))
    (5, None)
    >>> leaves((5, (None, {"a": 6}), {"a": (7,)}), "a")
    (6, 7)
    """
    return tuple(_at(value, path, _is_leaf))


def objects(value: Held, *path: Held) -> tuple[Held, ...]:
    """The objects that something holds, through arrays; with a path, those that these hold there.

    >>> objects((5, ({"a": 7},), {"a": {"b": 8}}), "a")
    ({'b': 8},)
    """
    return tuple(_at(value, path, _is_object))


def is_array(value: Held) -> bool:
    return isinstance(value, tuple)


def is_nested(value: Held) -> bool:
    """An array that holds arrays."""
    return isinstance(value, tuple) and any(isinstance(one, tuple) for one in value)


_Wanted: TypeAlias = Callable[[Held], bool]


def _is_object(value: Held) -> bool:
    return isinstance(value, Mapping)


def _is_leaf(value: Held) -> bool:
    return not isinstance(value, Mapping)


def _at(value: Held, path: tuple[Held, ...], wanted: _Wanted) -> Iterator[Held]:
    found = iter((value,))
    if not all(isinstance(name, str) for name in path):
        raise ExpressionError("the names of a path are strings")
    for name in path:
        found = _below(found, name)
    for one in found:
        if one is not None:  # a path that is not there
            yield from _held(one, wanted)


def _below(values: Iterator[Held], name: Held) -> Iterator[Held]:
    for value in values:
        for one in _held(value, _is_object):
            yield one.get(name)


def _held(value: Held, wanted: _Wanted) -> Iterator[Held]:
    """Values in arrays, in order."""
    stack = [iter((value,))]
    while stack:
        for one in stack[-1]:
            if isinstance(one, tuple):
                if len(stack) > DEPTH_MAX:
                    raise ExpressionError(f"arrays are nested more than {DEPTH_MAX} deep")
                stack.append(iter(one))
                break
            if wanted(one):
                yield one
        else:
            stack.pop()
