"""Sets of what an attribute may be: the one representation behind covering and reduction.

What constraints say about one attribute is a set, and covering, intersection, contradiction and
reduction are operations on it:

    absent    may the attribute be missing?
    ranges    for each ordered type the values it may have, as ranges of integers (exact), and the
              decimals that no double stands for, as ranges of gaps
    strings   a conjunction of atoms, or None when it is not a string

Ordered types are always decided exactly. On strings the default is a sound test on facts, and
`exact` asks automata; either way `is_empty` and `is_subset` say yes only when it is so.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

import msgspec

from palio.errors import LimitExceeded
from palio.model import automata, decimal_ranges, ranges
from palio.model.automata import Atom
from palio.model.caches import cached, operand_bytes
from palio.model.operators import Op
from palio.model.predicate import Constraint
from palio.model.ranges import UNIVERSE, Ranges
from palio.model.strings import Facts, atoms_bytes, facts, implies, opposite
from palio.model.values import NUMBERS, Type, Value

ORDERED = tuple(UNIVERSE)
INT, FLOAT, DECIMAL = ORDERED.index(Type.INT), ORDERED.index(Type.FLOAT), len(ORDERED)
"""Places in the ranges of a set."""
_NUMBERS = (Type.INT, Type.FLOAT)
NO_RANGES: tuple[Ranges, ...] = ((),) * (len(ORDERED) + 1)
_ATOMS_MAX = 100_000  # in all pieces of a difference
_ALL: tuple[Ranges, ...] = (*((UNIVERSE[type],) for type in ORDERED), (decimal_ranges.GAPS,))


class ValueSet(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """A set of values, and perhaps of the attribute's absence."""

    absent: bool
    ranges: tuple[Ranges, ...]  # in the order of ORDERED, then those of decimals
    strings: tuple[Atom, ...] | None


ANYTHING = ValueSet(True, _ALL, ())
PRESENT = ValueSet(False, _ALL, ())
ABSENT = ValueSet(True, NO_RANGES, None)


def set_bytes(allowed: ValueSet) -> int:
    """About the size of a set."""
    spans = sum(map(len, allowed.ranges))
    return 32 * spans + (atoms_bytes(allowed.strings) if allowed.strings else 0)


def constraint_bytes(constraint: Constraint) -> int:
    """About the size of a constraint."""
    return len(constraint.name) + operand_bytes(constraint.value)


@cached(65536, constraint_bytes)
def selected(constraint: Constraint) -> ValueSet:
    """The set that a constraint selects."""
    op, type = constraint.op, constraint.type
    if op is Op.ABSENT:
        return ABSENT
    if type is None:
        return PRESENT
    if type is Type.STRING:
        atoms: tuple[Atom, ...] = () if op is Op.ANY else ((op, constraint.value),)
        return ValueSet(False, NO_RANGES, atoms)
    types = _NUMBERS if type in NUMBERS and op is not Op.ANY else (type,)
    kept = list(NO_RANGES)
    for each in types:
        kept[ORDERED.index(each)] = ranges.selected(each, constraint)
    if Type.FLOAT in types:
        kept[DECIMAL] = decimal_ranges.selected(constraint)
    return ValueSet(False, tuple(kept), None)


def conjunction(constraints: Sequence[Constraint]) -> ValueSet:
    """The set that all constraints on one attribute select together."""
    result = ANYTHING
    points: dict[Type, list[Constraint]] = {}
    for constraint in constraints:
        if constraint.op is Op.NE and len(constraints) > 2 and constraint.type is not None:
            points.setdefault(constraint.type, []).append(constraint)
        else:
            result = intersection(result, selected(constraint))
    for group in points.values():
        result = intersection(result, _excluding(group))
    return result


def _excluding(points: Sequence[Constraint]) -> ValueSet:
    """Many != of one type at once: NOT IN may have a million values."""
    whole = selected(points[0])
    if whole.strings is not None:
        atoms: tuple[Atom, ...] = tuple((c.op, c.value) for c in points)
        return ValueSet(False, NO_RANGES, tuple(dict.fromkeys(atoms)))
    kept = tuple(
        ranges.excluding(type, [c.value for c in points]) if spans else ()  # type: ignore[misc]
        for type, spans in zip(ORDERED, whole.ranges[:DECIMAL], strict=True)
    )
    return ValueSet(False, (*kept, whole.ranges[DECIMAL]), None)


@lru_cache(maxsize=16)
def of_type(type: Type) -> ValueSet:
    """Everything that an attribute of a declared type may be; it may be missing too, and is no decimal."""
    strings: tuple[Atom, ...] | None = () if type is Type.STRING else None
    kept = (((UNIVERSE[t],) if t is type else ()) for t in ORDERED)
    return ValueSet(True, (*kept, ()), strings)


