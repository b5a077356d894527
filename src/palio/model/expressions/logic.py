"""Comparisons and what chooses among values. NULL is None; the logic has three values.

Values of different types neither equal each other nor differ: comparing them gives NULL.
"""

from __future__ import annotations

from collections.abc import Callable

from palio.model.expressions.decimals import Exact
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.number_functions import Computed
from palio.model.values import comparable, type_of


def order(a: Computed, b: Computed) -> int | None:
    """-1, 0 or 1; None: they are of different types. NaN lies above every number, and equals itself."""
    x, y = _plain(a, b), _plain(b, a)
    if isinstance(x, Exact) and isinstance(y, Exact):
        x, y = x.value, y.value  # type: ignore[assignment]
    elif not comparable(type_of(_bare(x)), type_of(_bare(y))):
        return None
    if x != x or y != y:
        return int(x != x) - int(y != y)
    return int(x > y) - int(x < y)  # type: ignore[operator]


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
            raise ExpressionError(f"{value!r} and {best!r} are of different types")
        if found == wanted:
            best = value
    return best


def nullif(a: Computed | None, b: Computed | None) -> Computed | None:
    return None if a is not None and b is not None and equal(a, b) else a


def truth(value: Computed | None) -> bool | None:
    """The argument of AND, OR, NOT and of a condition."""
    if value is None or isinstance(value, bool):
        return value
    raise ExpressionError(f"a boolean is needed, not {value!r}")
