"""Local delivery: live messages to the subscriptions of clients at this broker.

    interface    LiveSubscription ──▶ its subscriber        DELIVER while it has credit,
                 SharedSubscription ─▶ one member, in turn   else the message waits, bounded
                 DurableConsumers ───▶ likewise, for messages that are not durable (waiting.py)
    watcher      its subscriber, which gets occurrences of a pattern under the same bounds

    destinations   by slot of the interest table: link, id, place of the credit   for kernels
                   NONE: several members, Python chooses    NOBODY: the interface has gone

Kernels deliver large batches to single subscribers; Python delivers the rest one by one.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection
from typing import Any

import msgspec
import numpy as np

from palio.protocol.broker.effects import Output
from palio.protocol.broker.links import Links
from palio.protocol.broker.many_subscribers import MANY, take_credit
from palio.protocol.broker.subscriber import Credits, Subscriber, WaitingMessage
from palio.protocol.broker.waiting import WaitingMessages
from palio.protocol.interfaces import LocalInterface
from palio.protocol.wire import layout
from palio.protocol.wire.batch import KERNEL_MIN, Entry, MessageBatch
from palio.protocol.wire.encode import deliver, deliver_pieces, is_large
from palio.routing.interest_table import InterestTable
from palio.routing.matches import Matches

IDS_MAX = 1024
"""The most subscriptions that one DELIVER frame is for, so that its header stays small."""
SENT_BYTES_MAX = 1 << 20
"""Of messages that waited: what one link gets in a turn, besides one message. Only then is it known
whether the other end reads."""
TURN_BYTES_MAX = 16 << 20
"""The same of all links."""
_DEFERRED = 1 << 41
"""Larger than any credit, and than what is withheld."""


class DeliveryCounts(msgspec.Struct):
    """Totals since start."""

    delivered: int = 0
    expired: int = 0
    """Messages that waited for a client for too long."""
    ended: int = 0
    """Subscriptions that ended because too much waited."""


class Destinations:
    """Where kernels deliver, by slot."""

    def __init__(self) -> None:
        self.array = np.full((64, 3), layout.NONE, np.int64)
        self.links: list[int] = []
        self._places: dict[int, int] = {}  # of links
        self._uses: list[int] = []
        self._free: list[int] = []
        self._slots: dict[int, int] = {}  # place of the link that a slot leads to

    def lead(self, slot: int, one: Subscriber) -> None:
        """Let kernels deliver to the only subscriber of an interface."""
        self._leave(slot)
        place = self._places.get(one.link)
        if place is None:
            place = self._free.pop() if self._free else len(self.links)
            if place == len(self.links):
                self.links.append(0)
                self._uses.append(0)
            self._places[one.link], self.links[place] = place, one.link
        self._uses[place] += 1
        self._slots[slot] = place
        self._room(slot)
        self.array[slot] = place, one.id, one.place

    def set(self, slot: int, code: int) -> None:
        """Leave an interface to Python (NONE), or mark it as removed (NOBODY)."""
        self._leave(slot)
        self._room(slot)
        self.array[slot] = code

    def _leave(self, slot: int) -> None:
        place = self._slots.pop(slot, None)
        if place is not None:
            self._uses[place] -= 1
            if not self._uses[place]:
                del self._places[self.links[place]]
                self._free.append(place)

    def _room(self, slot: int) -> None:
        while slot >= len(self.array):
            more = np.full_like(self.array, layout.NONE)
            self.array = np.concatenate([self.array, more])


class _Group:
    """The subscribers of an interface; each message goes to one of them. Mostly there is one."""

    __slots__ = ("interface", "members", "slot")

    def __init__(self, interface: LocalInterface) -> None:
        self.interface = interface
        self.members: OrderedDict[Subscriber, None] = OrderedDict()
        """First the one that was chosen last, then the others in their turn."""
        self.slot: int | None = None

    @property
    def first(self) -> Subscriber:
        return next(iter(self.members))

    def choose(self, left: Collection[int]) -> Subscriber | None:
        """The next member with credit, or the next one if none has any. Members whose links have left
        are no members any more; None: nobody else is here."""
        members = self.members
        if len(members) == 1:
            (one,) = members
            if one.link not in left:
                return one
        if members:
            members.move_to_end(self.first)
        for _ in range(len(members)):
            one = self.first
            if one.link in left:
                del members[one]
            elif one.credit > 0:
                return one
            else:
                members.move_to_end(one)
        return self.first if members else None


class LocalDelivery:
    def __init__(
        self, table: InterestTable, output: Output, links: Links, waiting: WaitingMessages
    ) -> None:
        self.counts = DeliveryCounts()
        self.now_us = 0
        self.overflowed: list[tuple[Subscriber, str]] = []
        """Subscribers to end because too much waited, with the reason; the broker ends them and clears
        the list."""
        self.deferred: dict[int, deque[Subscriber]] = {}
        """By link: subscribers with credit for messages that wait, which the next turns send."""
        self._table = table
        self._output, self._links = output, links
        self.waiting = waiting
        self.sent: dict[int, int] = {}
        """By link: bytes of messages that waited and were sent in this turn."""
        self._turn_bytes = 0  # the same of all links
        self._groups: dict[LocalInterface, _Group] = {}
        self._by_slot: dict[int, _Group] = {}
        self._subscribers: dict[tuple[int, int], tuple[Subscriber, _Group | None]] = {}
        """By link and id; a watcher is in no group."""
        self._left: set[int] = set()
        """Links whose clients have left; their subscribers are removed in their turn."""
        self._credits = Credits()
        self._destinations = Destinations()

    def __len__(self) -> int:
        return len(self._subscribers)

    # ---- subscribers

    def has(self, interface: LocalInterface) -> bool:
        return interface in self._groups

    def members(self, interface: LocalInterface) -> list[tuple[int, int]]:
        """Link and id of each subscriber of an interface."""
        group = self._groups.get(interface)
        return [] if group is None else [(one.link, one.id) for one in group.members]

    def add(
        self, interface: LocalInterface, link: int, id: int, credit: int, *, ends: bool
    ) -> None:
        """Add a subscriber to an interface that is in the table already."""
        one = self._subscriber(link, id, credit, ends)
        group = self._groups.get(interface)
        if group is None:
            group = self._groups[interface] = _Group(interface)
            group.slot = self._table.slot(interface)
            if group.slot is not None:
                self._by_slot[group.slot] = group
        group.members[one] = None
        self._subscribers[link, id] = one, group
        self._lead(group)

    def add_watcher(self, link: int, id: int, credit: int, *, ends: bool) -> None:
        """A client watches a pattern; `occur` says what happens."""
        self._subscribers[link, id] = self._subscriber(link, id, credit, ends), None

    def _subscriber(self, link: int, id: int, credit: int, ends: bool) -> Subscriber:
        found = self._links.open.get(link)
        identity = found.identity.name if found is not None and found.identity is not None else ""
        one = Subscriber(link, id, identity, self._credits, ends)
        one.add_credit(credit)
        return one

    def remove(self, link: int, id: int) -> LocalInterface | None:
        """Remove a subscriber. Returns its interface if no subscriber is left."""
        found = self._subscribers.pop((link, id), None)
        if found is None:
            return None
        one, group = found
        self._credits.give_back(one.place)
        one.is_over = True
        self.waiting.clear(one)
        if group is None:
            return None
        group.members.pop(one, None)
        if group.members:
            self._lead(group)
            return None
        if (
            self._groups.get(group.interface) is not group
        ):  # it overflowed, and the others left since
            return None
        del self._groups[group.interface]
        if group.slot is not None:
            del self._by_slot[group.slot]
            self._destinations.set(group.slot, layout.NOBODY)
        return group.interface

    def _lead(self, group: _Group) -> None:
        if group.slot is None:  # its filters select nothing
            return
        if len(group.members) == 1:
            self._destinations.lead(group.slot, group.first)
        else:
            self._destinations.set(group.slot, layout.NONE)

    def waiting_and_credit(self, link: int, id: int) -> tuple[int, int]:
        """How many messages wait for a subscriber, and its credit."""
        found = self._subscribers.get((link, id))
        return (0, 0) if found is None else (len(found[0].waiting), found[0].credit)

    def grant_credit(self, link: int, id: int, count: int) -> None:
        """Add credit to a subscriber (or take it away, if negative), and send what waits."""
        found = self._subscribers.get((link, id))
        if found is None:
            return
        one = found[0]
        one.add_credit(count)
        if one.waiting and one.credit > 0:
            self._send(one)

    def withhold(self, links: Collection[int]) -> None:
        """The subscribers of these links get nothing for a while."""
        self._credits.withhold(links)

    def release(self, links: Collection[int]) -> None:
        """They get messages again, first of all what waits."""
        self._credits.release(links)
        for link in links:
            for one in self.waiting.of(link):
                if one.credit > 0:
                    self._send(one)

    def leave(self, link: int) -> None:
        """The client of a link has left: its subscribers get nothing, and are removed in their turn."""
        self._credits.forget(link)
        self._left.add(link)

    def forget_link(self, link: int) -> None:
        """All subscribers of a client that has left are removed."""
        self._left.discard(link)

    def _send(self, one: Subscriber) -> None:
        """Send what waits for a subscriber, as far as its credit and this turn allow."""
        link, sent = one.link, self.sent.get(one.link, 0)
        before = sent
        while one.waiting and one.credit > 0:
            if sent >= SENT_BYTES_MAX or self._turn_bytes >= TURN_BYTES_MAX:
                one.add_credit(-_DEFERRED)  # so that newer messages wait behind the others
                self.deferred.setdefault(link, deque()).append(one)
                break
            message = self.waiting.take(one)
            if 0 < message.expires_us <= self.now_us:
                self.counts.expired += 1
                continue
            one.add_credit(-1)
            self.counts.delivered += 1
            for piece in message.pieces(one.id):
                sent += len(piece)
                self._output.write(link, piece)
        if sent:
            self.sent[link] = sent
        self._turn_bytes += sent - before

    def end_turn(self) -> None:
        """The next turn may send as much again; it begins with the links that got nothing."""
        for link in self.sent:
            if link in self.deferred:
                self.deferred[link] = self.deferred.pop(link)
        self.sent.clear()
        self._turn_bytes = 0

    def send_deferred(self) -> None:
        """Go on with what the last turn did not send, for each link in its order."""
        links, self.deferred = self.deferred, {}
        for link, subscribers in links.items():
            while subscribers and link not in self.deferred:
                one = subscribers.popleft()
                if one.is_over:
                    continue
                one.add_credit(_DEFERRED)
                if one.credit > 0:  # else its link is congested
                    self._send(one)
            if subscribers:
                self.deferred[link] = self.deferred.get(link, deque()) + subscribers

    # ---- messages

    def deliver(self, batch: MessageBatch, matches: Matches) -> None:
        """Deliver messages; `matches` has local interfaces only."""
        if not len(matches.found):
            return
        if batch.count < KERNEL_MIN or is_large(batch):
            for row in range(batch.count):
                self._deliver(batch, row, matches.part(row))
            return
        arrays = layout.MatchArrays(matches.ends, matches.found)
        where = self._destinations
        done = deliver(batch, arrays, where.array, where.links, self._credits.array)
        self.counts.delivered += done.messages
        for link, data in done.writes:
            self._output.write(link, data)
        left: dict[int, list[int]] = {}
        for row, slot in done.left:
            left.setdefault(row, []).append(slot)
        for row, slots in left.items():
            self._deliver(batch, row, np.array(slots, np.int64))

    def _deliver(self, batch: MessageBatch, row: int, slots: Any) -> None:
        """Deliver one message. A client gets one frame for all its subscriptions with credit."""
        if len(slots) >= MANY:
            where = self._destinations
            by_link, slots = take_credit(where.array, where.links, self._credits.array, slots)
            for link, ids in by_link.items():
                self._write(link, batch.entry(row), ids)
        chosen: dict[int, list[Subscriber]] = {}
        for slot in slots.tolist():
            group = self._by_slot.get(slot)
            if group is not None:
                one = group.choose(self._left)
                if one is not None and not one.is_over:
                    chosen.setdefault(one.link, []).append(one)
        message, credits = None, self._credits.array
        entry = batch.entry(row) if chosen else None
        for link, subscribers in chosen.items():
            ids = []
            for one in subscribers:
                if credits[one.place] > 0:
                    credits[one.place] -= 1
                    ids.append(one.id)
                elif not one.is_over:
                    message = message or WaitingMessage(entry)
                    self.waiting.add(one, message)
            assert entry is not None
            self._write(link, entry, ids)
        if self.waiting.overflowed:
            self._end_overflowed()

    def _write(self, link: int, entry: Entry, ids: list[int]) -> None:
        """A message for these subscriptions of a client."""
        self.counts.delivered += len(ids)
        for begin in range(0, len(ids), IDS_MAX):
            for piece in deliver_pieces(entry, tuple(ids[begin : begin + IDS_MAX])):
                self._output.write(link, piece)

    def occur(self, link: int, id: int, frame: bytes, expires_us: int = 0) -> None:
        """A pattern that a client watches has occurred, or it gets a last value; `frame` says it."""
        found = self._subscribers.get((link, id))
        if found is None or found[0].is_over:
            return
        one = found[0]
        if 0 < expires_us <= self.now_us:
            self.counts.expired += 1
        elif one.credit > 0:
            one.add_credit(-1)
            self.counts.delivered += 1
            self._output.write(link, frame)
        else:
            self.waiting.add(one, WaitingMessage(None, frame, expires_us))
            self._end_overflowed()

    def _end_overflowed(self) -> None:
        """Too much waited for some subscribers. The others of their groups get the next messages."""
        overflowed, self.waiting.overflowed = self.waiting.overflowed, []
        self.counts.ended += len(overflowed)
        self.overflowed += overflowed
        for one, _ in overflowed:
            group = self._subscribers[one.link, one.id][1]
            if group is not None and len(group.members) > 1:
                group.members.pop(one, None)
                self._lead(group)
