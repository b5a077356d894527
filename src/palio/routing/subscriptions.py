"""The items of all peers and what is forwarded of them, for subscriptions and advertisements alike.

    items of peers ──▶ poset ──▶ items forwarded to peers
                       subscribers(f)     forwards(f)

An item is a filter or an advertisement. The poset has one node for all equal items of all peers
(2000, 3.5). `say`, `cancel` and `restate` change the items of a peer; a step ends with `settle`,
which updates what is forwarded and returns the announcements for each peer.

Invariants after `settle`, for every peer Y that items are forwarded to:
- an item is *eligible* for Y when a peer other than Y has it (no NST in an acyclic overlay) and Y
  wants it (`meets`);
- forwarded to Y are exactly the eligible items that no other eligible item covers: formula (1);
- Y has recorded the same set, since both ends apply the same rules (`say`, `cancel`) to the same
  items. Therefore an item is kept as the peer sent it, even if the poset holds an equal one.

A change only looks at the items above and below it in the poset. Covering is tested for each pair
and never inferred from a path: on conjunctions of string constraints it is sound but not complete,
so a path may exist where the test of the pair fails, and the router at the other end of a link may
not have that path.
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


class Announcement(NamedTuple, Generic[T]):
    """What a peer is sent: a new item, or the removal of an item and its replacements."""

    item: T
    instead: tuple[T, ...] | None = None  # None: the item is new


class PeerChange(NamedTuple, Generic[T]):
    """What a peer is sent at the end of a step, in this order."""

    peer: Peer
    announcements: list[Announcement[T]]


@dataclass(slots=True)
class _Link(Generic[T]):
    """A peer that items are forwarded to."""

    forwarded: dict[T, None] = field(default_factory=dict)
    met: set[T] | None = None  # the items that the peer wants; None: all
    news: dict[T, bool] | None = None  # changes of `forwarded`, for a follower


class Subscriptions(Generic[T]):
    """The items of peers, ordered by covering, and the peers to which they are forwarded."""

    def __init__(self, order: Order[T], meets: Callable[[T, Peer], bool] | None = None) -> None:
        self._poset: Poset[T] = Poset(order)
        self._meets: Callable[[T, Peer], bool] | None = meets
        self._said: dict[Peer, dict[T, T]] = {}  # item as sent -> the equal one in the poset
        self._renamed: dict[
            Peer, dict[T, None]
        ] = {}  # items that are not in the poset, but an equal one
        self._subscribers: dict[T, dict[Peer, int]] = {}  # item in the poset -> peer -> equal items
        self._numbers: dict[T, int] = {}  # order of arrival, in which everything is sent
        self._arrivals = 0
        self._links: dict[Peer, _Link[T]] = {}
        self._touched: dict[T, frozenset[Peer]] = {}  # changed in this step -> eligible for, before
        self._news: dict[Peer, dict[T, bool]] = {}  # of this step: added (True), removed
        # answers of the poset, cached for one step
        self._known: dict[tuple[T, T], bool] = {}
        self._below: dict[T, set[T]] = {}

    # ---- queries

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
        """The peers that have the item or an equal one (2000, 3.5)."""
        found = self._poset.find(item)
        return frozenset() if found is None else frozenset(self._subscribers[found])

    def forwards(self, item: T) -> frozenset[Peer]:
        """The peers to which the item, or the equal one in the poset, is forwarded."""
        found = self._poset.find(item)
        return frozenset(peer for peer, link in self._links.items() if found in link.forwarded)

    def said(self, peer: Peer) -> list[T]:
        """The items of a peer, as it sent them."""
        return list(self._said.get(peer, ()))

    def forwarded(self, peer: Peer) -> list[T]:
        """The items that are forwarded to a peer, in the order of arrival."""
        return self._sorted(self._links[peer].forwarded) if peer in self._links else []

    def follow(self, peer: Peer) -> dict[T, bool]:
        """The items that are forwarded to a peer (True). Later changes are added to the returned dict:
        new items (True) and removed ones (False). The caller clears it."""
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

    def is_selective(self, peer: Peer) -> bool:
        """Whether only some items are forwarded to this peer: those that it `meets`."""
        link = self._links.get(peer)
        return link is not None and link.met is not None

    def meet(self, peer: Peer, is_met: Callable[[T, bool], bool]) -> None:
        """A peer wants other items than before: `is_met(item, was)` decides."""
        link = self._links.get(peer)
        if link is None or link.met is None:
            return
        for item in self._numbers:
            was = item in link.met
            if is_met(item, was) != was:
                self._touch(item)
                (link.met.discard if was else link.met.add)(item)

    # ---- changes by peers

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
        """Remove the items of a peer that an item covers (2000, 2.4.3)."""
        if self._said.get(peer):
            found = item if item in self._subscribers else None
            for other in self._said_below(peer, item, found):
                self._take_back(peer, other)

    def restate(self, peer: Peer, items: Iterable[T]) -> None:
        """Replace all items of a peer. Those that stay are not touched."""
        wanted, said = dict.fromkeys(items), self._said.get(peer, {})
        for item in [item for item in said if item not in wanted]:
            self._take_back(peer, item)
        for item in wanted:
            self.say(peer, item)
        if not self._said.get(peer):  # it may have left: nothing is kept of it
            self._said.pop(peer, None)
            self._renamed.pop(peer, None)

    def news(self, peer: Peer) -> dict[T, bool]:
        """The items that a peer has added (True) and removed (False) since the last `settle`."""
        return self._news.get(peer, {})

    def _has_said_above(self, peer: Peer, item: T) -> bool:
        """Whether an item of the peer covers this one."""
        said = self._said[peer]
        if item in self._poset:
            above = any(o in said and self._covers(o, item) for o in self._poset.above(item))
        else:
            above = any(o in said for o in self._poset.covering(item))
        return above or self._is_above(peer, item)

    def _is_above(self, peer: Peer, item: T) -> bool:
        return any(self._covers(other, item) for other in self._renamed.get(peer, ()))

    def _said_below(self, peer: Peer, item: T, found: T | None) -> list[T]:
        """The items of the peer that this one covers, itself included."""
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
        if item in news:  # added and removed cancel each other out
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
        """Remember the eligibility of an item before its first change in this step."""
        if item not in self._touched:
            self._touched[item] = frozenset(
                peer for peer, link in self._links.items() if self._is_eligible(item, peer, link)
            )

    # ---- forwarding

    def settle(self) -> list[PeerChange[T]]:
        """Update what is forwarded; returns the changes for each peer that has any."""
        changes: list[PeerChange[T]] = []
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
                announcements = self._forward(peer, link, gained, lost)
                if announcements:
                    changes.append(PeerChange(peer, announcements))
        for item in self._touched:
            if not self._subscribers[item]:
                self._depart(item)
        self._touched, self._news = {}, {}
        self._known, self._below = {}, {}
        return changes

    def _forward(
        self, peer: Peer, link: _Link[T], gained: list[T], lost: list[T]
    ) -> list[Announcement[T]]:
        """Apply formula (1) for one peer whose eligible items have changed.

        Candidates to be forwarded are the items that became eligible, and those below an item that
        is not eligible any more. Candidates to be removed are that item, and those that a newly
        eligible item covers.
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
                if link.news.pop(item, item in new) is (item in new):  # they cancel out
                    link.news[item] = item in new
        return self._announcements(new, old)

    def _announcements(self, new: set[T], old: set[T]) -> list[Announcement[T]]:
        """The announcements of new and removed items, in an order in which no message is lost.

        1. First come the new items that no old one covers. The peer itself drops what they cover.
        2. Each remaining old item is removed, and the new items that it covered are its
           replacements in the same announcement. A new item below several old ones replaces the
           last of them: before that it would have no effect.
        3. Last come the new items below an old one that was dropped in 1. They exist only where
           covering is not transitive.
        """
        if not old:
            return [Announcement(item) for item in self._sorted(new)]
        hidden = {item: self._covering(item, old) for item in new}
        first = [item for item in self._sorted(new) if not hidden[item]]
        unsaid = set(new).difference(first)
        dropping = set(first)
        kept = [item for item in self._sorted(old) if not self._covering(item, dropping)]
        announcements = [Announcement(item) for item in first]
        instead: dict[T, list[T]] = {item: [] for item in kept}
        for item in self._sorted(unsaid):
            covering = hidden[item] & instead.keys()
            if covering:
                instead[self._sorted(covering)[-1]].append(item)
                unsaid.discard(item)
        announcements += [Announcement(item, tuple(others)) for item, others in instead.items()]
        return announcements + [Announcement(item) for item in self._sorted(unsaid)]

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
        """Another peer has it, and this one wants it."""
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
        """In the order of arrival: the order of a set differs between processes."""
        return sorted(items, key=self._numbers.__getitem__)
