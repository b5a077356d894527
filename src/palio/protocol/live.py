"""Live subscriptions at a broker: who here, and which neighbour, gets a message now.

    parcels ──▶ router.matching (one table, one batch) ──▶ peers of each parcel
                  peer of a subscription   DELIVER, while it has credit; else it waits, bounded
                  peer of a group          DELIVER to one member, in turn
                  peer of a neighbour      given back: the broker sends it on
                  the router itself        a pattern waits for it: `step` sees it

Every subscription is a peer of the router, so the router knows what this broker wants as a whole:
it forwards that to its neighbours (subscription forwarding), or to `NETWORK`, a neighbour that
stands for all others, from where the landscape takes it (routing schemes).

A durable subscription is here too while a client is attached, for messages that are not durable;
durable ones come to it through the deposit, once, and never from here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from palio.model.message import Message
from palio.model.predicate import Filter
from palio.protocol import run_codes
from palio.protocol.effects import Output
from palio.protocol.frames import Deliver, letter_frame
from palio.protocol.runs import Lines, Run, deliver
from palio.protocol.words import Item, Occurred
from palio.routing.data_path import Peers
from palio.routing.packets import (
    Joined,
    Left,
    Packet,
    Peer,
    Publish,
    Received,
    Restate,
    Role,
    Send,
    Tick,
)
from palio.routing.patterns.packets import Assembled, Watch
from palio.routing.patterns.pattern import Pattern
from palio.routing.router import Router

NETWORK: Peer = "*"
NOWHERE: Peer = "-"
"""Where messages of clients come from: a peer that wants nothing."""


class Parcel(msgspec.Struct, frozen=True, gc=False):
    """A message with what is known about it."""

    source: Peer
    """The neighbour that it came from; NOWHERE: a client published it here."""
    publisher: str
    number: int
    time: int
    durable: bool
    attributes: bytes
    body: bytes
    trail: msgspec.Raw | None = None


class Counts(msgspec.Struct):
    delivered: int = 0
    dropped: int = 0
    """Messages that waited for a client until the bound was reached."""
    ended: int = 0


class Credits:
    """How many more messages each subscription may get: an array, because kernels pay too."""

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
        self._free.append(place)


class _Subscription:
    """One subscription of one client."""

    __slots__ = ("_credits", "bound", "ends", "id", "link", "place", "waiting")

    def __init__(self, link: int, id: int, credits: Credits, bound: int, ends: bool) -> None:
        self.link = link
        self.id = id
        self.place = credits.take()
        self._credits = credits
        self.bound = bound
        self.ends = ends
        self.waiting: deque[bytes] = deque()

    @property
    def credit(self) -> int:
        return int(self._credits.array[self.place])

    @credit.setter
    def credit(self, credit: int) -> None:
        self._credits.array[self.place] = credit


class _Group:
    """Subscriptions of which one gets each message; mostly there is just one."""

    __slots__ = ("members", "only_live", "peer")

    def __init__(self, peer: Peer, only_live: bool) -> None:
        self.peer = peer
        self.only_live = only_live
        self.members: deque[_Subscription] = deque()

    def choose(self) -> _Subscription:
        """The next in turn with credit, or just the next."""
        members = self.members
        if len(members) > 1:
            members.rotate(-1)
            for i, one in enumerate(members):
                if one.credit > 0:
                    members.rotate(-i)
                    return one
        return members[0]


class Live:
    """`end` is called with link, id and reason of a subscription that is over: too much waited."""

    def __init__(
        self, router: Router, output: Output, end: Callable[[int, int, str], None], *, bound: int
    ) -> None:
        self.router = router
        self.counts = Counts()
        self.packets: list[Send] = []
        """What the router says to neighbours, to be taken by the broker."""
        self.news: dict[Filter, bool] = {}
        """What the whole broker wants from the network now (True), and what no longer. Whoever
        tells the network clears it."""
        if NETWORK in router.peers:
            self.news = router.subscriptions.follow(NETWORK)
        self._output = output
        self._end = end
        self._bound = bound
        self._groups: dict[Peer, _Group] = {}
        self._takers = 0  # groups that get durable messages too
        self._places: dict[tuple[int, int], tuple[Peer, _Subscription]] = {}
        self._watches: dict[Peer, tuple[int, int]] = {}
        self._links: dict[int, set[int]] = {}
        self._credits = Credits()
        self._lines: dict[bool, Lines] = {}  # of durable messages, and of others
        self._lines_peers: Peers | None = None
        router.step(Joined(NOWHERE))

    def __len__(self) -> int:
        return len(self._places) + len(self._watches)

    # ---- what clients want

    def subscribe(
        self,
        link: int,
        id: int,
        filters: Sequence[Filter],
        *,
        credit: int,
        ends: bool = False,
        group: str = "",
        only_live: bool = False,
    ) -> None:
        """`group`: who shares; `ends`: too much waiting ends it, else the oldest are dropped."""
        peer = f"g{group}" if group else f"c{link}.{id}"
        subscription = _Subscription(link, id, self._credits, self._bound, ends)
        subscription.credit = credit
        self._lines.clear()
        found = self._groups.get(peer)
        if found is None:
            found = self._groups[peer] = _Group(peer, only_live)
            self._takers += not only_live
            self._step(Joined(peer))
            self._step(Received(peer, Restate(subscriptions=tuple(filters))))
        found.members.append(subscription)
        self._places[link, id] = peer, subscription
        self._links.setdefault(link, set()).add(id)

    def watch(self, link: int, id: int, pattern: Pattern) -> None:
        peer = f"c{link}.{id}"
        self._watches[peer] = link, id
        self._links.setdefault(link, set()).add(id)
        self._step(Joined(peer))
        self._step(Received(peer, Watch(id, pattern)))

    def unsubscribe(self, link: int, id: int) -> None:
        """Nothing happens when it is not there."""
        ids = self._links.get(link, set())
        ids.discard(id)
        if not ids:
            self._links.pop(link, None)
        if self._watches.pop(f"c{link}.{id}", None) is not None:
            self._step(Left(f"c{link}.{id}"))
        place = self._places.pop((link, id), None)
        if place is None:
            return
        peer, subscription = place
        self._lines.clear()
        self._credits.give_back(subscription.place)
        group = self._groups[peer]
        group.members.remove(subscription)
        if not group.members:
            del self._groups[peer]
            self._takers -= not group.only_live
            self._step(Left(peer))

    def leave(self, link: int) -> None:
        """A client is gone."""
        for id in sorted(self._links.pop(link, ())):
            self.unsubscribe(link, id)

    def pay(self, link: int, id: int, count: int) -> None:
        """So many more messages may go to a subscription."""
        place = self._places.get((link, id))
        if place is None:
            return
        subscription = place[1]
        subscription.credit += count
        while subscription.credit > 0 and subscription.waiting:
            subscription.credit -= 1
            self.counts.delivered += 1
            self._output.write(link, subscription.waiting.popleft())

    # ---- what neighbours say

    def hear(self, neighbour: Peer, packet: Packet) -> None:
        self._step(Received(neighbour, packet))

    def join(self, neighbour: Peer) -> None:
        self._step(Joined(neighbour, Role.NEIGHBOUR))

    def part(self, neighbour: Peer) -> None:
        if neighbour in self.router.peers:
            self._step(Left(neighbour))

    def advertise(self, peer: Peer, packet: Packet) -> None:
        if peer not in self.router.peers:
            self._step(Joined(peer))
        self._step(Received(peer, packet))

    def tick(self, now_us: int) -> None:
        due = self.router.due
        if due is not None and due <= now_us:
            self._step(Tick(now_us))

    # ---- messages

    @property
    def takes_durable(self) -> bool:
        """Somebody here may want durable messages that come from here."""
        return self._takers > 0 or bool(self._watches)

    def deliver(self, parcels: Sequence[Parcel]) -> list[list[Peer]]:
        """Give messages to those here who want them; the neighbours that want each."""
        found = self.router.matching([parcel.attributes for parcel in parcels])
        return [
            self._deliver(parcel, peers) if peers else []
            for parcel, peers in zip(parcels, found, strict=True)
        ]

    def deliver_run(self, run: Run, source: Peer) -> dict[Peer, list[int]] | None:
        """The same for a run: the neighbours that want some of it, and which. None: do it one by
        one."""
        matches = self.router.matches(run.attributes())
        if matches is None:
            return None
        if self._lines_peers is not matches.peers:
            self._lines_peers = matches.peers
            self._lines.clear()
        lines = self._lines.setdefault(run.durable, Lines())
        for interface in lines.unknown(matches.found):
            self._draw(lines, interface, matches.peers, run.durable)
        done = deliver(run, matches.ends, matches.found, lines, self._credits.array)
        self.counts.delivered += done.messages
        for link, data in done.writes:
            self._output.write(link, data)
        return self._deliver_left(run, source, [(row, matches.peers[i]) for row, i in done.left])

    def _deliver_left(
        self, run: Run, source: Peer, left: list[tuple[int, Peer]]
    ) -> dict[Peer, list[int]]:
        """What kernels do not do: neighbours are told, the others get theirs one by one."""
        onward: dict[Peer, dict[int, None]] = {}
        here: dict[int, dict[Peer, None]] = {}
        for row, peer in left:
            if peer in self._groups or peer == self.router.name:
                here.setdefault(row, {})[peer] = None
            elif peer != source and peer in self.router.peers:
                onward.setdefault(peer, {})[row] = None
        if here:
            publishers = list(run.publishers())
        for row, peers in here.items():
            number, time, attributes, body = run[row]
            publisher = publishers[row]
            parcel = Parcel(source, publisher, number, time, run.durable, attributes, body)
            self._deliver(parcel, list(peers))
        return {peer: list(rows) for peer, rows in onward.items()}

    def _draw(self, lines: Lines, interface: int, peers: Peers, durable: bool) -> None:
        """Which subscription an interface is. Those of groups and of neighbours are none, nor are
        those of peers that have several interfaces and must not get a message twice."""
        peer = peers[interface]
        group = self._groups.get(peer)
        if group is not None and group.only_live and durable:
            lines.set(interface, run_codes.NOBODY)
        elif group is not None and len(group.members) == 1 and not peers.is_several(peer):
            one = group.members[0]
            lines.lead(interface, one.link, one.id, one.place)
        else:
            lines.set(interface, run_codes.NONE)

    def _deliver(self, parcel: Parcel, peers: list[Peer]) -> list[Peer]:
        if len(peers) == 1:
            group = self._groups.get(peers[0])
            if group is not None and len(group.members) == 1:
                one = group.members[0]
                if one.credit > 0:
                    if not (group.only_live and parcel.durable):
                        one.credit -= 1
                        self.counts.delivered += 1
                        self._output.write(one.link, _frame((one.id,), parcel))
                    return []
        onward: list[Peer] = []
        chosen: dict[int, list[_Subscription]] = {}
        for peer in peers:
            group = self._groups.get(peer)
            if group is not None:
                if not (group.only_live and parcel.durable):
                    one = group.choose()
                    chosen.setdefault(one.link, []).append(one)
            elif peer == self.router.name:
                self._match_patterns(parcel)
            elif peer != parcel.source and peer in self.router.peers:  # it may have just ended
                onward.append(peer)
        for link, subscriptions in chosen.items():
            self._give(link, subscriptions, parcel)
        return onward

    def _give(self, link: int, subscriptions: list[_Subscription], parcel: Parcel) -> None:
        paid = [one for one in subscriptions if one.credit > 0]
        if paid:
            for one in paid:
                one.credit -= 1
            self.counts.delivered += len(paid)
            self._output.write(link, _frame(tuple([one.id for one in paid]), parcel))
        if len(paid) < len(subscriptions):
            for one in subscriptions:
                if one not in paid:
                    self._wait(one, _frame((one.id,), parcel))

    def _wait(self, one: _Subscription, frame: bytes) -> None:
        one.waiting.append(frame)
        if len(one.waiting) <= one.bound:
            return
        if one.ends:
            self.counts.ended += 1
            reason = f"more than {one.bound} messages waited for this subscription"
            self._end(one.link, one.id, reason)
        else:
            self.counts.dropped += 1
            one.waiting.popleft()

    def _match_patterns(self, parcel: Parcel) -> None:
        message = Message.from_json(parcel.attributes)
        packet = Publish(message, parcel.publisher, parcel.number, parcel.time)
        source = parcel.source if parcel.source in self.router.peers else NETWORK
        self._say(self.router.step(Received(source, packet)))

    def _step(self, event: Joined | Left | Received | Tick) -> None:
        self._say(self.router.step(event))

    def _say(self, sends: list[Send]) -> None:
        """Take what the router says. Messages are forwarded by the broker, with their bodies."""
        for send in sends:
            packet = send.packet
            if isinstance(packet, Publish):
                continue
            if send.peer == NETWORK:
                continue  # see `news`
            if send.peer in self._watches:
                assert isinstance(packet, Assembled), packet
                link, id = self._watches[send.peer]
                items = (
                    Item(one.message.to_json(), one.publisher, one.number, one.time)
                    for one in packet.compound.messages
                )
                self.counts.delivered += 1
                self._output.say(link, Occurred(id, tuple(items)))
            else:
                self.packets.append(send)


def _frame(ids: tuple[int, ...], parcel: Parcel) -> bytes:
    header = Deliver(ids, 0, parcel.publisher, parcel.number, parcel.time)
    return letter_frame(header, parcel.attributes, parcel.body)
