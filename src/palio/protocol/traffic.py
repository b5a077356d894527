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
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import msgspec
import numpy as np

from palio.errors import InvalidValue, PalioError
from palio.model.message import Message
from palio.model.predicate import Filter, Predicate
from palio.protocol.access import check_publish
from palio.protocol.answers import Answers, Matched
from palio.protocol.durability.kept import Picked
from palio.protocol.durability.outgoing import Delivery, Key, Keys
from palio.protocol.frames import (
    BrokenFrame,
    Carry,
    Deliver,
    Forward,
    Letter,
    Publish,
    Target,
    deliver_frames,
    letter_frame,
)
from palio.protocol.live import NOWHERE, Parcel
from palio.protocol.onward import Onward, peer_of
from palio.protocol.runs import Forwarded, Publication, Run, deliver_entries
from palio.protocol.words import Credit, Got, Published, Rejected
from palio.routing.data_path import BATCH_MIN, DataPath
from palio.routing.packets import Peer

if TYPE_CHECKING:
    from palio.protocol.broker import Broker, Link

RECENT_MAX = 100_000
GRANTS_MAX = 1000
_NUMBER: Final = 0  # of a Publication
_TEXT: Final = 2


class _Lot(NamedTuple):
    """Durable messages of one publisher."""

    publisher: str
    letters: list[Publication] | Run


