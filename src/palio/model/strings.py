"""What a conjunction of constraints says about a string, and what follows from it.

A prefix is a range in the order of strings, so the facts are few:

    only       the strings it can be, when they are finitely many (=, in, a range of a few)
    low, high  low <= s < high; s > 'a' is s >= 'a\\0', and prefix 'ab' is 'ab' <= s < 'ac'
    suffix     the longest one
    contains   substrings
    never      the atoms !=, not prefix, not suffix, not contains

`implies` is sound always, and complete when the conjunction is one constraint. `empty` says yes
only when it is sure. For exact answers about conjunctions see `automata`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from palio.model.automata import Atom
from palio.model.caches import cached, operand_bytes
from palio.model.operators import OPPOSITE, TESTS, Op

_LAST_CHAR = "\U0010ffff"
_NEGATIVE = frozenset({Op.NE, Op.NOT_PREFIX, Op.NOT_SUFFIX, Op.NOT_CONTAINS})


class Facts(msgspec.Struct, frozen=True, gc=False):
    """What is known of a string; see the head of the module."""

    only: frozenset[str] | None
    low: str
    high: str | None
    suffix: str
    contains: tuple[str, ...]
    never: tuple[Atom, ...]
    atoms: dict[Atom, None]  # all of them, in order

    @property
    def empty(self) -> bool:
        """No string is like this, for sure."""
        return self.only is not None and not self.only


def opposite(atom: Atom) -> tuple[Atom, ...]:
    """A conjunction of atoms that holds where `atom` does not."""
    op, operand = atom
    if op is Op.IN:
        return tuple((Op.NE, member) for member in operand)
    return ((OPPOSITE[op], operand),)


def satisfies(text: str, atoms: Iterable[Atom]) -> bool:
    return all(TESTS[op](text, operand) for op, operand in atoms)


def after(prefix: str) -> str | None:
    """The first string above everything that begins with `prefix`; None when there is none."""
    bare = prefix.rstrip(_LAST_CHAR)
    if not bare:
        return None
    code = ord(bare[-1]) + 1
    return bare[:-1] + chr(0xE000 if 0xD800 <= code <= 0xDFFF else code)


def least(a: str | None, b: str | None) -> str | None:
    """The lower of two high ends; None is no end."""
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)


def atoms_bytes(atoms: tuple[Atom, ...]) -> int:
    """About the size of a conjunction of atoms."""
    size = 0
    for _, operand in atoms:
        size += len(operand) if type(operand) is str else operand_bytes(operand)
    return size


@cached(65536, atoms_bytes)
def facts(atoms: tuple[Atom, ...]) -> Facts:
    """What the conjunction of atoms says."""
    low, high, suffix = "", None, ""
    contains: list[str] = []
    never: list[Atom] = []
    only: set[str] | None = None
    for op, operand in atoms:
        if op is Op.EQ or op is Op.IN:
            members = {operand} if op is Op.EQ else set(operand)
            only = members if only is None else only & members
        elif op is Op.SUFFIX:
            if not operand.endswith(suffix) and not suffix.endswith(operand):
                only = set()
            suffix = max(suffix, operand, key=len)
        elif op is Op.CONTAINS:
            contains.append(operand)
        elif op in _NEGATIVE:
            never.append((op, operand))
        else:
            begin, end = order_range(op, operand)
            low, high = max(low, begin), least(high, end)
    if only is None:
        low, high = _trim(low, high, never)
        only = _few(low, high)
        if _contradicts(low, high, suffix, contains, never):
            only = set()
    if only is not None:
        only = {text for text in only if satisfies(text, atoms)}
    return Facts(
        None if only is None else frozenset(only),
        low,
        high,
        suffix,
        tuple(contains),
        tuple(never),
        dict.fromkeys(atoms),
    )


def order_range(op: Op, operand: str) -> tuple[str, str | None]:
    """A prefix or a comparison as low <= s < high."""
    if op is Op.PREFIX:
        return operand, after(operand)
    if op is Op.GE or op is Op.GT:
        return operand + "\0" * (op is Op.GT), None
    return "", operand + "\0" * (op is Op.LE)


def _trim(low: str, high: str | None, never: list[Atom]) -> tuple[str, str | None]:
    """Move the ends of a range past what is never there."""
    points = {operand for op, operand in never if op is Op.NE}
    prefixes = [operand for op, operand in never if op is Op.NOT_PREFIX]
    for op, operand in never:  # nothing without it lies above U+10FFFF, repeated
        if op is Op.NOT_CONTAINS and operand and not operand.strip(_LAST_CHAR):
            high = least(high, operand)
    moved = True
    while moved and (high is None or low < high):
        moved = False
        if low in points:
            points.discard(low)
            low, moved = low + "\0", True
        if high is not None and high.endswith("\0") and high[:-1] in points:
            points.discard(high[:-1])
            high, moved = high[:-1], True
        for prefix in prefixes:
            end = after(prefix)
            if low.startswith(prefix):
                if end is None:
                    return "\0", ""
                low, moved = end, True
            elif (
                low < prefix
                and (high is None or prefix < high)
                and (end is None or (high is not None and high <= end))
            ):
                high, moved = prefix, True
    return low, high


def _few(low: str, high: str | None) -> set[str] | None:
    """The members of a range that has few of them: low, low + NUL, low + NUL + NUL, ..."""
    if high is None or low >= high:
        return None if high is None else set()
    rest = high[len(low) :] if high.startswith(low) else "x"
    if rest.strip("\0"):
        return None
    return {low + "\0" * i for i in range(len(rest))}


def common_prefix(low: str, high: str | None) -> str:
    """What all strings of a range begin with."""
    for length in range(len(low), 0, -1):
        end = after(low[:length])
        if end is None or (high is not None and high <= end):
            return low[:length]
    return ""


def _contradicts(
    low: str, high: str | None, suffix: str, contains: list[str], never: list[Atom]
) -> bool:
    prefix = ""
    for op, operand in never:
        if op is Op.NOT_SUFFIX and suffix.endswith(operand):
            return True
        if op is Op.NOT_CONTAINS:
            prefix = prefix or common_prefix(low, high)
            if any(operand in text for text in (prefix, suffix, *contains)):
                return True
    return False


def implies(known: Facts, atom: Atom) -> bool:
    """Every string of which these facts hold satisfies the atom."""
    op, operand = atom
    if atom in known.atoms:
        return True
    if known.only is not None:
        return all(TESTS[op](text, operand) for text in known.only)
    if op is Op.NE:
        return not satisfies(operand, known.atoms)
    if op is Op.EQ or op is Op.IN:
        return False  # infinitely many strings against finitely many
    rule = _RULES.get(op)
    if rule is not None:
        return bool(rule(known, operand))
    begin, end = order_range(op, operand)
    below = end is None or (known.high is not None and known.high <= end)
    return below and _is_above(known, begin)


def _is_above(known: Facts, bound: str) -> bool:
    if known.low >= bound:
        return True
    if bound.strip("\0"):
        return False
    # NULs are the bottom of the order: what contains anything else lies above them all.
    parts = (known.suffix, *known.contains)
    return any(part.strip("\0") or len(part) >= len(bound) for part in parts)


def _has_suffix(known: Facts, operand: str) -> bool:
    return known.suffix.endswith(operand)


def _has_part(known: Facts, operand: str) -> bool:
    return any(
        operand in part
        for part in (known.suffix, *known.contains, common_prefix(known.low, known.high))
    )


def _lacks_prefix(known: Facts, operand: str) -> bool:
    end = after(operand)
    if (known.high is not None and known.high <= operand) or (end is not None and known.low >= end):
        return True
    return any(
        (op is Op.NOT_PREFIX and operand.startswith(text))
        or (op is Op.NOT_CONTAINS and text in operand)
        for op, text in known.never
    )


def _lacks_suffix(known: Facts, operand: str) -> bool:
    if not known.suffix.endswith(operand) and not operand.endswith(known.suffix):
        return True
    return any(
        (op is Op.NOT_SUFFIX and operand.endswith(text))
        or (op is Op.NOT_CONTAINS and text in operand)
        for op, text in known.never
    )


def _lacks_part(known: Facts, operand: str) -> bool:
    return any(op is Op.NOT_CONTAINS and text in operand for op, text in known.never)


_RULES: dict[Op, Any] = {
    Op.SUFFIX: _has_suffix,
    Op.CONTAINS: _has_part,
    Op.NOT_PREFIX: _lacks_prefix,
    Op.NOT_SUFFIX: _lacks_suffix,
    Op.NOT_CONTAINS: _lacks_part,
}
