"""Messages on their way through a broker.

    clients ─PUBLISH─▶ incoming ─┬─ live ────▶ live.deliver ─▶ DELIVER; FORWARD to who wants it
    brokers ─FORWARD─▶           └─ durable ─▶ deposit ─(commit)─▶ Published, then as live ones,
                                                                  CARRY to streams, DELIVER to queues
    brokers ─CARRY──▶ targets: this broker ─▶ deposit ─(commit)─▶ Got to the origin, DELIVER
                               others ──────▶ CARRY, split by next hop; nothing is kept

Messages of one turn are matched in one batch. A live message that came twice, because the views of
brokers differ for a moment, is dropped by its publisher and number.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import msgspec

from palio.errors import InvalidValue, PalioError
from palio.model.message import Message
from palio.model.predicate import Filter
from palio.protocol import outgoing
from palio.protocol.access import check_publish
from palio.protocol.frames import (
    BrokenFrame,
    Carry,
    Deliver,
    Forward,
    Letter,
    Publish,
    Target,
    letter_frame,
)
from palio.protocol.live import NOWHERE, Parcel
from palio.protocol.outgoing import Delivery
from palio.protocol.runs import Run
from palio.protocol.words import Credit, Got, Published, Rejected
from palio.routing.data_path import DataPath
from palio.routing.packets import Peer

if TYPE_CHECKING:
    from palio.protocol.broker import Broker, Link

RECENT_MAX = 100_000
_NO_TRAIL = b"\xc0"


class Counts(msgspec.Struct):
    """Ever."""

    published: int = 0
    rejected: int = 0
    forwarded: int = 0
    carried: int = 0
    doubled: int = 0
    dropped: int = 0
    """Live messages for which a neighbour had no room, and those that nobody could read."""


class Traffic:
    def __init__(self, broker: Broker) -> None:
        self.counts = Counts()
        self._broker = broker
        self._live: list[Parcel] = []  # came in this turn
        self._durable: list[Parcel] = []
        self._held: list[Parcel] = []  # durable, no room
        self._last: OrderedDict[str, int] = OrderedDict()  # number of a durable message
        self._stored: list[Parcel] = []  # since the last ticket
        self._unsafe: dict[int, list[Parcel]] = {}
        self._recent: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._paths = DataPath()  # from messages to durable subscriptions, wherever they live

    # ---- durable subscriptions of all brokers

    def add(self, broker: str, name: str, filters: Sequence[Filter]) -> None:
        self._paths.change(f"{broker}\n{name}", dict.fromkeys(filters, True))

    def remove(self, broker: str, name: str, filters: Sequence[Filter]) -> None:
        self._paths.change(f"{broker}\n{name}", dict.fromkeys(filters, False))

    # ---- messages that come in

    def publish(self, link: Link, letter: Letter) -> None:
        """A client has published."""
        header, attributes, body = letter
        if type(header) is not Publish:
            raise BrokenFrame(f"a client sends PUBLISH frames, not {type(header).__name__}")
        parcel = Parcel(
            NOWHERE, link.publisher, header.number, header.time, header.durable, attributes, body
        )
        if link.is_bound and not self._may_publish(link, parcel):
            return
        (self._durable if header.durable else self._live).append(parcel)

    def publish_run(self, link: Link, run: Run) -> None:
        """A client has published many messages."""
        if link.is_bound or run.durable or self._live or not self._deliver_run(link, run):
            durable, live = self._durable, self._live
            for number, time, attributes, body in run:
                parcel = Parcel(
                    NOWHERE, link.publisher, number, time, run.durable, attributes, body
                )
                if not link.is_bound or self._may_publish(link, parcel):
                    (durable if run.durable else live).append(parcel)

    def _deliver_run(self, link: Link, run: Run) -> bool:
        """False: it must be done one by one."""
        broker = self._broker
        if not broker.settings.is_forwarding and broker.neighbours.names:
            return False
        try:
            onward = broker.live.deliver_run(run, link.publisher)
        except InvalidValue:
            return False
        if onward is None:
            return False
        self.counts.published += len(run)
        for parcel, peers in onward:
            for peer in peers:
                self._forward(name_of(peer), parcel, _NO_TRAIL)
        return True

    def pass_on(self, link: Link, letter: Letter) -> None:
        """A neighbour has sent a message."""
        self._pay(link)
        header, attributes, body = letter
        if type(header) is Forward:
            if self._is_new(header.publisher, header.number):
                self._live.append(
                    Parcel(
                        peer_of(link.name),
                        header.publisher,
                        header.number,
                        header.time,
                        header.durable,
                        attributes,
                        body,
                        header.trail,
                    )
                )
        elif type(header) is Carry:
            self._carry_on(link, header, attributes, body)
        else:
            raise BrokenFrame(f"a broker sends FORWARD and CARRY, not {type(header).__name__}")

    def _pay(self, link: Link) -> None:
        """Let the neighbour send on when half of its credit is used."""
        link.received += 1
        if 2 * link.received >= self._broker.settings.link_credit:
            self._broker.output.say(link.number, Credit(0, link.received))
            link.received = 0

    def _is_new(self, publisher: str, number: int) -> bool:
        key = publisher, number
        if key in self._recent:
            self.counts.doubled += 1
            return False
        self._recent[key] = None
        if len(self._recent) > RECENT_MAX:
            self._recent.popitem(last=False)
        return True

    # ---- a turn

    def flush(self) -> None:
        """Deal with all messages that came in; called before anything changes who gets them."""
        if self._live:
            live, self._live = self._live, []
            self._each_valid(live, self._deliver)
        if self._durable:
            durable, self._durable = self._durable, []
            if self._held:  # they come first
                holding = {parcel.publisher for parcel in self._held}
                self._hold([parcel for parcel in durable if parcel.publisher in holding])
                durable = [parcel for parcel in durable if parcel.publisher not in holding]
            if durable:
                self._each_valid(durable, self._store)

    def _may_publish(self, link: Link, parcel: Parcel) -> bool:
        assert link.identity is not None
        try:
            check_publish(link.identity, Message.from_json(parcel.attributes))
        except PalioError as error:
            self._reject(parcel, error)
            return False
        return True

    def _reject(self, parcel: Parcel, error: PalioError) -> None:
        if parcel.source != NOWHERE:
            self.counts.dropped += 1
            return
        self.counts.rejected += 1
        link = self._broker.clients.link_of(parcel.publisher)
        if link is not None:
            self._broker.output.say(link.number, Rejected(parcel.number, str(error)))

    def _each_valid(self, parcels: list[Parcel], do: Callable[[list[Parcel]], None]) -> None:
        """Deal with a batch; when some of its messages cannot be read, with the others."""
        try:
            do(parcels)
        except InvalidValue:
            valid = []
            for parcel in parcels:
                try:
                    Message.from_json(parcel.attributes)
                    valid.append(parcel)
                except InvalidValue as error:
                    self._reject(parcel, error)
            if len(valid) == len(parcels):
                raise
            if valid:
                do(valid)

    def _deliver(self, parcels: list[Parcel]) -> None:
        """To live subscriptions here, and on to the brokers that want it."""
        broker = self._broker
        wanted = broker.live.deliver(parcels)
        self.counts.published += len(parcels)
        if broker.settings.is_forwarding:
            for parcel, peers in zip(parcels, wanted, strict=True):
                for peer in peers:
                    self._forward(name_of(peer), parcel, _NO_TRAIL)
        elif broker.neighbours.names:
            for parcel in parcels:
                for name, trail in self._next_hops(parcel):
                    self._forward(name, parcel, trail)

    def _next_hops(self, parcel: Parcel) -> list[tuple[str, bytes]]:
        message = Message.from_json(parcel.attributes)
        routes = self._broker.routes
        if parcel.trail is None:
            return routes.start(message)
        return routes.onward(parcel.trail, message, name_of(parcel.source))

    def _forward(self, name: str, parcel: Parcel, trail: bytes) -> None:
        header = Forward(
            msgspec.Raw(trail), parcel.publisher, parcel.number, parcel.time, parcel.durable
        )
        frame = letter_frame(header, parcel.attributes, parcel.body)
        if self._broker.neighbours.send(name, frame):
            self.counts.forwarded += 1
        else:
            self.counts.dropped += 1

    # ---- durable messages

    def _store(self, parcels: list[Parcel]) -> None:
        """Into the deposit; what there is no room for waits."""
        deposit = self._broker.deposit
        found = self._paths.peers_of([parcel.attributes for parcel in parcels])
        groups: dict[str, list[int]] = {}
        for i, parcel in enumerate(parcels):
            groups.setdefault(parcel.publisher, []).append(i)
        for publisher, chosen in groups.items():
            letters = [
                outgoing.Publication(p.number, p.time, p.attributes, p.body)
                for p in (parcels[i] for i in chosen)
            ]
            matches = [tuple(map(_split, found[i])) for i in chosen]
            taken = deposit.publish(publisher, letters, matches, self._broker.now_us)
            self._note_stored(publisher, [parcels[i] for i in chosen[:taken]])
            self._hold([parcels[i] for i in chosen[taken:]])

    def _note_stored(self, publisher: str, parcels: list[Parcel]) -> None:
        """Those that are new go to live subscriptions too, once they are safe."""
        last = max(self._last.pop(publisher, 0), self._broker.deposit.last_number(publisher))
        for parcel in parcels:
            if parcel.number > last:
                last = parcel.number
                self._stored.append(parcel)
        self._last[publisher] = last
        if len(self._last) > RECENT_MAX:
            self._last.popitem(last=False)

    def _hold(self, parcels: list[Parcel]) -> None:
        """Wait until there is room; a client that goes on and on is sent away."""
        if not parcels:
            return
        self._held += parcels
        publisher = parcels[-1].publisher
        if sum(p.publisher == publisher for p in self._held) > self._broker.settings.held_max:
            self.forget(publisher)
            link = self._broker.clients.link_of(publisher)
            if link is not None:
                self._broker.hang_up(link, "too many durable messages that are not acknowledged")

    def forget(self, publisher: str) -> None:
        """A client is gone: it will send again what was not stored."""
        if self._held:
            self._held = [parcel for parcel in self._held if parcel.publisher != publisher]

    def sealed(self, ticket: int) -> None:
        """What was stored until now is safe with this ticket."""
        self._unsafe[ticket], self._stored = self._stored, []

    def committed(self, ticket: int) -> None:
        """Durable messages go to live subscriptions when they are safe."""
        parcels = self._unsafe.pop(ticket, [])
        if parcels:
            self._each_valid(parcels, self._deliver)

    def carry(self) -> None:
        """Send what the deposit has ready."""
        broker = self._broker
        out = broker.deposit.take(broker.now_us)
        for publisher, number in out.published:
            link = broker.clients.link_of(publisher)
            if link is not None:
                broker.output.say(link.number, Published(number))
        for got in out.got:
            self.route(got)
        for message, targets in out.carries:
            header = Carry(
                broker.name,
                broker.deposit.epoch,
                targets,
                message.publisher,
                message.number,
                message.time,
            )
            self._send_carry(header, message.attributes, message.body, None)
        for delivery in out.deliveries:
            self._hand_over(delivery)
        for name in out.created:
            broker.clients.created(name)
        for ended in out.ended:
            broker.clients.ended(ended)
        if out.has_room and self._held:
            held, self._held = self._held, []
            self._store(held)

    def _hand_over(self, delivery: Delivery) -> None:
        link, id = cast(tuple[int, int], delivery.consumer)
        message = delivery.message
        header = Deliver(
            (id,),
            delivery.position,
            message.publisher,
            message.number,
            message.time,
            delivery.again,
        )
        self._broker.live.counts.delivered += 1
        self._broker.output.write(link, letter_frame(header, message.attributes, message.body))

    def _carry_on(self, link: Link, header: Carry, attributes: bytes, body: bytes) -> None:
        broker = self._broker
        others = []
        for target in header.targets:
            if target.broker == broker.name:
                broker.deposit.arrive(header, target, attributes, body, broker.now_us)
            else:
                others.append(target)
        if others:
            onward = msgspec.structs.replace(header, targets=tuple(others))
            self._send_carry(onward, attributes, body, link.name)

    def _send_carry(
        self, header: Carry, attributes: bytes, body: bytes, came_from: str | None
    ) -> None:
        """Split by next hop; what cannot go on now is sent again by its origin."""
        targets: dict[str, list[Target]] = {}
        for target in header.targets:
            targets.setdefault(target.broker, []).append(target)
        for hop, names in self._broker.routes.split(targets).items():
            if hop == came_from:  # the views of brokers differ; they will agree
                continue
            chosen = tuple(target for name in names for target in targets[name])
            part = msgspec.structs.replace(header, targets=chosen)
            if self._broker.neighbours.send(hop, letter_frame(part, attributes, body)):
                self.counts.carried += 1

    def route(self, got: Got) -> None:
        """An acknowledgement, to its origin or one hop nearer."""
        if got.origin == self._broker.name:
            self._broker.deposit.got(got, self._broker.now_us)
            return
        hop = self._broker.routes.hop(got.origin)
        if hop is not None:
            self._broker.neighbours.say(hop, got)


def peer_of(neighbour: str) -> Peer:
    """What the router calls a neighbour."""
    return f"n{neighbour}"


def name_of(peer: Peer) -> str:
    return peer[1:]


@lru_cache(1 << 16)
def _split(peer: Peer) -> tuple[str, str]:
    broker, _, name = peer.partition("\n")
    return broker, name