def intersection(a: ValueSet, b: ValueSet) -> ValueSet:
    if a is ANYTHING or b is ANYTHING:
        return b if a is ANYTHING else a
    strings = None
    if a.strings is not None and b.strings is not None:
        strings = tuple(dict.fromkeys(a.strings + b.strings))
    kept = [
        (x if x is y else ranges.intersection(x, y)) if x and y else ()
        for x, y in zip(a.ranges, b.ranges, strict=True)
    ]
    return ValueSet(a.absent and b.absent, tuple(kept), strings)


def is_empty(a: ValueSet, exact: bool = False) -> bool:
    return not a.absent and not any(a.ranges) and _no_strings(a.strings, exact)


def _no_strings(atoms: tuple[Atom, ...] | None, exact: bool) -> bool:
    if atoms is None:
        return True
    if facts(atoms).empty:
        return True
    return exact and facts(atoms).only is None and automata.witness(atoms) is None


def is_subset(a: ValueSet, b: ValueSet, exact: bool = False) -> bool:
    """Everything in a is in b."""
    if a is b or b is ANYTHING:
        return True
    if a.absent and not b.absent:
        return False
    if a.ranges is not b.ranges:
        for x, y in zip(a.ranges, b.ranges, strict=True):
            if x and x is not y and not ranges.is_subset(x, y):
                return False
    if a.strings is None:
        return True
    if b.strings is None:
        return _no_strings(a.strings, exact)
    known = facts(a.strings)
    return all(_follows(known, a.strings, atom, exact) for atom in b.strings)


def _follows(known: Facts, atoms: tuple[Atom, ...], atom: Atom, exact: bool) -> bool:
    if implies(known, atom):
        return True
    if not exact or known.only is not None or len(atoms) < 2:  # the facts decide exactly
        return False
    return automata.witness((*atoms, *opposite(atom))) is None


def difference(a: ValueSet, b: ValueSet, exact: bool = False) -> list[ValueSet]:
    """a without b, as disjoint sets; some may be empty.

    When that takes too many atoms the answer is larger than the difference; with `exact` this
    raises LimitExceeded instead.
    """
    rest = tuple(ranges.difference(x, y) for x, y in zip(a.ranges, b.ranges, strict=True))
    untouched = a.strings if b.strings is None else None
    pieces = [ValueSet(a.absent and not b.absent, rest, untouched)]
    if a.strings is None or b.strings is None:
        return pieces
    if (len(a.strings) + len(b.strings)) * len(b.strings) > _ATOMS_MAX:
        if exact:
            raise LimitExceeded(
                f"the exact decision cuts strings by {len(b.strings):,} constraints; "
                "decide without exact=True"
            )
        return [*pieces, ValueSet(False, NO_RANGES, a.strings)]
    known = a.strings
    for atom in b.strings:
        pieces.append(ValueSet(False, NO_RANGES, tuple(dict.fromkeys(known + opposite(atom)))))
        known = (*known, atom)
    return pieces


def union(a: ValueSet, b: ValueSet) -> list[ValueSet]:
    """a and b as few sets: strings cannot be joined, everything else can."""
    joined = ValueSet(
        a.absent or b.absent,
        tuple(ranges.union(x, y) for x, y in zip(a.ranges, b.ranges, strict=True)),
        a.strings if b.strings is None else b.strings,
    )
    if a.strings is None or b.strings is None or a.strings == b.strings:
        return [joined]
    return [joined, ValueSet(False, NO_RANGES, a.strings)]


def example(a: ValueSet) -> Value | Decimal | None:
    """A simple member of the set; None for absence, which is preferred. The set is not empty."""
    if a.absent:
        return None
    for type in (Type.INT, Type.FLOAT, Type.BOOL, Type.TIME):
        found = a.ranges[ORDERED.index(type)]
        if found:
            return _simple(type, found)
    if a.ranges[DECIMAL]:
        return decimal_ranges.example(_near_zero(*_nearest(a.ranges[DECIMAL])))
    if a.strings is None:
        raise ValueError("an empty set has no example")
    text = automata.witness(a.strings)
    if text is None:
        raise ValueError("an empty set has no example")
    return text


def _simple(type: Type, found: Ranges) -> Value:
    """A number near zero with few digits, or the end of a range."""
    low, high = _nearest(found)
    if type is not Type.FLOAT:
        return ranges.value_from_key(type, _near_zero(low, high))
    for digits in range(17):
        first, last = ranges.float_from_key(low), ranges.float_from_key(high)
        for value in (0.0, round(first / 2 + last / 2, digits), round(first, digits)):
            if low <= ranges.float_key(value) <= high:
                return value
    return ranges.float_from_key(low)


def _nearest(found: Ranges) -> tuple[int, int]:
    """The range that is nearest to zero."""
    return min(found, key=lambda span: abs(_near_zero(*span)))


def _near_zero(low: int, high: int) -> int:
    return 0 if low <= 0 <= high else low if low > 0 else high