class Traffic:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._onward = Onward(broker)
        self.counts = self._onward.counts
        self._live: list[Parcel] = []  # came in this turn
        self._durable: list[_Lot] = []
        self._held: dict[str, list[Publication]] = {}  # durable, no room
        self._stored: list[_Lot] = []  # since the last ticket
        self._unsafe: dict[int, list[_Lot]] = {}
        self._recent: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._grants: dict[Predicate, DataPath] = {}  # what may be published, as tables
        self._durables: Answers[Key] = Answers(_key)  # wherever they live

    def want(self, broker: str, name: str, filters: Iterable[Filter], is_wanted: bool) -> None:
        """There is a durable subscription that selects these, or no longer."""
        self._durables.change(f"{broker}\n{name}", dict.fromkeys(filters, is_wanted))

    # ---- messages that come in

    def publish(self, link: Link, found: Letter) -> None:
        """A client has published."""
        header, attributes, body = found
        if type(header) is not Publish:
            raise BrokenFrame(f"a client sends PUBLISH frames, not {type(header).__name__}")
        letter = header.number, header.time, attributes, body
        if not link.is_bound or self._may_publish(link, letter):
            self._take(link, [letter], header.durable)

    def publish_run(self, link: Link, run: Run) -> None:
        """A client has published many messages."""
        run.sign(link.publisher)
        letters: list[Publication] | Run = run
        if link.is_bound and not self._may_publish_all(link, run):
            letters = [letter for letter in run if self._may_publish(link, letter)]
        elif not run.durable and not self._live and self._onward.deliver_run(run, NOWHERE):
            return
        if letters:
            self._take(link, letters, run.durable)

    def _take(self, link: Link, letters: list[Publication] | Run, durable: bool) -> None:
        if durable:
            self._gather(link.publisher, letters)
        else:
            self._live += _parcels(link.publisher, letters, durable=False)

    def _gather(self, publisher: str, letters: list[Publication] | Run) -> None:
        """A run is a lot of its own."""
        if self._durable and not isinstance(letters, Run):
            name, last = self._durable[-1]
            if name == publisher and not isinstance(last, Run):
                last += letters
                return
        self._durable.append(_Lot(publisher, letters))

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

    def pass_on_run(self, link: Link, run: Forwarded) -> None:
        """A neighbour has sent many messages."""
        self._pay(link, len(run))
        source = peer_of(link.name)
        keys = list(zip(run.publishers(), run.numbers(), strict=True))
        if len(run) >= BATCH_MIN and self._are_new(keys):
            self._note(keys)
            self._flush_live()
            if not self._onward.deliver_run(run, source):
                self._live += _unpacked(source, run)
        else:
            self._live += [
                parcel
                for parcel in _unpacked(source, run)
                if self._is_new(parcel.publisher, parcel.number)
            ]

    def _pay(self, link: Link, count: int = 1) -> None:
        """Let the neighbour send on when half of its credit is used."""
        link.received += count
        if 2 * link.received >= self._broker.settings.link_credit:
            self._broker.output.say(link.number, Credit(0, link.received))
            link.received = 0

    def _is_new(self, publisher: str, number: int) -> bool:
        key = publisher, number
        if key in self._recent:
            self.counts.doubled += 1
            return False
        self._note([key])
        return True

    def _are_new(self, keys: list[tuple[str, int]]) -> bool:
        return self._recent.keys().isdisjoint(keys) and len(set(keys)) == len(keys)

    def _note(self, keys: list[tuple[str, int]]) -> None:
        self._recent.update(dict.fromkeys(keys))
        while len(self._recent) > RECENT_MAX:
            self._recent.popitem(last=False)

    # ---- a turn

    def flush(self) -> None:
        """Deal with all messages that came in; called before anything changes who gets them."""
        self._flush_live()
        if self._durable:
            durable, self._durable = self._durable, []
            try:
                self._store(durable)
            except InvalidValue:
                valid = [_Lot(name, self._valid(name, own)) for name, own in durable]
                self._store([lot for lot in valid if lot.letters])

    def _flush_live(self) -> None:
        if self._live:
            live, self._live = self._live, []
            self._deliver_valid(live)

    def _may_publish(self, link: Link, letter: Publication) -> bool:
        assert link.identity is not None
        try:
            check_publish(link.identity, Message.from_json(letter[_TEXT]))
        except PalioError as error:
            self._reject(link.publisher, letter[_NUMBER], error)
            return False
        return True

    def _may_publish_all(self, link: Link, run: Run) -> bool:
        """False: they are to be asked one by one."""
        assert link.identity is not None
        grant = link.identity.publish
        if grant is None:
            return False
        paths = self._grants.get(grant)
        if paths is None:
            if len(self._grants) >= GRANTS_MAX:
                self._grants.clear()
            paths = self._grants[grant] = DataPath()
            paths.change("", dict.fromkeys(grant.filters, True))
        try:
            matches = paths.matches(run.attributes())
        except InvalidValue:
            return False
        return matches is not None and bool((np.diff(matches.ends) > 0).all())

    def _reject(self, publisher: str, number: int, error: PalioError) -> None:
        self.counts.rejected += 1
        link = self._broker.clients.link_of(publisher)
        if link is not None:
            self._broker.output.say(link.number, Rejected(number, str(error)))

    def _valid(self, publisher: str, letters: Iterable[Publication]) -> list[Publication]:
        """Those that can be read; the others are rejected."""
        valid = []
        for letter in letters:
            try:
                Message.from_json(letter[_TEXT])
                valid.append(letter)
            except InvalidValue as error:
                self._reject(publisher, letter[_NUMBER], error)
        return valid

    def _deliver_valid(self, parcels: list[Parcel]) -> None:
        """Deal with a batch; when some of its messages cannot be read, with the others."""
        try:
            self._onward.deliver(parcels)
        except InvalidValue:
            valid = []
            for parcel in parcels:
                try:
                    Message.from_json(parcel.attributes)
                    valid.append(parcel)
                except InvalidValue as error:
                    if parcel.source == NOWHERE:
                        self._reject(parcel.publisher, parcel.number, error)
                    else:
                        self.counts.dropped += 1
            if len(valid) == len(parcels):
                raise
            self._onward.deliver(valid)

    # ---- durable messages

    def _store(self, lots: Sequence[_Lot]) -> None:
        """Into the deposit; what there is no room for waits."""
        deposit = self._broker.deposit
        found = self._matches(lots)
        for (publisher, letters), matches in zip(lots, found, strict=True):
            if publisher in self._held:  # they come first
                self._hold(publisher, list(letters))
                continue
            before = deposit.taken_number(publisher)
            taken = deposit.publish(publisher, letters, matches, self._broker.now_us)
            if new := _new(letters, before, taken):
                self._stored.append(_Lot(publisher, new))
            if taken < len(letters):
                self._hold(publisher, list(letters)[taken:])

    def _matches(self, lots: Sequence[_Lot]) -> list[list[Keys] | Matched[Key]]:
        """What each message of each lot matches. Runs are matched as they are, the rest at once."""
        rest = [lot.letters for lot in lots if not isinstance(lot.letters, Run)]
        keys = iter(self._durables.of([one[_TEXT] for letters in rest for one in letters]))
        return [
            self._durables.of_run(letters)
            if isinstance(letters, Run)
            else list(islice(keys, len(letters)))
            for _, letters in lots
        ]

    def _hold(self, publisher: str, letters: list[Publication]) -> None:
        """Wait until there is room; a client that goes on and on is sent away."""
        if not letters:
            return
        held = self._held.setdefault(publisher, [])
        held += letters
        if len(held) > self._broker.settings.held_max:
            self.forget(publisher)
            link = self._broker.clients.link_of(publisher)
            if link is not None:
                self._broker.hang_up(link, "too many durable messages that are not acknowledged")

    def forget(self, publisher: str) -> None:
        """A client is gone: it will send again what was not stored."""
        self._held.pop(publisher, None)

    def sealed(self, ticket: int) -> None:
        """What was stored until now is safe with this ticket."""
        self._unsafe[ticket], self._stored = self._stored, []

    def committed(self, ticket: int) -> None:
        """Durable messages go to live subscriptions when they are safe."""
        stored = self._unsafe.pop(ticket, [])
        if stored and not self._is_wanted:
            self.counts.published += sum(len(one.letters) for one in stored)
        elif stored:
            self._deliver_stored(stored)

    def _deliver_stored(self, lots: Sequence[_Lot]) -> None:
        """In order: a publisher's lots may be lists and runs."""
        parcels: list[Parcel] = []
        for publisher, letters in lots:
            if isinstance(letters, Run):
                if parcels:
                    self._onward.deliver(parcels)
                    parcels = []
                if self._onward.deliver_run(letters, NOWHERE):
                    continue
            parcels += _parcels(publisher, letters, durable=True)
        if parcels:
            self._onward.deliver(parcels)

    @property
    def _is_wanted(self) -> bool:
        """Somebody may want durable messages live."""
        broker = self._broker
        return broker.live.takes_durable or bool(broker.neighbours.names)

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
            broker.clients.homes.created(name)
        for ended in out.ended:
            broker.clients.homes.ended(ended)
        if out.has_room and self._held:
            held, self._held = self._held, {}
            self._store([_Lot(*one) for one in held.items()])

    def _hand_over(self, delivery: Delivery) -> None:
        link, id = cast(tuple[int, int], delivery.consumer)
        ids, again, messages = (id,), delivery.again, delivery.messages
        self._broker.live.counts.delivered += len(messages)
        if isinstance(messages, Picked):
            run = messages.pack.run
            data = deliver_entries(run, messages.places, delivery.positions, id, again)
            self._broker.output.write(link, data)
            return
        headers = [
            Deliver(ids, position, m.publisher, m.number, m.time, again)
            for position, m in zip(delivery.positions, messages, strict=True)
        ]
        texts = [(m.attributes, m.body) for m in messages]
        self._broker.output.write(link, deliver_frames(headers, texts))

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
            if self._broker.neighbours.carry(hop, letter_frame(part, attributes, body)):
                self.counts.carried += 1

    def route(self, got: Got) -> None:
        """An acknowledgement, to its origin or one hop nearer."""
        if got.origin == self._broker.name:
            self._broker.deposit.got(got, self._broker.now_us)
            return
        hop = self._broker.routes.hop(got.origin)
        if hop is not None:
            self._broker.neighbours.say(hop, got)


def _unpacked(source: Peer, run: Forwarded) -> list[Parcel]:
    return [
        Parcel(source, publisher, *one[:2], run.durable, *one[2:], msgspec.Raw(run.trail(r)))
        for r, (publisher, one) in enumerate(zip(run.publishers(), run, strict=True))
    ]


def _new(letters: list[Publication] | Run, last: int, count: int) -> list[Publication] | Run:
    """Those of the first ones that have larger numbers than any before."""
    if isinstance(letters, Run) and count == len(letters) and letters.grows(last):
        return letters
    found = []
    for letter in islice(letters, count):
        if letter[_NUMBER] > last:
            last = letter[_NUMBER]
            found.append(letter)
    return found


def _parcels(publisher: str, letters: Iterable[Publication], *, durable: bool) -> list[Parcel]:
    """What clients published, in the form that neighbours' messages have too."""
    return [
        Parcel(NOWHERE, publisher, number, time, durable, attributes, body)
        for number, time, attributes, body in letters
    ]


@lru_cache(1 << 16)
def _key(peer: Peer) -> Key:
    broker, _, name = peer.partition("\n")
    return broker, name
