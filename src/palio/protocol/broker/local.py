"""Local delivery: live messages to the subscriptions of clients at this broker.

    interface    LiveSubscription ──▶ its subscriber        DELIVER while it has credit,
                 SharedSubscription ─▶ one member, in turn   else the message waits, bounded
                 DurableConsumers ───▶ likewise, for messages that are not durable
    watcher      its subscriber, which gets occurrences of a pattern under the same bounds

    destinations   by slot of the interest table: link, id, place of the credit   for kernels
                   NONE: several members, Python chooses    NOBODY: the interface has gone

Kernels deliver large batches to single subscribers; Python delivers the rest one by one.
"""

from __future__ import annotations

from collections import deque

import msgspec
import numpy as np

from palio.protocol.broker.effects import Output
from palio.protocol.interfaces import LocalInterface
from palio.protocol.wire import layout
from palio.protocol.wire.batch import KERNEL_MIN, MessageBatch
from palio.protocol.wire.encode import deliver, deliver_frame
from palio.routing.interest_table import InterestTable, Matches

IDS_MAX = 1024
"""The most subscriptions that one DELIVER frame is for, so that its header stays small."""


class DeliveryCounts(msgspec.Struct):
    """Totals since start."""

    delivered: int = 0
    dropped: int = 0
    """Messages and occurrences that were dropped because too many waited for a subscription."""
    ended: int = 0
    """Subscriptions that ended because too much waited."""


class Subscriber:
    """One subscription of one client."""

    __slots__ = ("credits", "ends", "id", "is_over", "link", "place", "waiting")

    def __init__(self, link: int, id: int, credits: Credits, ends: bool) -> None:
        self.link = link
        self.id = id
        self.credits = credits
        self.place = credits.take()
        self.ends = ends
        """When too many messages wait: end the subscription, or else drop the oldest."""
        self.is_over = False
        self.waiting: deque[bytes] = deque()

    @property
    def credit(self) -> int:
        return int(self.credits.array[self.place])

    def add_credit(self, count: int) -> None:
        self.credits.array[self.place] += count


class Credits:
    """The credit of each subscriber: an array, because kernels take credit too."""

    def __init__(self) -> None:
        self.array = np.zeros(64, np.int64)
        self._free = list(range(64))

    def take(self) -> int:
        if not self._free:
            size = len(self.array)
            self.array = np.concatenate([self.array, np.zeros(size, np.int64)])
            self._free = list(range(size, 2 * size))
        return self._free.pop()

    def give_back(self, place: int) -> None:
        self.array[place] = 0
        self._free.append(place)


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
        self.members: deque[Subscriber] = deque()
        self.slot: int | None = None

    def choose(self) -> Subscriber:
        """The next member with credit, or the next one if none has any."""
        members = self.members
        if len(members) > 1:
            members.rotate(-1)
            for i, one in enumerate(members):
                if one.credit > 0:
                    members.rotate(-i)
                    return one
        return members[0]


