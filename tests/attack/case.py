"""The list of attacks. A case is a coroutine that attacks an arena and says what held."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from tests.attack.arena import Arena

Attack: TypeAlias = Callable[[Arena], Awaitable[str]]


@dataclass(frozen=True)
class Case:
    name: str
    tried: str
    attack: Attack
    brokers: int
    only_full: bool
    """There is no short version: it is about time or memory only."""
    in_test: bool
    """Its short version is in `make test`."""


CASES: list[Case] = []


def case(
    tried: str, *, brokers: int = 1, only_full: bool = False, in_test: bool = False
) -> Callable[[Attack], Attack]:
    """Adds an attack to the list; `tried` says what it does."""

    def add(attack: Attack) -> Attack:
        CASES.append(Case(attack.__name__, tried, attack, brokers, only_full, in_test))
        return attack

    return add
