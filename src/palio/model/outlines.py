"""Outlines of value sets: the few facts by which an index files a set and finds it again.

When set b lies inside set a, as `valuesets.is_subset` decides it, then

    kind     they are of one kind, or a is of the kind "mixed" (`any`, absent)
    members  b has few members if a has; each of b's is one of a's
    hull     the hull of b, from its least to its greatest member, lies within the bounds of a
    texts    what a must end with or contain is a part of every text of b

so an index that compares these misses nothing; the caller verifies the candidates.

The bounds of a set of strings are those that its constraints name, its hull is what follows from
them: `s >= 'a' AND s != 'a'` is bounded by 'a', and its hull begins right above. Those of numbers are steps (`decimal_ranges`).
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import add
from typing import Any, TypeAlias

import msgspec

from palio.model import decimal_ranges, ranges
from palio.model.caches import cached
from palio.model.operators import ORDER_OPS, Op
from palio.model.strings import Facts, common_prefix, facts, least, order_range
from palio.model.values import Type
from palio.model.valuesets import DECIMAL, FLOAT, INT, ORDERED, ValueSet, set_bytes

Span: TypeAlias = tuple[Any, Any]  # low, high: comparable with each other within one kind
Member: TypeAlias = tuple[str, Any]

MEMBERS_MAX = 64
_LOW_OPS = frozenset({Op.GE, Op.GT, Op.PREFIX})
_BOTTOM, _TOP = (0, ""), (1, "")
_NAMES = (*ORDERED, "decimal")
_END = "\0"  # behind the last character; texts that hold it only make more candidates
WHOLE: dict[str, Span] = {
    "number": decimal_ranges.hull((), (ranges.UNIVERSE[Type.FLOAT],), ()),
    "time": ranges.UNIVERSE[Type.TIME],
    "bool": ranges.UNIVERSE[Type.BOOL],
    "string": (_BOTTOM, _TOP),
    "mixed": (0, 0),  # no set of this kind has a span
}


class Outline(msgspec.Struct, frozen=True, gc=False):
    """All of these facts about one set, for an index that keeps its sets."""

    kind: str
    members: tuple[Member, ...] | None
    some_member: Member | None
    hull: Span | None
    is_point: bool  # the hulls of two points are equal or do not overlap
    bounds: Span | None
    is_interval: bool
    hole: Span | None
    pairs: frozenset[str]  # neighbouring characters that all its texts have
    needed_pairs: frozenset[str]  # those by which to find it, when members and bounds do not help


@cached(16384, set_bytes)
def outline(allowed: ValueSet) -> Outline:
    """The outline of a set. Routers of one process mostly hold the same sets, hence the cache."""
    its, span = hull(allowed)
    few = members(allowed)
    limits = _bounds(allowed, its, span)
    known = only_strings(allowed)
    pairs = needed = _NO_PAIRS
    if known is not None:
        pairs = _pairs(*texts(known))
        if few is None and limits is None:
            needed = _pairs(known.suffix, known.contains)
    return Outline(
        kind=its,
        members=None if few is None else tuple(few),
        some_member=some_member(allowed),
        hull=span,
        is_point=span is not None and (span[0] == span[1] or _is_one_text(known)),
        bounds=limits,
        is_interval=few is None and _is_interval(allowed, its, limits),
        hole=hole(allowed) if limits is None else None,
        pairs=pairs,
        needed_pairs=needed,
    )


_NO_PAIRS: frozenset[str] = frozenset()


def _pairs(ending: str, others: Iterable[str]) -> frozenset[str]:
    closed = ending + _END if ending else ""
    return frozenset(pair for text in (closed, *others) for pair in set(map(add, text, text[1:])))


def _is_one_text(known: Facts | None) -> bool:
    return known is not None and known.only is not None and len(known.only) == 1


def kind(allowed: ValueSet) -> str:
    """number, time, bool, string, or mixed."""
    bools, ints, floats, times, gaps = allowed.ranges
    is_number = bool(ints or floats or gaps)
    kinds = [bool(bools), is_number, bool(times), allowed.strings is not None]
    if allowed.absent or sum(kinds) != 1:
        return "mixed"
    return ("bool", "number", "time", "string")[kinds.index(True)]


def members(allowed: ValueSet) -> list[Member] | None:
    """All members, when they are few; a gap counts as one."""
    if allowed.absent:
        return None
    found: list[Member] = []
    for name, spans in zip(_NAMES, allowed.ranges, strict=True):
        if not spans:
            continue
        if sum(high - low + 1 for low, high in spans) + len(found) > MEMBERS_MAX:
            return None
        found.extend((name, key) for low, high in spans for key in range(low, high + 1))
    if allowed.strings is not None:
        only = facts(allowed.strings).only
        if only is None or len(only) > MEMBERS_MAX:
            return None
        found.extend((Type.STRING, text) for text in sorted(only))
    return found


def some_member(allowed: ValueSet) -> Member | None:
    """A member, when it is easy to tell."""
    for name, spans in zip(_NAMES, allowed.ranges, strict=True):
        if spans:
            return name, spans[0][0]
    only = facts(allowed.strings).only if allowed.strings is not None else None
    return (Type.STRING, min(only)) if only else None


def only_strings(allowed: ValueSet) -> Facts | None:
    """What is known of its strings, when there is nothing else in it."""
    if allowed.strings is None or allowed.absent or any(allowed.ranges):
        return None
    return facts(allowed.strings)


def hull(allowed: ValueSet) -> tuple[str, Span | None]:
    """The kind of a set, and the least and greatest of it; no span when it is mixed."""
    its = kind(allowed)
    if its == "mixed":
        return its, None
    bools, ints, floats, times, gaps = allowed.ranges
    if its == "number":
        return its, decimal_ranges.hull(ints, floats, gaps)
    if its == "string":
        assert allowed.strings is not None
        known = facts(allowed.strings)
        return its, _only_span(known) or _string_span(known.low, known.high)
    spans = times or bools
    return its, (spans[0][0], spans[-1][1])


def bounds(allowed: ValueSet) -> tuple[str, Span | None]:
    """The kind of a set, and the span that holds the hull of all that lies inside it.

    No span when it bounds nothing.
    """
    its, span = hull(allowed)
    return its, _bounds(allowed, its, span)


def _bounds(allowed: ValueSet, its: str, span: Span | None) -> Span | None:
    if its == "string":
        span = _string_bounds(allowed)
    return None if span == WHOLE[its] else span


def _is_interval(allowed: ValueSet, its: str, span: Span | None) -> bool:
    """Is whatever has its hull within these bounds inside the set? Comparisons are like that."""
    if span is None:
        return False
    if its == "string":
        atoms = allowed.strings or ()
        plain = all(op in ORDER_OPS or op is Op.PREFIX for op, _ in atoms)
        return plain and not any(op in _LOW_OPS and not text.strip("\0") for op, text in atoms)
    if its != "number":
        return sum(map(len, allowed.ranges)) == 1
    inside = decimal_ranges.between(*span)
    return inside == tuple(allowed.ranges[place] for place in (INT, FLOAT, DECIMAL))


def hole(allowed: ValueSet) -> Span | None:
    """The one point that is missing, as a span, when the rest of the kind is there (!=)."""
    its = kind(allowed)
    if its == "string":
        if allowed.strings is None or [op for op, _ in allowed.strings] != [Op.NE]:
            return None
        text = allowed.strings[0][1]
        return _string_span(text, text + "\0")
    types = {"number": (Type.INT, Type.FLOAT), "time": (Type.TIME,)}.get(its, ())
    if its == "number" and allowed.ranges[DECIMAL] != (decimal_ranges.GAPS,):
        return None
    points = set()
    for type in types:
        spans = allowed.ranges[ORDERED.index(type)]
        for low, high in ranges.difference((ranges.UNIVERSE[type],), spans):
            if low != high:
                return None
            points.add(_step(type, low))
    if len(points) != 1 or (point := points.pop()) == WHOLE["number"][1]:
        return None
    return point, point


def _step(type: Type, key: int) -> int:
    if type is Type.TIME:
        return key
    rank = decimal_ranges.rank(key) if type is Type.INT else decimal_ranges.rank_of_key(key)
    return 2 * rank


def _string_bounds(allowed: ValueSet) -> Span:
    assert allowed.strings is not None
    if (finite := _only_span(facts(allowed.strings))) is not None:
        return finite
    low, high = "", None
    for op, operand in allowed.strings:
        if op in ORDER_OPS or op is Op.PREFIX:
            begin, end = order_range(op, operand)
            low, high = max(low, begin), least(high, end)
    # What contains anything but NULs lies above NULs, whatever its own low end.
    return _string_span(low if low.strip("\0") else "", high)


def _only_span(known: Facts) -> Span | None:
    if known.only is None:
        return None
    return _string_span(min(known.only, default=""), max(known.only, default="") + "\0")


def _string_span(low: str, high: str | None) -> Span:
    return (0, low), _TOP if high is None else (0, high)


def texts(known: Facts) -> tuple[str, tuple[str, ...]]:
    """What each of these strings ends with, and other parts that each of them has."""
    if known.only:
        return min(known.only), ()
    return known.suffix, (common_prefix(known.low, known.high), *known.contains)
