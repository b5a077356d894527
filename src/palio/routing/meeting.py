"""Which subscriptions meet an advertisement: those that a message which it allows can match (2000, 3.5)."""

from __future__ import annotations

from collections.abc import Callable

from palio.model.advertisement import Advertisement
from palio.model.covering import intersects
from palio.model.expressions.names import is_computed
from palio.model.predicate import Filter, Op


def meeting(advertisement: Advertisement) -> Callable[[Filter], bool]:
    """A test whether filters intersect an advertisement. The names alone rule out most of them."""
    names = {c.name for c in advertisement}

    def meets(item: Filter) -> bool:
        return all(
            c.name in names or c.op is Op.ABSENT or is_computed(c.name) for c in item
        ) and intersects(advertisement, item)

    return meets
