"""What a residual implies, as constraints by which its filter is filed and found.

    abs(lat - 45.3) < 0.1        lat >= 45.19... AND lat <= 45.4...
    name LIKE 'ab%c'             name LIKE 'ab%'
    x + y > 3                    x IS NOT NULL AND y IS NOT NULL

They select more messages than the residual does, never fewer: of the sets that `palio.model.implied` finds they
are what one or two constraints say.
"""

from __future__ import annotations

from collections.abc import Iterator

from palio.model.decimal_ranges import number_of
from palio.model.implied import implied as implied_sets
from palio.model.operators import Op
from palio.model.outlines import WHOLE, bounds, only_strings
from palio.model.predicate import Constraint
from palio.model.strings import common_prefix
from palio.model.values import instant_from_micros
from palio.model.valuesets import ValueSet, selected


def implied(residual: Constraint) -> list[Constraint]:
    """Constraints that hold for every message that satisfies the residual."""
    found = implied_sets(residual.name, selected(residual))
    return [one for name in sorted(found) for one in _constraints(name, found[name])]


def _constraints(name: str, allowed: ValueSet) -> Iterator[Constraint]:
    found = list(_texts(name, allowed)) or list(_bounds(name, allowed))
    yield from found or [Constraint(name, Op.ANY)]


def _texts(name: str, allowed: ValueSet) -> Iterator[Constraint]:
    """The most selective one of a string; none where only its type is known: what has another one is an error
    that is counted."""
    known = only_strings(allowed)
    if known is None or known.empty:
        return
    longest = max(known.contains, key=len, default="")
    if known.only is not None:
        yield Constraint(name, Op.IN, known.only)
    elif begin := common_prefix(known.low, known.high):
        yield Constraint(name, Op.PREFIX, begin)
    elif known.suffix:
        yield Constraint(name, Op.SUFFIX, known.suffix)
    elif longest:
        yield Constraint(name, Op.CONTAINS, longest)


def _bounds(name: str, allowed: ValueSet) -> Iterator[Constraint]:
    """The least and the greatest number or time, where there is an end."""
    kind, span = bounds(allowed)
    if span is None or kind not in ("number", "time"):
        return
    if kind == "time":
        yield Constraint(name, Op.GE, instant_from_micros(span[0]))
        yield Constraint(name, Op.LE, instant_from_micros(span[1]))
        return
    low, high = span  # steps: a number, or a gap of decimals between two
    if low > WHOLE[kind][0]:
        yield Constraint(name, Op.GT if low % 2 else Op.GE, number_of(low // 2))
    if high < WHOLE[kind][1]:
        yield Constraint(name, Op.LT if high % 2 else Op.LE, number_of((high + 1) // 2))
