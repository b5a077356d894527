"""Records: what is known of one broker, and how a state of it changes that.

    standing
    LIVE     links, filters and facts        ──not heard for long──▶ AGED
    FACTS    durable facts only, from the store or from somebody who knew no more
    AGED     the same, and its number is used up: only a larger one brings the broker back

A state is newer by its number. One of the same number is welcome where only facts are known, but not
where the broker has aged: else brokers could keep a dead one alive among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from palio.errors import InvalidPredicate
from palio.model.language import parse
from palio.model.predicate import Filter
from palio.protocol.frames import BrokenFrame
from palio.protocol.words import Durable, State

WEIGHT_MIN, WEIGHT_MAX = 0.001, 1_000_000.0  # sums are exact whatever a million links weigh
_PARSED = 1 << 16  # texts that are remembered


class Fact(NamedTuple):
    """A durable subscription that a broker has."""

    broker: str
    name: str
    durable: Durable


class Standing(Enum):
    LIVE = auto()
    FACTS = auto()
    AGED = auto()


class Record:
    """What is known of one broker; the landscape changes it."""

    __slots__ = "durable", "epoch", "filters", "heard_us", "links", "number", "standing", "wanted"

    def __init__(self, epoch: str, number: int, standing: Standing) -> None:
        self.epoch, self.number, self.standing = epoch, number, standing
        self.heard_us = 0
        self.links: dict[str, float] = {}
        self.wanted: dict[str, tuple[Filter, ...]] = {}  # by the text
        self.filters: dict[Filter, int] = {}  # how many texts mean it
        self.durable: dict[str, Durable] = {}

    def is_older(self, state: State) -> bool:
        """Does this state say more than is known?"""
        said, known = (state.number, state.epoch), (self.number, self.epoch)
        fills = self.standing is Standing.FACTS and not state.is_faded
        return said > known or (said == known and fills)

    def has_base(self, state: State) -> bool:
        """Is a change to be applied to what is known?"""
        is_same = (self.number, self.epoch) == (state.base, state.epoch)
        return is_same and self.standing is Standing.LIVE

    def want(
        self, gone: Iterable[str], new: Mapping[str, tuple[Filter, ...]]
    ) -> dict[Filter, bool]:
        """Change the filters; gives those that are wanted now (True) and those that are no longer."""
        changes: dict[Filter, bool] = {}
        for text in gone:
            for found in self.wanted.pop(text, ()):
                self.filters[found] -= 1
                if not self.filters[found]:
                    del self.filters[found]
                    toggle(changes, found, False)
        for text, filters in new.items():
            if text in self.wanted:
                continue
            self.wanted[text] = filters
            for found in filters:
                self.filters[found] = self.filters.get(found, 0) + 1
                if self.filters[found] == 1:
                    toggle(changes, found, True)
        return changes

    def tell(self, state: State) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
        """Change the durable facts; gives those that went and those that came."""
        broker, said = state.broker, state.durable
        if self.epoch != state.epoch:  # a new disk: nothing of the old one goes on
            gone = list(self.durable)
        elif state.base:
            gone = [name for name in state.undurable if name in self.durable]
        else:
            gone = [name for name in self.durable if name not in said]
        removed = [Fact(broker, name, self.durable.pop(name)) for name in gone]
        new = {name: fact for name, fact in said.items() if self.durable.get(name) != fact}
        changed = [name for name in new if name in self.durable]
        removed += [Fact(broker, name, self.durable[name]) for name in changed]
        self.durable.update(new)
        return tuple(removed), tuple(Fact(broker, *entry) for entry in new.items())


def checked(state: State, known: Record | None) -> dict[str, tuple[Filter, ...]]:
    """The filters that a state has, parsed; `BrokenFrame` if anything in it makes no sense."""
    place = f"the state of the broker {state.broker!r}"
    if state.is_faded and (state.base or state.links or state.wanted):
        raise BrokenFrame(f"{place}: it says that only durable facts are known, and more")
    for neighbour, weight in state.links:
        if neighbour == state.broker or not WEIGHT_MIN <= weight <= WEIGHT_MAX:
            raise BrokenFrame(f"{place}: a link to {neighbour!r} of weight {weight!r}")
    before = known.wanted if known else {}
    try:
        for durable in state.durable.values():
            filters_of(durable.predicate)
        return {text: before.get(text) or filters_of(text) for text in state.wanted}
    except InvalidPredicate as error:
        raise BrokenFrame(f"{place}: {error}") from None


@lru_cache(_PARSED)
def filters_of(text: str) -> tuple[Filter, ...]:
    """The filters of a predicate's text, parsed once."""
    return parse(text).filters


def toggle(changes: dict[Filter, bool], found: Filter, is_wanted: bool) -> None:
    """Note that a filter came or went; both of it is nothing."""
    if changes.pop(found, is_wanted) is is_wanted:
        changes[found] = is_wanted
