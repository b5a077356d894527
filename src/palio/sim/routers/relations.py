"""The relations of the model, remembered: a simulation asks the same few questions many times."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from palio.model import covering
from palio.model.advertisement import Advertisement
from palio.model.boxes import box, box_covers, is_contradiction
from palio.model.predicate import Filter


@lru_cache(maxsize=100_000)
def covers(a: Filter, b: Filter) -> bool:
    """As the poset of a router decides: of expressions it compares equal ones, and does not ask what they
    say of their attributes."""
    if a == b:
        return True
    wide, narrow = box(a), box(b)
    return is_contradiction(narrow) or (not is_contradiction(wide) and box_covers(wide, narrow))


@lru_cache(maxsize=100_000)
def advertisement_covers(a: Advertisement, b: Advertisement) -> bool:
    return a == b or covering.advertisement_covers(a, b)


@lru_cache(maxsize=100_000)
def intersects(advertisement: Advertisement, subscription: Filter) -> bool:
    return covering.intersects(advertisement, subscription)


def maximal(filters: Iterable[Filter]) -> list[Filter]:
    """Those that no other covers; of equal ones the first."""
    kept: list[Filter] = []
    for f in filters:
        if any(covers(other, f) for other in kept):
            continue
        kept = [other for other in kept if not covers(f, other)]
        kept.append(f)
    return kept


def maximal_advertisements(advertisements: Iterable[Advertisement]) -> list[Advertisement]:
    kept: list[Advertisement] = []
    for a in advertisements:
        if any(advertisement_covers(other, a) for other in kept):
            continue
        kept = [other for other in kept if not advertisement_covers(a, other)]
        kept.append(a)
    return kept
