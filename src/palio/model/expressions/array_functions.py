"""Functions of arrays, with the meaning that Spark SQL gives them. An array is a tuple.

Its elements may be NULL. Within arrays a NULL equals a NULL and lies below all values.
"""

from __future__ import annotations

from datetime import datetime

from palio.model.expressions.decimals import Exact
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.logic import equal, greatest, least
from palio.model.expressions.number_functions import Computed, IntLiteral, whole
from palio.model.expressions.text_functions import concat_ws
from palio.model.values import shortened


def array_of(value: Computed) -> tuple[Computed | None, ...]:
    """The argument of a function that takes an array."""
    if isinstance(value, tuple):
        return value
    raise ExpressionError(f"an array is needed, not {shortened(value)}")


def array(*elements: Computed | None) -> tuple[Computed | None, ...]:
    """Decimals become doubles, as in every value that is kept."""
    return tuple(map(kept, elements))


def kept(element: Computed | None) -> Computed | None:
    """As an array keeps it."""
    if isinstance(element, Exact):
        return element.attribute
    return int(element) if isinstance(element, IntLiteral) else element


def size(value: Computed) -> int:
    return len(array_of(value))


def element(value: Computed, index: Computed) -> Computed | None:
    """tags[0]"""
    found, at = array_of(value), whole(index)
    if not 0 <= at < len(found):
        raise ExpressionError(f"there is no element {at} in an array of {len(found)}")
    return found[at]


def get(value: Computed, index: Computed) -> Computed | None:
    """As `element`, but NULL outside is no error."""
    found, at = array_of(value), whole(index)
    return found[at] if 0 <= at < len(found) else None


def element_at(value: Computed, number: Computed) -> Computed | None:
    """Counted from 1; a negative number counts from the end."""
    found, wanted = array_of(value), whole(number)
    if not 0 < abs(wanted) <= len(found):
        raise ExpressionError(f"there is no element {wanted} in an array of {len(found)}")
    return found[wanted - 1 if wanted > 0 else wanted]


def try_element_at(value: Computed, number: Computed) -> Computed | None:
    found, wanted = array_of(value), whole(number)
    if wanted == 0:
        raise ExpressionError("elements are counted from 1")
    return element_at(value, number) if abs(wanted) <= len(found) else None


def field(value: Computed, name: Computed) -> Computed | None:
    """A field of an object that is an element of an array."""
    if isinstance(value, dict) and isinstance(name, str):
        return value.get(name)
    raise ExpressionError(f"an object and the name of a field are needed, not {shortened(value)}")


_TEXTS = frozenset((str, type(None)))


def array_contains(value: Computed, wanted: Computed) -> bool | None:
    found = array_of(value)
    if type(wanted) is str and set(map(type, found)) <= _TEXTS:  # quickly: tags are texts
        return True if wanted in found else None if None in found else False
    if any(one is not None and equal(one, wanted) for one in found):
        return True
    return None if None in found else False


def array_position(value: Computed, wanted: Computed) -> int:
    """Counted from 1; 0: nowhere."""
    found = array_of(value)
    places = (at for at, one in enumerate(found, 1) if one is not None and equal(one, wanted))
    return next(places, 0)


def arrays_overlap(a: Computed, b: Computed) -> bool | None:
    """Whether they have an element in common."""
    left, right = array_of(a), array_of(b)
    if _have_common(left, right):
        return True
    return None if left and right and (None in left or None in right) else False


def _have_common(a: tuple[Computed | None, ...], b: tuple[Computed | None, ...]) -> bool:
    """By hash, which is linear."""
    plain = {_plain_key(one) for one in a if _is_compared(one)}
    return any(_plain_key(one) in plain for one in b if _is_compared(one))


def _is_compared(value: object) -> bool:
    """Can it equal anything? Objects and bytes cannot, nor arrays with some in them."""
    if isinstance(value, tuple):
        return all(one is None or _is_compared(one) for one in value)
    return isinstance(value, bool | int | float | str | datetime)


def _key(value: object) -> tuple[str, object]:
    """Equal for equal values: 1 and 1.0, NaN and NaN, but not TRUE and 1."""
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int | float):
        return "number", "NaN" if value != value else value
    return type(value).__name__, value


def array_min(value: Computed) -> Computed | None:
    return least(*array_of(value))


def array_max(value: Computed) -> Computed | None:
    return greatest(*array_of(value))


def array_join(value: Computed, separator: Computed, instead: Computed | None = None) -> str | None:
    """The elements with a separator between them; NULLs are left out or replaced."""
    parts = (instead if one is None else one for one in array_of(value))
    return concat_ws(separator, *parts)


def array_distinct(value: Computed) -> tuple[Computed | None, ...]:
    return _without((), array_of(value))


def array_compact(value: Computed) -> tuple[Computed | None, ...]:
    """Without NULLs."""
    return tuple(one for one in array_of(value) if one is not None)


def array_union(a: Computed, b: Computed) -> tuple[Computed | None, ...]:
    return _without((), (*array_of(a), *array_of(b)))


def array_except(a: Computed, b: Computed) -> tuple[Computed | None, ...]:
    return _without(array_of(b), array_of(a))


def array_intersect(a: Computed, b: Computed) -> tuple[Computed | None, ...]:
    kept = {_plain_key(one) for one in array_of(b)}
    return _without((), tuple(one for one in array_of(a) if _plain_key(one) in kept))


def _without(
    others: tuple[Computed | None, ...], value: tuple[Computed | None, ...]
) -> tuple[Computed | None, ...]:
    """Each element once, except what is among the others."""
    seen = {_plain_key(one) for one in others}
    found = []
    for one in value:
        key = _plain_key(one)
        if key not in seen:
            seen.add(key)
            found.append(one)
    return tuple(found)


def _plain_key(value: object) -> object:
    """As `_key`, of NULLs and arrays too."""
    if isinstance(value, tuple):
        return tuple(map(_plain_key, value))
    if isinstance(value, dict):
        raise ExpressionError("objects are not compared")
    return None if value is None else _key(value)
