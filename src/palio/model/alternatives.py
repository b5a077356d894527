"""Filters with a condition that one of several constraints decides become several filters.

    dest = 'MXP' AND arrays_overlap(tags, array('a', 'b'))

    dest = 'MXP' AND array_contains(tags, 'a')
    dest = 'MXP' AND array_contains(tags, 'b')

One such condition of a filter is enough to find it by, so only the one with the fewest alternatives
is split, and none where the filter asks for an element anyway: filters never multiply. The filters
of a printed predicate are not split any further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from palio.model.expression_costs import member_array
from palio.model.expressions.names import is_computed
from palio.model.predicate import Constraint


@dataclass(frozen=True, slots=True)
class Alternatives:
    """A condition, and the constraints one of which is satisfied where it is."""

    whole: Constraint
    members: tuple[Constraint, ...]


_Part: TypeAlias = "Constraint | Alternatives"


def split(filters: Sequence[Sequence[_Part]], limit: int) -> list[tuple[Constraint, ...]]:
    """The filters without Alternatives, as many of them split as keep within the limit."""
    found: list[tuple[Constraint, ...]] = []
    left = limit - len(filters)
    for parts in filters:
        own = _split(parts)
        if len(own) - 1 > left:
            own = [tuple(map(_whole, parts))]
        left -= len(own) - 1
        found += own
    return found


def _split(parts: Sequence[_Part]) -> list[tuple[Constraint, ...]]:
    choices = [part for part in parts if isinstance(part, Alternatives) and len(part.members) > 1]
    whole = tuple(map(_whole, parts))
    if not choices or any(map(_asks_for_element, whole)):
        return [whole]
    fewest = min(choices, key=lambda part: len(part.members))
    at = next(i for i, part in enumerate(parts) if part is fewest)
    return [(*whole[:at], member, *whole[at + 1 :]) for member in fewest.members]


def _whole(part: _Part) -> Constraint:
    if not isinstance(part, Alternatives):
        return part
    return part.members[0] if len(part.members) == 1 else part.whole


def _asks_for_element(constraint: Constraint) -> bool:
    if constraint.value is not True or not is_computed(constraint.name):
        return False
    return member_array(constraint.name) is not None
