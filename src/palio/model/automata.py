"""Exact decisions on strings: is there a string that satisfies all of these constraints?

Every string constraint is a regular language. Each becomes a tiny automaton that reads one
character at a time; their product is searched breadth first, so the answer comes with a shortest
witness. The alphabet is the characters that occur in the constraints and one character for each
gap between them: no constraint tells two characters of a gap apart, not even < or >.

Looked at greenery and automata-lib: both build whole automata over explicit alphabets, where the
product here is explored only as far as the answer needs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from palio.errors import LimitExceeded
from palio.model.operators import Op

Atom: TypeAlias = tuple[Op, Any]  # an operator and its operand: one string, or a tuple for `in`

STATES_MAX = 200_000
_LAST = 0x10FFFF
_PREFERRED = "amzAMZ05 9_-./"  # in a witness, where any character would do


@dataclass(frozen=True, slots=True)
class _Automaton:
    """`step` gives the next state, None when no continuation can be accepted."""

    start: Any
    step: Callable[[Any, str], Any]
    accepts: Callable[[Any], bool]


def witness(atoms: Iterable[Atom], states_max: int = STATES_MAX) -> str | None:
    """A shortest string that satisfies all atoms, or None when there is none.

    >>> witness([(Op.PREFIX, "ab"), (Op.SUFFIX, "bc"), (Op.NE, "abc")])
    'abbc'
    """
    atoms = tuple(atoms)
    automata = [_BUILD[op](operand) for op, operand in atoms]
    characters = _alphabet(atoms)
    start = tuple(automaton.start for automaton in automata)
    if None in start:
        return None
    came: dict[tuple[Any, ...], tuple[tuple[Any, ...], str] | None] = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        if all(a.accepts(s) for a, s in zip(automata, state, strict=True)):
            return _spell(came, state)
        for character in characters:
            reached = tuple(a.step(s, character) for a, s in zip(automata, state, strict=True))
            if None not in reached and reached not in came:
                if len(came) >= states_max:
                    raise LimitExceeded(
                        f"the exact decision on {len(atoms)} string constraints needs more than "
                        f"{states_max:,} states; decide without exact=True"
                    )
                came[reached] = (state, character)
                queue.append(reached)
    return None


def _spell(came: dict[Any, Any], state: Any) -> str:
    characters: list[str] = []
    while (step := came[state]) is not None:
        state, character = step
        characters.append(character)
    return "".join(reversed(characters))


def _alphabet(atoms: tuple[Atom, ...]) -> list[str]:
    texts = (t for _, v in atoms for t in (v if isinstance(v, tuple) else (v,)))
    named = sorted({ord(char) for text in texts for char in text})
    characters = [chr(code) for code in named]
    for before, after in zip([-1, *named], [*named, _LAST + 1], strict=True):
        preferred = next((c for c in _PREFERRED if before < ord(c) < after), None)
        if preferred is not None:
            characters.append(preferred)
            continue
        code = before + 1
        if 0xD800 <= code <= 0xDFFF:
            code = 0xE000  # surrogates are not characters
        if code < after:
            characters.append(chr(code))
    return characters


def _ordered(accepts: Callable[[int], bool]) -> Callable[[str], _Automaton]:
    """Compare with one string. State: how much of it was read; -1 and -2: decided < and >."""

    def build(operand: str) -> _Automaton:
        length = len(operand)

        def step(state: int, char: str) -> int:
            if state < 0:
                return state
            if state == length or char > operand[state]:
                return -2
            return state + 1 if char == operand[state] else -1

        def accept(state: int) -> bool:
            sign = 0 if state == length else -1 if state != -2 else 1
            return accepts(sign)

        return _Automaton(0, step, accept)

    return build


def _equal(operand: str) -> _Automaton:
    def step(state: int, char: str) -> int | None:
        return state + 1 if state < len(operand) and operand[state] == char else None

    return _Automaton(0, step, lambda state: state == len(operand))


def _member(operand: tuple[str, ...]) -> _Automaton:
    members = frozenset(operand)
    begun = {text[:i] for text in members for i in range(len(text) + 1)}
    return _Automaton(
        "",
        lambda state, char: state + char if state + char in begun else None,
        members.__contains__,
    )


def _prefix(operand: str) -> _Automaton:
    def step(state: int, char: str) -> int | None:
        if state == len(operand):
            return state
        return state + 1 if operand[state] == char else None

    return _Automaton(0, step, lambda state: state == len(operand))


def _not_prefix(operand: str) -> _Automaton:
    def step(state: int, char: str) -> int | None:
        if state < 0 or operand[state] != char:
            return -1
        return state + 1 if state + 1 < len(operand) else None

    return _Automaton(0 if operand else None, step, lambda _state: True)


def _overlap(operand: str) -> Callable[[int, str], int]:
    """Knuth, Morris, Pratt: how much of the operand the text read so far ends with."""
    back = [0] * (len(operand) + 1)
    matched = 0
    for i in range(1, len(operand)):
        while matched and operand[i] != operand[matched]:
            matched = back[matched]
        matched += operand[i] == operand[matched]
        back[i + 1] = matched

    def step(state: int, char: str) -> int:
        while state and (state == len(operand) or operand[state] != char):
            state = back[state]
        return state + 1 if operand and operand[state] == char else 0

    return step


def _suffix(operand: str) -> _Automaton:
    return _Automaton(0, _overlap(operand), lambda state: state == len(operand))


def _not_suffix(operand: str) -> _Automaton:
    start = 0 if operand else None
    return _Automaton(start, _overlap(operand), lambda state: state != len(operand))


def _contains(operand: str) -> _Automaton:
    step, end = _overlap(operand), len(operand)
    return _Automaton(
        0,
        lambda state, char: end if state == end else step(state, char),
        lambda state: state == end,
    )


def _not_contains(operand: str) -> _Automaton:
    step, end = _overlap(operand), len(operand)

    def careful(state: int, char: str) -> int | None:
        reached = step(state, char)
        return None if reached == end else reached

    return _Automaton(0 if operand else None, careful, lambda _state: True)


_BUILD: dict[Op, Callable[[Any], _Automaton]] = {
    Op.EQ: _equal,
    Op.NE: _ordered(lambda sign: sign != 0),
    Op.LT: _ordered(lambda sign: sign < 0),
    Op.LE: _ordered(lambda sign: sign <= 0),
    Op.GT: _ordered(lambda sign: sign > 0),
    Op.GE: _ordered(lambda sign: sign >= 0),
    Op.IN: _member,
    Op.PREFIX: _prefix,
    Op.SUFFIX: _suffix,
    Op.CONTAINS: _contains,
    Op.NOT_PREFIX: _not_prefix,
    Op.NOT_SUFFIX: _not_suffix,
    Op.NOT_CONTAINS: _not_contains,
}
