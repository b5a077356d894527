"""The items that each peer has, by branch, as the peer sent them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from palio.model.advertisement import Advertisement
from palio.model.predicate import Filter
from palio.routing.item_order import ItemOrder
from palio.routing.overlay import Branch
from palio.routing.packets import Peer

T = TypeVar("T", Filter, Advertisement)

_FEW = 8
"""Items of a peer that are compared one by one; of more, the poset finds the few that matter."""


class PeerItems(Generic[T]):
    def __init__(self, items: ItemOrder[T]) -> None:
        self._items: ItemOrder[T] = items
        self._said: dict[Branch, dict[T, T]] = {}  # item as sent -> the equal one in the poset
        self._origins: dict[Peer, dict[Branch, None]] = {}  # the branches in `_said`
        self._renamed: dict[Branch, dict[T, None]] = {}  # not in the poset, but an equal one
        self._news: dict[Peer, dict[T, bool]] = {}

    def in_branch(self, branch: Branch) -> Mapping[T, T]:
        """The items of a branch, each with the equal one in the poset."""
        return self._said.get(branch, {})

    def branches(self, peer: Peer) -> list[Branch]:
        """The branches in which a peer has items."""
        return list(self._origins.get(peer, ()))

    def of(self, peer: Peer) -> list[T]:
        """The items of a peer in all branches."""
        return list(dict.fromkeys(i for b in self.branches(peer) for i in self._said[b]))

    def news(self, peer: Peer) -> dict[T, bool]:
        """The items that a peer has added (True) and removed (False) since the last `end_step`."""
        return self._news.get(peer, {})

    def end_step(self) -> None:
        self._news = {}

    def add(self, branch: Branch, item: T, found: T) -> None:
        """`found`: the equal item in the poset."""
        if branch not in self._said:
            self._said[branch] = {}
            self._origins.setdefault(branch.peer, {})[branch] = None
        self._said[branch][item] = found
        if found != item:
            self._renamed.setdefault(branch, {})[item] = None
        self._note(branch, item, True)

    def remove(self, branch: Branch, item: T) -> T:
        """Returns the equal item in the poset."""
        found = self._said[branch].pop(item)
        self._renamed.get(branch, {}).pop(item, None)
        self._note(branch, item, False)
        return found

    def forget_if_empty(self, branch: Branch) -> None:
        """Keep nothing of a branch without items."""
        if self._said.get(branch) == {}:
            del self._said[branch], self._origins[branch.peer][branch]
            self._renamed.pop(branch, None)
            if not self._origins[branch.peer]:
                del self._origins[branch.peer]

    def is_covered(self, branch: Branch, item: T) -> bool:
        """Whether an item of the branch covers this one, or is equal to it."""
        said, poset = self._said.get(branch), self._items.poset
        if not said or item in said:
            return bool(said)
        if len(said) <= _FEW:
            return any(self._items.covers(other, item) for other in said)
        if item in poset:
            above = any(o in said and self._items.covers(o, item) for o in poset.above(item))
        else:
            above = any(o in said for o in poset.covering(item))
        renamed = self._renamed.get(branch, ())
        return above or any(self._items.covers(other, item) for other in renamed)

    def covered(self, branch: Branch, item: T, found: T | None) -> list[T]:
        """The items of the branch that this one covers, itself included; `found`: the equal item in the
        poset."""
        said = self._said.get(branch)
        if not said:
            return []
        if len(said) <= _FEW:
            return [other for other in said if other == item or self._items.covers(item, other)]
        under = {item, *self._items.under(item)} if found == item else self._items.poset.covered(item)  # fmt: skip
        below: list[T] = [o for o in under if o in said]
        renamed: list[T] = [o for o in self._renamed.get(branch, ()) if self._items.covers(item, o)]
        return self._items.sorted(below) + renamed

    def _note(self, branch: Branch, item: T, is_said: bool) -> None:
        """An item was added or removed in a branch; the peer may have it in others too."""
        others = self._origins.get(branch.peer, {})
        if len(others) > 1 and any(item in self._said[b] for b in others if b != branch):
            return
        news = self._news.setdefault(branch.peer, {})
        if item in news:  # added and removed cancel each other out
            del news[item]
        else:
            news[item] = is_said
