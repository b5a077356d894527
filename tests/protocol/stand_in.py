"""A broker for tests of clients: one process, in memory, naive matching, no clock, no disk.

It keeps the promises that a client relies on, as simply as it can: numbers of publishers, queues
of durable subscriptions with positions, credit, and what comes again after a lost connection.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import palio
from palio.protocol.wire import control
from palio.protocol.wire.codes import CloseCode
from palio.protocol.wire.frames import (
    BrokenFrame,
    FrameReader,
    MessageFrame,
    control_frame,
    payload_frame,
)
from palio.protocol.wire.headers import DeliverHeader, PublishHeader
from palio.protocol.wire.refusals import refused


@dataclass
class Queue:
    """A durable subscription: what waits, by position."""

    predicate: palio.Predicate
    entries: dict[int, tuple[DeliverHeader, bytes, bytes]] = field(default_factory=dict)
    sent: dict[int, int] = field(default_factory=dict)
    """position → the link that has it"""
    ever_sent: set[int] = field(default_factory=set)
    done: dict[int, tuple[DeliverHeader, bytes, bytes]] = field(default_factory=dict)


@dataclass
class Interest:
    link: int
    request: control.SubscribeRequest
    predicate: palio.Predicate | None
    credit: int
    backlog: deque[tuple[DeliverHeader, bytes, bytes]] = field(default_factory=deque)


@dataclass
class Link:
    frames: FrameReader = field(default_factory=FrameReader)
    identity: str = ""
    name: str = ""
    is_greeted: bool = False
    interests: dict[int, Interest] = field(default_factory=dict)
    quench: bool = False

    @property
    def publisher(self) -> str:
        return f"{self.identity}/{self.name}"


class StandIn:
    """`receive` takes bytes; `out` holds bytes for links, `closes` those to be closed."""

    def __init__(self) -> None:
        self.out: dict[int, list[bytes]] = {}
        self.closes: set[int] = set()
        self.links: dict[int, Link] = {}
        self.published: dict[str, int] = {}
        self.stored: list[tuple[str, int, bytes, bytes]] = []
        self.live: list[tuple[str, int]] = []
        self.queues: dict[str, Queue] = {}
        self.tokens: dict[str, str] | None = None
        self.version = control.VERSION
        self.dismissal: CloseCode | None = None
        """Why nobody is welcome."""
        self.keepalive_us = 3_000_000
        self.forbidden = palio.parse("FALSE")
        self.refuses: str = ""
        self.is_silent = False
        self.holds = False
        """Publishes are stored and not acknowledged."""
        self.advertised: dict[tuple[int, int], tuple[str, ...]] = {}
        self._position = 0

    # ---- connections

    def open(self, link: int) -> None:
        self.links[link] = Link()
        self.out[link] = []

    def close(self, link: int) -> None:
        if self.links.pop(link, None) is None:
            return
        self.out.pop(link, None)
        self.closes.discard(link)
        self.advertised = {key: value for key, value in self.advertised.items() if key[0] != link}
        for queue in self.queues.values():
            queue.sent = {p: holder for p, holder in queue.sent.items() if holder != link}
        self._changed()
        self._serve()

    def receive(self, link: int, data: bytes) -> None:
        state = self.links.get(link)
        if state is None or link in self.closes:
            return
        try:
            for frame in state.frames.feed(data):
                if isinstance(frame, MessageFrame):
                    assert isinstance(frame.header, PublishHeader)
                    self._publish(link, frame.header, frame.attributes, frame.payload)
                else:
                    self._hear(link, state, frame)
                if link in self.closes or link not in self.links:
                    return
        except BrokenFrame as error:
            self.bye(link, str(error))

    def say(self, link: int, control_message: control.ControlMessage) -> None:
        if not self.is_silent:
            self.out[link].append(control_frame(control_message))

    def bye(self, link: int, reason: str, code: CloseCode = CloseCode.PROTOCOL) -> None:
        self.say(link, control.Bye(reason, code))
        self.closes.add(link)

    # ---- control messages

    def _hear(self, link: int, state: Link, control_message: control.ControlMessage) -> None:
        if not state.is_greeted:
            self._greet(link, state, control_message)
            return
        match control_message:
            case control.Ping(number):
                self.say(link, control.Pong(number))
            case control.SubscribeRequest():
                self._subscribe(link, state, control_message)
            case control.UnsubscribeRequest(id, forget):
                interest = state.interests.pop(id)
                if interest.request.durable:
                    name = f"{state.identity}/{interest.request.durable}"
                    queue = self.queues[name]
                    queue.sent = {p: holder for p, holder in queue.sent.items() if holder != link}
                    if forget:
                        del self.queues[name]
                self.say(link, control.Unsubscribed(id))
                self._changed()
                self._serve()
            case control.Acknowledge(id, positions):
                interest = state.interests[id]
                queue = self.queues[f"{state.identity}/{interest.request.durable}"]
                for position in positions:
                    if position in queue.entries:
                        queue.done[position] = queue.entries.pop(position)
                    queue.sent.pop(position, None)
                self._serve()
            case control.Credit(id, count):
                if id in state.interests:
                    interest = state.interests[id]
                    interest.credit += count
                    self._serve()
            case control.AdvertiseRequest(id, constraints):
                self.advertised[link, id] = constraints
                self.say(link, control.Done(id))
            case control.UnadvertiseRequest(id):
                del self.advertised[link, id]
                self.say(link, control.Done(id))
            case control.Quench(id, on):
                state.quench = on
                self.say(link, control.Done(id))
                self._changed()
            case control.Explain(id, attributes):
                hop = control.Hop("stand-in", "", (("all", attributes),), ())
                self.say(link, control.Explained(id, (hop,)))
            case control.Show(id):
                place = control.Place("stand-in", (), len(state.interests), len(self.queues), True)
                self.say(link, control.Shown(id, (place,)))
            case control.Bye():
                self.closes.add(link)
            case control.Pong():
                pass
            case _:
                raise AssertionError(control_message)

    def _greet(self, link: int, state: Link, control_message: control.ControlMessage) -> None:
        assert isinstance(control_message, control.Hello), control_message
        if self.tokens is not None and control_message.token not in self.tokens:
            self.bye(link, "nobody here knows this token", CloseCode.DENIED)
            return
        if self.dismissal is not None:
            self.bye(link, self.dismissal, self.dismissal)
            return
        state.identity = "anyone" if self.tokens is None else self.tokens[control_message.token]
        state.name = control_message.name
        state.is_greeted = True
        published = self.published.get(state.publisher, 0)
        self.say(
            link,
            control.Welcome(self.version, "stand-in", state.identity, published, self.keepalive_us),
        )

    def _subscribe(self, link: int, state: Link, request: control.SubscribeRequest) -> None:
        if self.refuses and self.refuses in (request.predicate or request.pattern):
            self.say(link, control.Refused(request.id, f"no grant covers {request.predicate}"))
            return
        try:
            predicate = palio.parse(request.predicate) if request.predicate else None
        except palio.PalioError as error:
            self.say(link, refused(request.id, error))
            return
        assert request.id not in state.interests
        if request.durable:
            assert predicate is not None
            name = f"{state.identity}/{request.durable}"
            if name not in self.queues:
                self.queues[name] = queue = Queue(predicate)
                for publisher, number, attributes, payload in (
                    self.stored if request.since == 0 else ()
                ):
                    if predicate.matches(palio.Message.from_json(attributes)):
                        self._enqueue(queue, publisher, number, attributes, payload)
        state.interests[request.id] = Interest(link, request, predicate, request.credit)
        self.say(link, control.Subscribed(request.id))
        self._changed()
        self._serve()

    def _changed(self) -> None:
        """Those who quench learn what is wanted."""
        wanted = [
            interest.predicate
            for state in self.links.values()
            for interest in state.interests.values()
            if interest.predicate is not None
        ] + [queue.predicate for queue in self.queues.values()]
        text = " OR ".join(f"({predicate})" for predicate in wanted) or "FALSE"
        for link, state in self.links.items():
            if state.quench:
                self.say(link, control.Wanted(text))

    # ---- messages

    def _publish(self, link: int, header: PublishHeader, attributes: bytes, payload: bytes) -> None:
        publisher = self.links[link].publisher
        number = header.number
        if header.durable and number <= self.published.get(publisher, 0):
            self.say(link, control.Published(number))
            return
        message = palio.Message.from_json(attributes)
        if self.forbidden.matches(message):
            self.say(link, control.Rejected(number, "no grant matches it"))
        else:
            if header.durable:
                self.published[publisher] = number
                self.stored.append((publisher, number, attributes, payload))
                for queue in self.queues.values():
                    if queue.predicate.matches(message):
                        self._enqueue(queue, publisher, number, attributes, payload)
            else:
                self.live.append((publisher, number))
            deliver = DeliverHeader((), 0, publisher, number, header.time)
            for state in self.links.values():
                for interest in state.interests.values():
                    if interest.predicate is None:
                        continue
                    if interest.request.durable and header.durable:
                        continue  # it comes from the queue
                    if interest.predicate.matches(message):
                        interest.backlog.append((deliver, attributes, payload))
            self._serve()
        if header.durable and not self.holds:
            self.say(link, control.Published(number))

    def release(self) -> None:
        """Acknowledge what was held back."""
        self.holds = False
        for link, state in self.links.items():
            if state.is_greeted:
                self.say(link, control.Published(self.published.get(state.publisher, 0)))

    def lose_acknowledgements(self, count: int) -> None:
        """As a crash does with what was not committed."""
        for queue in self.queues.values():
            for position in list(queue.done)[-count:]:
                queue.entries[position] = queue.done.pop(position)

    def _enqueue(
        self, queue: Queue, publisher: str, number: int, attributes: bytes, payload: bytes
    ) -> None:
        self._position += 1
        header = DeliverHeader((), self._position, publisher, number, 0)
        queue.entries[self._position] = header, attributes, payload

    def _serve(self) -> None:
        for link, state in self.links.items():
            for id, interest in state.interests.items():
                if interest.request.durable:
                    self._serve_queue(link, id, interest)
                while interest.backlog and interest.credit:
                    header, attributes, payload = interest.backlog.popleft()
                    interest.credit -= 1
                    self._deliver(link, id, header, attributes, payload, again=False)

    def _serve_queue(self, link: int, id: int, interest: Interest) -> None:
        name = f"{self.links[link].identity}/{interest.request.durable}"
        queue = self.queues.get(name)
        if queue is None:
            return
        under_way = sum(holder == link for holder in queue.sent.values())
        for position in sorted(queue.entries.keys() - queue.sent.keys()):
            if under_way >= interest.request.credit:
                break
            under_way += 1
            queue.sent[position] = link
            again = position in queue.ever_sent
            queue.ever_sent.add(position)
            self._deliver(link, id, *queue.entries[position], again=again)

    def _deliver(
        self,
        link: int,
        id: int,
        header: DeliverHeader,
        attributes: bytes,
        payload: bytes,
        *,
        again: bool,
    ) -> None:
        if self.is_silent:
            return
        sent = DeliverHeader(
            (id,), header.position, header.publisher, header.number, header.time, 1 + again
        )
        self.out[link].append(payload_frame(sent, attributes, payload))
