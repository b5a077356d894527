"""Comparisons and what chooses among values. NULL is None; the logic has three values.

Values of different types neither equal each other nor differ: comparing them gives NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from palio.model.expressions.decimals import Exact
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.number_functions import Computed
from palio.model.values import comparable, shortened, type_of

_NOT_PLAIN = (tuple, dict, bytes)


def order(a: Computed, b: Computed) -> int | None:
    """-1, 0 or 1; None: they are of different types. NaN lies above every number, and equals itself."""
    if isinstance(a, _NOT_PLAIN) or isinstance(b, _NOT_PLAIN):
        return _order_of_arrays(a, b, [_MEMBERS_MAX])
    x, y = _plain(a, b), _plain(b, a)
    if isinstance(x, Exact) and isinstance(y, Exact):
        x, y = x.value, y.value  # type: ignore[assignment]
    elif not comparable(type_of(_bare(x)), type_of(_bare(y))):
        return None
    if x != x or y != y:
        return int(x != x) - int(y != y)
    return int(x > y) - int(x < y)  # type: ignore[operator]


_MEMBERS_MAX = 1_000
"""Of two arrays, those that are compared one by one: arrays in arrays, and NaN."""
_AT_ONCE = 256
_QUICK = frozenset((int, float, str, datetime, type(None)))


def _order_of_arrays(a: Computed, b: Computed, left: list[int]) -> int | None:
    """By the first elements that differ; NULL equals NULL here and lies below all values. `left`: how many
    may be compared one by one."""
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        return None
    for begin in range(0, min(len(a), len(b)), _AT_ONCE):
        own, other = a[begin : begin + _AT_ONCE], b[begin : begin + _AT_ONCE]
        if own == other and _are_plain(own, other):
            continue
        found = _order_of_members(own, other, left)
        if found != 0:
            return found
    return int(len(a) > len(b)) - int(len(a) < len(b))


def _are_plain(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    """Are members that equal each other in Python equal here? TRUE and 1 are not, nor are objects."""
    of_a, of_b = list(map(type, a)), list(map(type, b))
    types = {*of_a, *of_b}
    return types <= _QUICK or (types <= _QUICK | {bool} and of_a == of_b)


def _order_of_members(
    a: tuple[Computed | None, ...], b: tuple[Computed | None, ...], left: list[int]
) -> int | None:
    for x, y in zip(a, b, strict=False):
        left[0] -= 1
        if left[0] < 0:
            raise ExpressionError(
                f"of arrays of arrays up to {_MEMBERS_MAX:,} members are compared"
            )
        if x is None or y is None:
            found: int | None = int(x is not None) - int(y is not None)
        elif isinstance(x, _NOT_PLAIN) or isinstance(y, _NOT_PLAIN):
            found = _order_of_arrays(x, y, left)
        else:
            found = order(x, y)
        if found != 0:
            return found
    return 0


def _plain(value: Computed, other: Computed) -> Computed:
    """A decimal as what it is compared with: exact against an integer, else a double."""
    if isinstance(value, Exact):
        return (
            value
            if isinstance(other, Exact | int) and not isinstance(other, bool)
            else float(value)
        )
    if isinstance(other, Exact) and isinstance(value, int) and not isinstance(value, bool):
        return Exact.of_int(value)
    return value


def _bare(value: Computed) -> bool | int | float | str:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value  # type: ignore[return-value]


def _comparison(holds: Callable[[int], bool]) -> Callable[[Computed, Computed], bool | None]:
    def compared(a: Computed, b: Computed) -> bool | None:
        found = order(a, b)
        return None if found is None else holds(found)

    return compared


equal = _comparison(lambda found: found == 0)
not_equal = _comparison(lambda found: found != 0)
less = _comparison(lambda found: found < 0)
less_or_equal = _comparison(lambda found: found <= 0)
greater = _comparison(lambda found: found > 0)
greater_or_equal = _comparison(lambda found: found >= 0)


def same(a: Computed | None, b: Computed | None) -> bool:
    """<=>, which is never NULL."""
    return a is b is None or (a is not None and b is not None and equal(a, b) is True)


def least(*values: Computed | None) -> Computed | None:
    """NULLs are left out."""
    return _extreme(values, -1)


def greatest(*values: Computed | None) -> Computed | None:
    return _extreme(values, 1)


def _extreme(values: tuple[Computed | None, ...], wanted: int) -> Computed | None:
    best: Computed | None = None
    for value in values:
        if value is None:
            continue
        found = wanted if best is None else order(value, best)
        if found is None:
            raise ExpressionError(
                f"{shortened(value)} and {shortened(best)} are of different types"
            )
        if found == wanted:
            best = value
    return best


def nullif(a: Computed | None, b: Computed | None) -> Computed | None:
    return None if a is not None and b is not None and equal(a, b) else a


def among(value: Computed | None, *members: Computed | None) -> bool | None:
    """IN: as equal to the one or the other."""
    if value is None:
        return None
    found = [None if member is None else equal(value, member) for member in members]
    return True if True in found else None if None in found else False


def between(value: Computed | None, low: Computed | None, high: Computed | None) -> bool | None:
    if value is None:
        return None
    above = None if low is None else greater_or_equal(value, low)
    below = None if high is None else less_or_equal(value, high)
    return False if above is False or below is False else None if None in (above, below) else True


def truth(value: Computed | None) -> bool | None:
    """The argument of AND, OR, NOT and of a condition."""
    if value is None or isinstance(value, bool):
        return value
    raise ExpressionError(f"a boolean is needed, not {shortened(value)}")
