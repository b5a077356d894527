"""The items of all peers and what is forwarded of them, for subscriptions and advertisements alike.

    items of peers ──▶ poset ──▶ items forwarded to peers
                       subscribers(f)     forwards(f)

An item is a filter or an advertisement. The poset has one node for all equal items of all peers
(2000, 3.5). `say`, `cancel` and `restate` change the items of a peer; a step ends with `settle`,
which updates what is forwarded and returns the announcements for each peer. On a graph, the items of
a peer lie in several branches, by their origins (overlay.py); else a peer has one.

Invariants after `settle`, for every branch Y that items are forwarded to:
- an item is *eligible* for Y when the overlay leads there from one that has it (on an acyclic one: a
  peer other than Y has it; NST is what the overlay leaves out), and the peer wants it (`meets`);
- forwarded to Y are exactly the eligible items that no other eligible item covers, in Y or in a wider
  branch of the same peer: formula (1);
- Y has recorded the same set, since both ends apply the same rules (`say`, `cancel`) to the same
  items. Therefore an item is kept as the peer sent it, even if the poset holds an equal one.

A change only looks at the items above and below it in the poset. Covering is tested for each pair
and never inferred from a path: on conjunctions of string constraints it is sound but not complete,
so a path may exist where the test of the pair fails, and the router at the other end of a link may
not have that path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Generic, TypeVar

from palio.model.advertisement import Advertisement
from palio.model.predicate import Filter
from palio.routing.announcements import Announcement, BranchChange, announcements, without_gaps
from palio.routing.branch_link import BranchLink
from palio.routing.item_order import ItemOrder
from palio.routing.overlay import AcyclicOverlay, Branch, Overlay
from palio.routing.packets import Peer
from palio.routing.peer_items import PeerItems
from palio.routing.poset import Order, Poset

T = TypeVar("T", Filter, Advertisement)

_NONE: frozenset[Peer] = frozenset()


class Subscriptions(Generic[T]):
    """The items of peers, ordered by covering, and the peers to which they are forwarded."""

    def __init__(
        self,
        order: Order[T],
        meets: Callable[[T, Peer], bool] | None = None,
        overlay: Overlay | None = None,
    ) -> None:
        self._items: ItemOrder[T] = ItemOrder(order)
        self._poset: Poset[T] = self._items.poset
        self._meets: Callable[[T, Peer], bool] | None = meets
        self._overlay = overlay or AcyclicOverlay()
        self._said: PeerItems[T] = PeerItems(self._items)
        self._subscribers: dict[T, dict[Branch, int]] = {}  # item in the poset -> equal items
        self._met: dict[Peer, set[T] | None] = {}  # of the peers that items are forwarded to
        self._links: dict[Branch, BranchLink[T]] = {}
        self._touched: dict[T, frozenset[Branch]] = {}  # changed in this step -> eligible, before
        self.compared = 0
        """How often an item was looked at again because another one changed: what changes cost."""

    # ---- queries

    @property
    def poset(self) -> Poset[T]:
        """All items; not to be changed from outside."""
        return self._poset

    def __iter__(self) -> Iterator[T]:
        """The items in the order of arrival."""
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def subscribers(self, item: T) -> frozenset[Peer]:
        """The peers that have the item or an equal one (2000, 3.5)."""
        found = self._poset.find(item)
        return frozenset(b.peer for b in self._subscribers[found]) if found is not None else _NONE

    def forwards(self, item: T) -> frozenset[Peer]:
        """The peers to which the item, or the equal one in the poset, is forwarded."""
        found = self._poset.find(item)
        return frozenset(b.peer for b, link in self._links.items() if found in link.forwarded)

    def said(self, peer: Peer) -> list[T]:
        """The items of a peer, as it sent them."""
        return self._said.of(peer)

    def forwarded(self, peer: Peer) -> list[T]:
        """The items that are forwarded to a peer, in the order of arrival."""
        own = [branch for branch in self._links if branch.peer == peer]
        return self._items.sorted({item for b in own for item in self._links[b].forwarded})

    def forwarded_to(self, branch: Branch) -> tuple[T, ...]:
        """The same, of one branch."""
        link = self._links.get(branch)
        return () if link is None else tuple(self._items.sorted(link.forwarded))

    def branches(self, peer: Peer) -> list[Branch]:
        """The branches of a peer that anything is forwarded to."""
        return [b for b, link in self._links.items() if b.peer == peer and link.forwarded]

    def follow(self, peer: Peer) -> dict[T, bool]:
        """The items that are forwarded to a peer (True). Later changes are added to the returned dict:
        new items (True) and removed ones (False). The caller clears it."""
        link = self._links[Branch(peer)]
        link.news = dict.fromkeys(self._items.sorted(link.forwarded), True)
        return link.news

    # ---- peers

    def link(self, peer: Peer, *, selective: bool) -> None:
        """Forward to this peer from now on: all items, or those that it `meets`."""
        met: set[T] | None = None
        if selective and self._meets is not None:
            met = {item for item in self._items if self._meets(item, peer)}
        self._met[peer] = met
        self._link(self._overlay.branches(peer))

    def unlink(self, peer: Peer) -> None:
        """Forward nothing to this peer any more."""
        self._met.pop(peer, None)
        for branch in [branch for branch in self._links if branch.peer == peer]:
            del self._links[branch]

    def relink(self) -> list[Branch]:
        """The overlay has changed. Returns the branches, new and old, to which other items are forwarded
        than before."""
        before: dict[Branch, BranchLink[T]] = self._links
        self._links = {}
        for peer in self._met:
            self._link(self._overlay.branches(peer), before)
        empty: BranchLink[T] = BranchLink(None)
        changed: list[Branch] = []
        for branch in dict.fromkeys([*self._links, *before]):
            old, new = before.get(branch, empty), self._links.get(branch, empty)
            if old.forwarded.keys() != new.forwarded.keys():
                changed.append(branch)
        return changed

    def _link(
        self, branches: Iterable[Branch], before: Mapping[Branch, BranchLink[T]] | None = None
    ) -> None:
        """Forward to these branches, of which some were linked before the overlay changed."""
        for branch in branches:
            self._links[branch] = BranchLink(self._met[branch.peer])
        for branch in branches:
            link, old = self._links[branch], before.get(branch) if before else None
            moved = None if old is None else self._overlay.moved(branch)
            items: Iterable[T] = self._items
            if old is not None and moved is not None:  # only some items, and what they cover
                link.forwarded, link.news = old.forwarded.copy(), old.news
                some = {item for b in moved for item in self._said.in_branch(b).values()}
                items = some.union(*(self._items.under(item) for item in some))
            for item in items:
                link.forwarded.pop(item, None)
                is_eligible = self._is_eligible(item, branch, link)
                if is_eligible and not self._is_hidden(item, branch, link):
                    link.forwarded[item] = None
        self._items.end_step()

    def is_selective(self, peer: Peer) -> bool:
        """Whether only some items are forwarded to this peer: those that it `meets`."""
        return self._met.get(peer) is not None

    def meet(self, peer: Peer, is_met: Callable[[T, bool], bool]) -> None:
        """A peer wants other items than before: `is_met(item, was)` decides."""
        met = self._met.get(peer)
        if met is None:
            return
        for item in self._items:
            was = item in met
            if is_met(item, was) != was:
                self._touch(item)
                (met.discard if was else met.add)(item)

    # ---- changes by peers

    def say(self, branch: Branch, item: T) -> None:
        """A peer subscribes or advertises: the three cases of 2000, 3.5."""
        if self._said.is_covered(branch, item):
            return  # case 1: no effect
        found = self._arrive(item)
        for other in self._said.covered(branch, item, found):
            self._take_back(branch, other)
        self._add(branch, item, found)  # cases 2 and 3

    def cancel(self, branch: Branch, item: T) -> None:
        """Remove the items of a peer that an item covers (2000, 2.4.3)."""
        found = item if item in self._subscribers else None
        for other in self._said.covered(branch, item, found):
            self._take_back(branch, other)

    def restate(self, branch: Branch, items: Iterable[T]) -> None:
        """Replace all items of a peer in a branch. Those that stay are not touched."""
        wanted = dict.fromkeys(items)
        for item in [item for item in self._said.in_branch(branch) if item not in wanted]:
            self._take_back(branch, item)
        for item in wanted:
            self.say(branch, item)
        self._said.forget_if_empty(branch)

    def change(self, branch: Branch, news: Mapping[T, bool]) -> None:
        """Add (True) and remove (False) items of a peer, and keep those that others of it cover: what is
        removed uncovers nothing. For a peer that does not forward them, so nobody compares."""
        for item, is_said in news.items():
            if is_said:
                self._add(branch, item, self._arrive(item))
            else:
                self._take_back(branch, item)
        self._said.forget_if_empty(branch)

    def forget_others(self, branch: Branch) -> None:
        """Remove all items that a peer has in other branches."""
        for other in self._said.branches(branch.peer):
            if other != branch:
                self.restate(other, ())

    def news(self, peer: Peer) -> dict[T, bool]:
        """The items that a peer has added (True) and removed (False) since the last `settle`."""
        return self._said.news(peer)

    def _add(self, branch: Branch, item: T, found: T) -> None:
        self._touch(found)
        heard = self._subscribers[found]
        heard[branch] = heard.get(branch, 0) + 1
        self._said.add(branch, item, found)

    def _take_back(self, branch: Branch, item: T) -> None:
        found = self._said.remove(branch, item)
        self._touch(found)
        heard = self._subscribers[found]
        heard[branch] -= 1
        if not heard[branch]:
            del heard[branch]

    def _arrive(self, item: T) -> T:
        """The equal item in the poset, or this one, which is new there."""
        found = self._poset.insert(item)
        if found not in self._subscribers:
            self._items.number(found)
            self._touched.setdefault(found, frozenset())
            self._subscribers[found] = {}
            for peer, met in self._met.items():
                if met is not None and self._meets is not None and self._meets(found, peer):
                    met.add(found)
        return found

    def _touch(self, item: T) -> None:
        """Remember the eligibility of an item before its first change in this step."""
        if item not in self._touched:
            self._touched[item] = frozenset(
                branch
                for branch, link in self._links.items()
                if self._is_eligible(item, branch, link)
            )

    # ---- forwarding

    def settle(self) -> list[BranchChange[T]]:
        """Update what is forwarded; returns the changes for each branch that has any."""
        changes: list[BranchChange[T]] = []
        if not self._touched:
            self._said.end_step()
            return changes
        gained: dict[Branch, list[T]] = {}
        lost: dict[Branch, list[T]] = {}
        for branch, link in self._links.items():
            for item, before in self._touched.items():
                is_eligible = self._is_eligible(item, branch, link)
                if is_eligible != (branch in before):
                    (gained if is_eligible else lost).setdefault(branch, []).append(item)
        if gained or lost:
            for branch, link in self._links.items():
                said = self._forward(branch, link, gained, lost)
                if said:
                    changes.append(BranchChange(branch, said))
        for item in self._touched:
            if not self._subscribers[item]:
                self._depart(item)
        self._touched = {}
        self._said.end_step()
        self._items.end_step()
        return without_gaps(changes)

    def _forward(
        self,
        branch: Branch,
        link: BranchLink[T],
        gained: dict[Branch, list[T]],
        lost: dict[Branch, list[T]],
    ) -> list[Announcement[T]]:
        """Apply formula (1) for one branch, when eligible items of any branch have changed.

        Candidates to be forwarded are the items that became eligible, and those below an item that
        is not eligible any more. Candidates to be removed are that item, and those that a newly
        eligible item covers. An item of a wider branch covers itself here, too.
        """
        forwarded, gains, losses = link.forwarded, gained.get(branch, []), lost.get(branch, [])
        exposed = partial(self._poset.exposed, hides=lambda o: self._is_eligible(o, branch, link))
        dropped = [item for item in losses if item in forwarded]
        open_ = dict.fromkeys(gains)
        for item in gains:
            dropped += [other for other in self._items.under(item) if other in forwarded]
        for item in losses:
            open_.update(dict.fromkeys(exposed(item)))
        for wider in self._overlay.wider(branch):
            for item in gained.get(wider, []):
                covered = {item} | self._items.under(item)
                dropped += [other for other in covered if other in forwarded]
            for item in lost.get(wider, []):
                open_[item] = None
                open_.update(dict.fromkeys(exposed(item)))
        if not dropped and not open_:
            return []
        self.compared += len(dropped) + len(open_)
        before = set(dropped)
        for item in before:
            del forwarded[item]
        added = {
            item
            for item in open_
            if item not in forwarded
            and self._is_eligible(item, branch, link)
            and not self._is_hidden(item, branch, link)
        }
        forwarded.update(dict.fromkeys(self._items.sorted(added)))
        new, old = added - before, before - added
        if link.news is not None:
            for item in self._items.sorted(new | old):
                if link.news.pop(item, item in new) is (item in new):  # they cancel out
                    link.news[item] = item in new
        return announcements(self._items, new, old)

    def _depart(self, item: T) -> None:
        self._items.remove(item)
        del self._subscribers[item]
        for met in self._met.values():
            if met is not None:
                met.discard(item)

    def _is_eligible(self, item: T, branch: Branch, link: BranchLink[T]) -> bool:
        """The overlay leads there from one that has it, and the peer wants it."""
        heard = self._subscribers[item]
        if not heard or (link.met is not None and item not in link.met):
            return False
        return self._overlay.reaches(heard, branch)

    def _is_hidden(self, item: T, branch: Branch, link: BranchLink[T]) -> bool:
        """Does another eligible item cover it, or the same one in a wider branch?"""
        links = {branch: link}
        for wider in self._overlay.wider(branch):
            if wider in self._links:
                links[wider] = self._links[wider]
                if self._is_eligible(item, wider, links[wider]):
                    return True
        return any(
            any(self._is_eligible(o, b, there) for b, there in links.items())
            and self._items.covers(o, item)
            for o in self._poset.above(item)
        )
