"""Covering and intersection: the relations of the 2000 paper (sections 3.1 to 3.3).

A filter is a box (`boxes`). A disjunction covers a box when nothing of the box is left after
taking the disjunction's boxes away, one after the other; the number of pieces is bounded.

Everything here is sound: `covers` says yes and `intersects` says no only when it is so. Both are
complete on bool, numbers and times, and on strings with `exact=True`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from palio.errors import InvalidPredicate, LimitExceeded
from palio.model import valuesets
from palio.model.advertisement import Advertisement
from palio.model.boxes import Box, Extension, Schema, box, box_covers, declared, is_contradiction
from palio.model.cover_index import CoverIndex
from palio.model.expressions.absence import can_be_there
from palio.model.expressions.names import is_computed
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Filter, Predicate
from palio.model.valuesets import ABSENT, ANYTHING, ValueSet, is_empty, is_subset

Subscription: TypeAlias = Predicate | Filter | str

INDEX_MIN = 32  # boxes worth an index
PIECES_MAX = 2_000  # of a box cut by the boxes of a disjunction; beyond it the answer is "no"
PIECES_MAX_EXACT = 100_000


def covers(
    a: Subscription | Advertisement,
    b: Subscription | Advertisement,
    *,
    exact: bool = False,
    schema: Schema | None = None,
) -> bool:
    """Does a select every message that b selects?

    Two subscriptions or two advertisements. `exact` decides conjunctions of string constraints
    by automata instead of a fast sound test. `schema` declares the types of attributes: where x
    is an int, `x > 3 AND x < 5` is `x = 4`; without it a message may have x = 4.5.

    >>> covers("price < 500", "dest = 'MXP' AND price < 100")
    True
    >>> covers("x < 5 OR x > 3", "x = 4")
    True
    >>> covers("x = 4", "x > 3 AND x < 5", schema={"x": "int"})
    True
    """
    if isinstance(a, Advertisement) and isinstance(b, Advertisement):
        return advertisement_covers(a, b, exact=exact)
    if isinstance(a, Advertisement) or isinstance(b, Advertisement):
        raise InvalidPredicate(
            "an advertisement and a subscription do not cover each other",
            remedy="ask whether they intersect",
        )
    return uncovered(a, b, exact=exact, schema=schema) is None


def uncovered(
    a: Subscription, b: Subscription, *, exact: bool = False, schema: Schema | None = None
) -> Box | None:
    """A part of b that a does not cover, or None when a covers b."""
    wide = [box(f, schema) for f in as_predicate(a).filters]
    wide = [w for w in wide if not is_contradiction(w)]
    near, extension = _candidates(wide), Extension(schema)
    for f in as_predicate(b).filters:
        plain = box(f, schema)
        if _is_inside(plain, near, exact):
            continue
        narrow = extension.of(plain)
        if narrow is not plain and _is_inside(narrow, near, exact):
            continue
        left = _remainder(narrow, wide, exact, schema)
        if left is not None:
            return left
    return None


def _is_inside(narrow: Box, near: Callable[[Box], Iterable[Box]], exact: bool) -> bool:
    """Is it in one of the boxes near it, or empty?"""
    return is_contradiction(narrow, exact) or any(
        box_covers(w, narrow, exact) for w in near(narrow)
    )


def _candidates(wide: list[Box]) -> Callable[[Box], Iterable[Box]]:
    """Those of many boxes that may cover a given one; all of them when they are few."""
    if len(wide) <= INDEX_MIN:
        return lambda _narrow: wide
    index = CoverIndex(wide)
    return lambda narrow: (wide[i] for i in index.candidates(narrow))


def witness(
    a: Subscription, b: Subscription, *, exact: bool = True, schema: Schema | None = None
) -> Message | None:
    """A message that b selects and a does not, where there is one and it can be built.

    Without `exact` only one is tried, from what the quick test leaves of b.

    >>> witness("x < 3", "x < 5 AND s LIKE 'a%'")
    Message({'x': 3, 's': 'a'})
    """
    a, b = as_predicate(a), as_predicate(b)
    try:
        left = uncovered(a, b, exact=exact, schema=schema)
        if left is None or is_contradiction(left, exact=True):
            return None
        found = Message({name: valuesets.example(allowed) for name, allowed in left.items()})
    except LimitExceeded:
        return None
    return found if b.matches(found) and not a.matches(found) else None


def _remainder(narrow: Box, wide: list[Box], exact: bool, schema: Schema | None) -> Box | None:
    """What is left of a box when others are taken away from it."""
    if len(wide) > 1 or exact:
        wide = [w for w in wide if not _disjoint(narrow, w)]
    if len(wide) < 2 and not exact:  # one box against one has been decided
        return narrow
    wide.sort(key=len)
    budget = PIECES_MAX_EXACT if exact else PIECES_MAX
    stack = [(narrow, 0)]
    while stack:
        piece, at = stack.pop()
        while at < len(wide) and _disjoint(piece, wide[at]):
            at += 1
        if at == len(wide):
            if not is_contradiction(piece, exact):
                return piece
            continue
        parts = _without(piece, wide[at], exact, schema)
        budget -= len(parts) + 1
        if budget < 0:
            if exact:
                raise LimitExceeded(
                    f"the exact decision needs more than {PIECES_MAX_EXACT:,} pieces; "
                    "decide without exact=True"
                )
            return piece
        stack.extend((part, at + 1) for part in parts)
    return None


def _disjoint(a: Box, b: Box) -> bool:
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    return any(
        is_empty(valuesets.intersection(allowed, large[name]))
        for name, allowed in small.items()
        if name in large
    )


def _without(piece: Box, other: Box, exact: bool, schema: Schema | None) -> list[Box]:
    """The piece without the other box, as disjoint boxes."""
    parts: list[Box] = []
    inside = dict(piece)
    for name, allowed in other.items():
        known = inside[name] if name in inside else declared(name, schema)
        cut = valuesets.difference(known, allowed, exact)
        parts.extend({**inside, name: rest} for rest in cut if not is_empty(rest, exact))
        inside[name] = valuesets.intersection(known, allowed)
    return parts


def advertisement_covers(a: Advertisement, b: Advertisement, *, exact: bool = False) -> bool:
    """Does advertisement a allow every message that b allows (2000, 3.3)?"""
    mine = _allowed(a)
    for name, sets in _allowed(b).items():
        others = mine.get(name, [])
        for allowed in sets:
            if any(is_subset(allowed, other, exact) for other in others):
                continue
            if _remainder({name: allowed}, [{name: o} for o in others], exact, None) is not None:
                return False
    return True


def _allowed(advertisement: Advertisement) -> dict[str, list[ValueSet]]:
    """The values that an advertisement allows for each name: a union of sets."""
    sets: dict[str, list[ValueSet]] = {}
    for constraint in advertisement.constraints:
        chosen = valuesets.selected(constraint)
        known = sets.get(constraint.name)
        if chosen is ABSENT:  # every attribute may be missing anyway
            continue
        if known is None:
            sets[constraint.name] = [chosen]
        else:
            sets[constraint.name] = [*valuesets.union(known[0], chosen), *known[1:]]
    return sets


def intersects(
    advertisement: Advertisement | Subscription, subscription: Subscription, *, exact: bool = False
) -> bool:
    """Is there a message that both select? For an advertisement: one that it allows.

    Says no only when there is none, so a subscription that is sent only where it intersects
    misses nothing.
    """
    narrow = [box(f) for f in as_predicate(subscription).filters]
    if not isinstance(advertisement, Advertisement):
        wide = [box(f) for f in as_predicate(advertisement).filters]
        return any(not is_contradiction(_meet(w, n), exact) for w in wide for n in narrow)
    allowed = _allowed(advertisement)
    return any(_meets(allowed, n, exact) for n in narrow)


def _meet(a: Box, b: Box) -> Box:
    return {
        name: valuesets.intersection(a.get(name, ANYTHING), b.get(name, ANYTHING))
        for name in {**a, **b}
    }


def _meets(allowed: dict[str, list[ValueSet]], narrow: Box, exact: bool) -> bool:
    """Each constrained attribute may be missing, or may be what the advertisement allows; what is
    computed may be anything, unless what it needs is not allowed."""
    return all(
        wanted.absent
        or (is_computed(name) and can_be_there(name, allowed))
        or any(
            not is_empty(valuesets.intersection(wanted, offered), exact)
            for offered in allowed.get(name, [])
        )
        for name, wanted in narrow.items()
    )


def as_predicate(subscription: Subscription) -> Predicate:
    """A predicate from a predicate, a filter or a text."""
    if isinstance(subscription, Filter):
        return Predicate((subscription,))
    return parse(subscription) if isinstance(subscription, str) else subscription
