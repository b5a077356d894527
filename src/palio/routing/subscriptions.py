"""What peers said and what is forwarded of it: one class, for subscriptions and advertisements.

    said by peers ──▶ poset of items ──▶ forwarded to peers
                      subscribers(f)      forwards(f)

An item is a filter or an advertisement; the poset holds each once, whoever said it, and once for
all that are equal (2000, 3.5). Peers change what they said by `say`, `cancel`, `restate`; a step
ends with `settle`, which brings up to date what is forwarded and says what changed for each peer.

What always holds after `settle`, for every peer Y that items are forwarded to:
- an item is *eligible* for Y when somebody else than Y said it (no NST in an acyclic overlay) and
  Y wants it (`meets`);
- forwarded to Y are exactly the eligible items that no other eligible item covers: formula (1);
- what Y heard from here is the same set, since both ends follow one rule (`say`, `cancel`) on the
  very items that were said. That is why an item is remembered as it was said, even when an equal
  one stands for it in the poset.

Nothing is computed anew as a whole: a change looks at what is above and below it in the poset.
Covering is asked of each pair by itself, never inferred from a path: on conjunctions of string
constraints it is sound but not complete, so a path may be there where nobody sees it of the pair,
and the router at the other end of a link may not have the path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from palio.model.advertisement import Advertisement
from palio.model.predicate import Filter
from palio.routing.packets import Peer
from palio.routing.poset import Order, Poset

T = TypeVar("T", Filter, Advertisement)


class Word(NamedTuple, Generic[T]):
    """What a peer is told: an item, or that it is taken back and others stand instead."""

    item: T
    instead: tuple[T, ...] | None = None  # None: the item is said


class Change(NamedTuple, Generic[T]):
    """What a peer is told at the end of a step, in this order."""

    peer: Peer
    words: list[Word[T]]


@dataclass(slots=True)
class _Link(Generic[T]):
    """A peer that items are forwarded to."""

    forwarded: dict[T, None] = field(default_factory=dict)
    met: set[T] | None = None  # what the peer wants of the items; None: all
    news: dict[T, bool] | None = None  # of somebody who follows what is forwarded


class Subscriptions(Generic[T]):
    """The items that peers said, ordered by covering, and to whom they are forwarded."""

    def __init__(self, order: Order[T], meets: Callable[[T, Peer], bool] | None = None) -> None:
        self._poset: Poset[T] = Poset(order)
        self._meets: Callable[[T, Peer], bool] | None = meets
        self._said: dict[Peer, dict[T, T]] = {}  # as it was said -> what stands for it
        self._renamed: dict[Peer, dict[T, None]] = {}  # said, and an equal one stands for it
        self._subscribers: dict[T, dict[Peer, int]] = {}  # items in the poset -> peers, how often
        self._numbers: dict[T, int] = {}  # of arrival: the order of everything that is told
        self._arrivals = 0
        self._links: dict[Peer, _Link[T]] = {}
        self._touched: dict[T, frozenset[Peer]] = {}  # in this step -> eligible for, before it
        self._news: dict[Peer, dict[T, bool]] = {}  # in this step: said (True), taken back
        # in this step: what was asked of the poset
        self._known: dict[tuple[T, T], bool] = {}
        self._below: dict[T, set[T]] = {}

    # ---- what is known

    @property
    def poset(self) -> Poset[T]:
        """All items; not to be changed from outside."""
        return self._poset

    def __iter__(self) -> Iterator[T]:
        """The items in the order of arrival."""
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def subscribers(self, item: T) -> frozenset[Peer]:
        """Who said the item or an equal one (2000, 3.5)."""
        found = self._poset.find(item)
        return frozenset() if found is None else frozenset(self._subscribers[found])

    def forwards(self, item: T) -> frozenset[Peer]:
        """The peers to which the item, or the equal one that stands for it, was forwarded."""
        found = self._poset.find(item)
        return frozenset(peer for peer, link in self._links.items() if found in link.forwarded)

    def said(self, peer: Peer) -> list[T]:
        """What a peer said and did not take back, as it was said."""
        return list(self._said.get(peer, ()))

    def forwarded(self, peer: Peer) -> list[T]:
        """What a peer was told, in the order of arrival."""
        return self._sorted(self._links[peer].forwarded) if peer in self._links else []

    def follow(self, peer: Peer) -> dict[T, bool]:
        """What a peer was told and, from now on, what it is told (True) and no longer is. Whoever
        follows clears it."""
        link = self._links[peer]
        link.news = dict.fromkeys(self._sorted(link.forwarded), True)
        return link.news

    # ---- peers

    def link(self, peer: Peer, *, selective: bool) -> None:
        """Forward to this peer from now on: all items, or those that it `meets`."""
        link = self._links[peer] = _Link[T]()
        if selective and self._meets is not None:
            link.met = {item for item in self._numbers if self._meets(item, peer)}
        for item in self._numbers:
            if self._is_eligible(item, peer, link) and not self._is_hidden(item, peer, link):
                link.forwarded[item] = None

    def unlink(self, peer: Peer) -> None:
        """Forward nothing to this peer any more."""
        self._links.pop(peer, None)

    def meet(self, peer: Peer, is_met: Callable[[T, bool], bool]) -> None:
        """A peer wants other items than before: `is_met(item, was)` says which."""
        link = self._links.get(peer)
        if link is None or link.met is None:
            return
        for item in self._numbers:
            was = item in link.met
            if is_met(item, was) != was:
                self._touch(item)
                (link.met.discard if was else link.met.add)(item)

    # ---- what peers say

    def say(self, peer: Peer, item: T) -> None:
        """A peer subscribes or advertises: the three cases of 2000, 3.5."""
        said = self._said.setdefault(peer, {})
        if item in said:
            return  # case 1
        if said and self._has_said_above(peer, item):
            return  # case 1: no effect
        found = self._poset.insert(item)
        if found not in self._subscribers:
            self._arrive(found)
        for other in self._said_below(peer, item, found):
            self._take_back(peer, other)
        self._touch(found)  # cases 2 and 3
        heard = self._subscribers[found]
        heard[peer] = heard.get(peer, 0) + 1
        said[item] = found
        if found != item:
            self._renamed.setdefault(peer, {})[item] = None
        self._note(peer, item, True)

    def cancel(self, peer: Peer, item: T) -> None:
        """A peer takes back all that an item covers (2000, 2.4.3)."""
        if self._said.get(peer):
            found = item if item in self._subscribers else None
            for other in self._said_below(peer, item, found):
                self._take_back(peer, other)

    def restate(self, peer: Peer, items: Iterable[T]) -> None:
        """A peer says these and nothing else."""
        for item in self.said(peer):
            self._take_back(peer, item)
        for item in items:
            self.say(peer, item)
        if not self._said.get(peer):  # it may have left: nothing is kept of it
            self._said.pop(peer, None)
            self._renamed.pop(peer, None)

    def news(self, peer: Peer) -> dict[T, bool]:
        """What a peer has said (True) and taken back (False) since the last `settle`."""
        return self._news.get(peer, {})

    def _has_said_above(self, peer: Peer, item: T) -> bool:
        """Has the peer said something that covers the item?"""
        said = self._said[peer]
        if item in self._poset:
            above = any(o in said and self._covers(o, item) for o in self._poset.above(item))
        else:
            above = any(o in said for o in self._poset.covering(item))
        return above or self._is_above(peer, item)

    def _is_above(self, peer: Peer, item: T) -> bool:
        return any(self._covers(other, item) for other in self._renamed.get(peer, ()))

    def _said_below(self, peer: Peer, item: T, found: T | None) -> list[T]:
        """What the peer has said that the item covers, itself included."""
        said = self._said[peer]
        covered = self._poset.covered(item) if found != item else {item, *self._under(item)}
        below: list[T] = [o for o in covered if o in said]
        renamed: list[T] = [o for o in self._renamed.get(peer, ()) if self._covers(item, o)]
        return self._sorted(below) + renamed

    def _take_back(self, peer: Peer, item: T) -> None:
        found = self._said[peer].pop(item)
        self._renamed.get(peer, {}).pop(item, None)
        self._touch(found)
        heard = self._subscribers[found]
        heard[peer] -= 1
        if not heard[peer]:
            del heard[peer]
        self._note(peer, item, False)

    def _note(self, peer: Peer, item: T, is_said: bool) -> None:
        news = self._news.setdefault(peer, {})
        if item in news:  # the opposite: as if nothing had been
            del news[item]
        else:
            news[item] = is_said

    def _arrive(self, item: T) -> None:
        self._below = {}
        self._touched.setdefault(item, frozenset())
        self._subscribers[item] = {}
        self._numbers[item] = self._arrivals
        self._arrivals += 1
        for peer, link in self._links.items():
            if link.met is not None and self._meets is not None and self._meets(item, peer):
                link.met.add(item)

    def _touch(self, item: T) -> None:
        """Its eligibility may change now; remember how it was when the step began."""
        if item not in self._touched:
            self._touched[item] = frozenset(
                peer for peer, link in self._links.items() if self._is_eligible(item, peer, link)
            )

    # ---- what is forwarded

    def settle(self) -> list[Change[T]]:
        """Bring up to date what is forwarded; tell what changed, for each peer it changed for."""
        changes: list[Change[T]] = []
        if not self._touched:
            self._news = {}
            return changes
        for peer, link in self._links.items():
            gained: list[T] = []
            lost: list[T] = []
            for item, before in self._touched.items():
                is_eligible = self._is_eligible(item, peer, link)
                if is_eligible != (peer in before):
                    (gained if is_eligible else lost).append(item)
            if gained or lost:
                words = self._forward(peer, link, gained, lost)
                if words:
                    changes.append(Change(peer, words))
        for item in self._touched:
            if not self._subscribers[item]:
                self._depart(item)
        self._touched, self._news = {}, {}
        self._known, self._below = {}, {}
        return changes

    def _forward(self, peer: Peer, link: _Link[T], gained: list[T], lost: list[T]) -> list[Word[T]]:
        """Apply formula (1) for one peer where items became eligible or are no longer.

        What may be forwarded now and was not: what became eligible, and what is below an item
        that is no longer. What may not any more: that item, and what one that became eligible
        covers.
        """
        forwarded = link.forwarded
        dropped = [item for item in lost if item in forwarded]
        for item in gained:
            dropped += [other for other in self._under(item) if other in forwarded]
        before = set(dropped)
        for item in before:
            del forwarded[item]
        open_ = dict.fromkeys(gained)
        for item in lost:
            open_.update(dict.fromkeys(self._under(item)))
        added = {
            item
            for item in open_
            if item not in forwarded
            and self._is_eligible(item, peer, link)
            and not self._is_hidden(item, peer, link)
        }
        forwarded.update(dict.fromkeys(self._sorted(added)))
        new, old = added - before, before - added
        if link.news is not None:
            for item in self._sorted(new | old):
                if link.news.pop(item, item in new) is (item in new):  # both is nothing
                    link.news[item] = item in new
        return self._words(new, old)

    def _words(self, new: set[T], old: set[T]) -> list[Word[T]]:
        """How to tell that some items are forwarded now and others no longer, losing nothing.

        1. What nothing old covers is said first; the peer drops by itself what that covers.
        2. The rest of the old is taken back, and what it had hidden stands instead in the same
           word. New below several old goes with the last of them: earlier it would have no effect.
        3. New below old that was dropped in 1 is left; it occurs only where covering is not known
           along a chain.
        """
        if not old:
            return [Word(item) for item in self._sorted(new)]
        hidden = {item: self._covering(item, old) for item in new}
        first = [item for item in self._sorted(new) if not hidden[item]]
        unsaid = set(new).difference(first)
        dropping = set(first)
        kept = [item for item in self._sorted(old) if not self._covering(item, dropping)]
        words = [Word(item) for item in first]
        instead: dict[T, list[T]] = {item: [] for item in kept}
        for item in self._sorted(unsaid):
            standing = hidden[item] & instead.keys()
            if standing:
                instead[self._sorted(standing)[-1]].append(item)
                unsaid.discard(item)
        words += [Word(item, tuple(stand)) for item, stand in instead.items()]
        return words + [Word(item) for item in self._sorted(unsaid)]

    def _covering(self, item: T, others: set[T]) -> set[T]:
        """Those of the others that cover an item."""
        if not others:
            return set()
        return {o for o in self._poset.above(item) if o in others and self._covers(o, item)}

    def _depart(self, item: T) -> None:
        self._poset.remove(item)
        del self._subscribers[item], self._numbers[item]
        for link in self._links.values():
            if link.met is not None:
                link.met.discard(item)

    def _is_eligible(self, item: T, peer: Peer, link: _Link[T]) -> bool:
        """Somebody else said it, and the peer wants it."""
        heard = self._subscribers[item]
        count = len(heard)
        if not count or (count == 1 and peer in heard):
            return False
        return link.met is None or item in link.met

    def _is_hidden(self, item: T, peer: Peer, link: _Link[T]) -> bool:
        """Does another eligible item cover it?"""
        return any(
            self._is_eligible(other, peer, link) and self._covers(other, item)
            for other in self._poset.above(item)
        )

    # ---- the poset around an item

    def _covers(self, item: T, other: T) -> bool:
        known = self._known.get((item, other))
        if known is None:
            known = self._known[item, other] = self._poset.covers(item, other)
        return known

    def _under(self, item: T) -> set[T]:
        """What an item covers, itself apart; most cover nothing, which needs no search."""
        found = self._below.get(item)
        if found is None:
            near = self._poset.successors(item)
            found = self._below[item] = self._poset.covered(item) - {item} if near else set()
        return found

    def _sorted(self, items: Iterable[T]) -> list[T]:
        """In the order of arrival: sets have no order that a second run would repeat."""
        return sorted(items, key=self._numbers.__getitem__)
