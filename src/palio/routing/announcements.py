"""What a router sends to a peer when other items are forwarded to it, in an order that loses nothing."""

from __future__ import annotations

from itertools import takewhile
from typing import Generic, NamedTuple

from palio.routing.item_order import ItemOrder, T
from palio.routing.overlay import Branch
from palio.routing.publication import Peer


class Announcement(NamedTuple, Generic[T]):
    """What a peer is sent: a new item, or the removal of an item and its replacements."""

    item: T
    instead: tuple[T, ...] | None = None  # None: the item is new


class BranchChange(NamedTuple, Generic[T]):
    """What the peer of a branch is sent at the end of a step, in this order."""

    branch: Branch
    announcements: list[Announcement[T]]


def announcements(order: ItemOrder[T], new: set[T], old: set[T]) -> list[Announcement[T]]:
    """The announcements of new and removed items, in an order in which no message is lost.

    1. First come the new items that no old one covers. The peer itself drops what they cover.
    2. Each remaining old item is removed, and the new items that it covered are its
       replacements in the same announcement. A new item below several old ones replaces the
       last of them: before that it would have no effect.
    3. Last come the new items below an old one that was dropped in 1. They exist only where
       covering is not transitive.
    """
    if not old:
        return [Announcement(item) for item in order.sorted(new)]
    hidden = {item: order.covering(item, old) for item in new}
    first = [item for item in order.sorted(new) if not hidden[item]]
    unsaid = set(new).difference(first)
    dropping = set(first)
    kept = [item for item in order.sorted(old) if not order.covering(item, dropping)]
    found = [Announcement(item) for item in first]
    instead: dict[T, list[T]] = {item: [] for item in kept}
    for item in order.sorted(unsaid):
        covering = hidden[item] & instead.keys()
        if covering:
            instead[order.sorted(covering)[-1]].append(item)
            unsaid.discard(item)
    found += [Announcement(item, tuple(others)) for item, others in instead.items()]
    return found + [Announcement(item) for item in order.sorted(unsaid)]


def without_gaps(changes: list[BranchChange[T]]) -> list[BranchChange[T]]:
    """The changes of a step, so ordered that no message is lost where an item of one branch takes the
    place of items in another branch of the same peer: what is new in any of them comes first."""
    by_peer: dict[Peer, list[BranchChange[T]]] = {}
    for change in changes:
        by_peer.setdefault(change.branch.peer, []).append(change)
    if len(by_peer) == len(changes):
        return changes
    ordered: list[BranchChange[T]] = []
    for found in by_peer.values():
        news = [list(takewhile(lambda one: one.instead is None, c.announcements)) for c in found]
        for change, new in zip(found, news, strict=True):
            ordered.append(BranchChange(change.branch, new))
        for change, new in zip(found, news, strict=True):
            ordered.append(BranchChange(change.branch, change.announcements[len(new) :]))
    return [change for change in ordered if change.announcements]