class LocalDelivery:
    """`waiting_max`: the most messages that wait for a subscriber."""

    def __init__(self, table: InterestTable, output: Output, waiting_max: int) -> None:
        self.counts = DeliveryCounts()
        self.overflowed: list[Subscriber] = []
        """Subscribers to end because too much waited; the broker ends them and clears the list."""
        self._table = table
        self._output = output
        self._waiting_max = waiting_max
        self._groups: dict[LocalInterface, _Group] = {}
        self._by_slot: dict[int, _Group] = {}
        self._subscribers: dict[tuple[int, int], tuple[Subscriber, _Group | None]] = {}
        """By link and id; a watcher is in no group."""
        self._credits = Credits()
        self._destinations = Destinations()

    def __len__(self) -> int:
        return len(self._subscribers)

    # ---- subscribers

    def has(self, interface: LocalInterface) -> bool:
        return interface in self._groups

    def add(
        self, interface: LocalInterface, link: int, id: int, credit: int, *, ends: bool
    ) -> None:
        """Add a subscriber to an interface that is in the table already."""
        one = Subscriber(link, id, self._credits, ends)
        one.add_credit(credit)
        group = self._groups.get(interface)
        if group is None:
            group = self._groups[interface] = _Group(interface)
            group.slot = self._table.slot(interface)
            if group.slot is not None:
                self._by_slot[group.slot] = group
        group.members.append(one)
        self._subscribers[link, id] = one, group
        self._lead(group)

    def add_watcher(self, link: int, id: int, credit: int, *, ends: bool) -> None:
        """A client watches a pattern; `occur` says what happens."""
        one = Subscriber(link, id, self._credits, ends)
        one.add_credit(credit)
        self._subscribers[link, id] = one, None

    def remove(self, link: int, id: int) -> LocalInterface | None:
        """Remove a subscriber. Returns its interface if no subscriber is left."""
        found = self._subscribers.pop((link, id), None)
        if found is None:
            return None
        one, group = found
        self._credits.give_back(one.place)
        one.is_over = True
        if group is None:
            return None
        if one in group.members:
            group.members.remove(one)
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
            self._destinations.lead(group.slot, group.members[0])
        else:
            self._destinations.set(group.slot, layout.NONE)

    def grant_credit(self, link: int, id: int, count: int) -> None:
        """Add credit to a subscriber (or take it away, if negative), and send what waits."""
        found = self._subscribers.get((link, id))
        if found is None:
            return
        one = found[0]
        one.add_credit(count)
        while one.waiting and one.credit > 0:
            one.add_credit(-1)
            self.counts.delivered += 1
            self._output.write(link, one.waiting.popleft())

    # ---- messages

    def deliver(self, batch: MessageBatch, matches: Matches) -> None:
        """Deliver messages; `matches` has local interfaces only."""
        if not len(matches.found):
            return
        if batch.count < KERNEL_MIN:
            for row in range(batch.count):
                self._deliver(batch, row, matches.slots(row))
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
            self._deliver(batch, row, slots)

    def _deliver(self, batch: MessageBatch, row: int, slots: list[int]) -> None:
        """Deliver one message. A client gets one frame for all its subscriptions with credit."""
        chosen: dict[int, list[Subscriber]] = {}
        for slot in slots:
            group = self._by_slot.get(slot)
            if group is not None:
                one = group.choose()
                if not one.is_over:
                    chosen.setdefault(one.link, []).append(one)
        for link, subscribers in chosen.items():
            ids: list[int] = []
            waiting: list[Subscriber] = []
            for one in subscribers:
                if one.credit > 0:
                    one.add_credit(-1)
                    ids.append(one.id)
                else:
                    waiting.append(one)
            self.counts.delivered += len(ids)
            for begin in range(0, len(ids), IDS_MAX):
                part = tuple(ids[begin : begin + IDS_MAX])
                self._output.write(link, deliver_frame(batch, row, part))
            for one in waiting:
                self._wait(one, deliver_frame(batch, row, (one.id,)))

    def occur(self, link: int, id: int, frame: bytes) -> None:
        """A pattern that a client watches has occurred; `frame` says it."""
        found = self._subscribers.get((link, id))
        if found is None or found[0].is_over:
            return
        one = found[0]
        if one.credit > 0:
            one.add_credit(-1)
            self.counts.delivered += 1
            self._output.write(link, frame)
        else:
            self._wait(one, frame)

    def _wait(self, one: Subscriber, frame: bytes) -> None:
        one.waiting.append(frame)
        if len(one.waiting) <= self._waiting_max:
            return
        if one.ends:
            self.counts.ended += 1
            one.is_over = True
            self.overflowed.append(one)
            group = self._subscribers[one.link, one.id][1]
            if group is not None and len(group.members) > 1:  # the others get the next messages
                group.members.remove(one)
                self._lead(group)
        else:
            self.counts.dropped += 1
            one.waiting.popleft()
