"""A broker for tests of clients: one process, in memory, naive matching, no clock, no disk.

It keeps the promises that a client relies on, as simply as it can: numbers of publishers, queues
of durable subscriptions with positions, credit, and what comes again after a lost connection.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import palio
from palio.protocol import words
from palio.protocol.frames import (
    BrokenFrame,
    Deliver,
    Frames,
    Letter,
    Publish,
    letter_frame,
    word_frame,
)


@dataclass
class Queue:
    """A durable subscription: what waits, by position."""

    predicate: palio.Predicate
    entries: dict[int, tuple[Deliver, bytes, bytes]] = field(default_factory=dict)
    sent: dict[int, int] = field(default_factory=dict)
    """position → the link that has it"""
    ever_sent: set[int] = field(default_factory=set)
    done: dict[int, tuple[Deliver, bytes, bytes]] = field(default_factory=dict)


@dataclass
class Interest:
    link: int
    word: words.Subscribe
    predicate: palio.Predicate | None
    credit: int
    backlog: deque[tuple[Deliver, bytes, bytes]] = field(default_factory=deque)


@dataclass
class Link:
    frames: Frames = field(default_factory=Frames)
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
        self.version = words.VERSION
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
                if isinstance(frame, Letter):
                    assert isinstance(frame.header, Publish)
                    self._publish(link, frame.header, frame.attributes, frame.body)
                else:
                    self._hear(link, state, frame)
                if link in self.closes or link not in self.links:
                    return
        except BrokenFrame as error:
            self.bye(link, str(error))

    def say(self, link: int, word: words.Word) -> None:
        if not self.is_silent:
            self.out[link].append(word_frame(word))

    def bye(self, link: int, reason: str) -> None:
        self.say(link, words.Bye(reason))
        self.closes.add(link)

    # ---- words

    def _hear(self, link: int, state: Link, word: words.Word) -> None:
        if not state.is_greeted:
            self._greet(link, state, word)
            return
        match word:
            case words.Ping(number):
                self.say(link, words.Pong(number))
            case words.Subscribe():
                self._subscribe(link, state, word)
            case words.Unsubscribe(id, forget):
                interest = state.interests.pop(id)
                if interest.word.durable:
                    name = f"{state.identity}/{interest.word.durable}"
                    queue = self.queues[name]
                    queue.sent = {p: holder for p, holder in queue.sent.items() if holder != link}
                    if forget:
                        del self.queues[name]
                self.say(link, words.Unsubscribed(id))
                self._changed()
                self._serve()
            case words.Acknowledge(id, positions):
                interest = state.interests[id]
                queue = self.queues[f"{state.identity}/{interest.word.durable}"]
                for position in positions:
                    if position in queue.entries:
                        queue.done[position] = queue.entries.pop(position)
                    queue.sent.pop(position, None)
                self._serve()
            case words.Credit(id, count):
                if id in state.interests:
                    interest = state.interests[id]
                    interest.credit += count
                    self._serve()
            case words.Advertise(id, constraints):
                self.advertised[link, id] = constraints
                self.say(link, words.Done(id))
            case words.Unadvertise(id):
                del self.advertised[link, id]
                self.say(link, words.Done(id))
            case words.Quench(id, on):
                state.quench = on
                self.say(link, words.Done(id))
                self._changed()
            case words.Explain(id, attributes):
                hop = words.Hop("stand-in", "", (("all", attributes),), ())
                self.say(link, words.Explained(id, (hop,)))
            case words.Show(id):
                place = words.Place("stand-in", (), len(state.interests), len(self.queues), True)
                self.say(link, words.Shown(id, (place,)))
            case words.Bye():
                self.closes.add(link)
            case words.Pong():
                pass
            case _:
                raise AssertionError(word)

    def _greet(self, link: int, state: Link, word: words.Word) -> None:
        assert isinstance(word, words.Hello), word
        if self.tokens is not None and word.token not in self.tokens:
            self.bye(link, "nobody here knows this token")
            return
        state.identity = "anyone" if self.tokens is None else self.tokens[word.token]
        state.name = word.name
        state.is_greeted = True
        published = self.published.get(state.publisher, 0)
        self.say(
            link,
            words.Welcome(self.version, "stand-in", state.identity, published, self.keepalive_us),
        )

    def _subscribe(self, link: int, state: Link, word: words.Subscribe) -> None:
        if self.refuses and self.refuses in (word.predicate or word.pattern):
            self.say(link, words.Refused(word.id, f"no grant covers {word.predicate}"))
            return
        try:
            predicate = palio.parse(word.predicate) if word.predicate else None
        except palio.PalioError as error:
            self.say(link, words.Refused(word.id, str(error)))
            return
        assert word.id not in state.interests
        if word.durable:
            assert predicate is not None
            name = f"{state.identity}/{word.durable}"
            if name not in self.queues:
                self.queues[name] = queue = Queue(predicate)
                for publisher, number, attributes, body in self.stored if word.since == 0 else ():
                    if predicate.matches(palio.Message.from_json(attributes)):
                        self._enqueue(queue, publisher, number, attributes, body)
        state.interests[word.id] = Interest(link, word, predicate, word.credit)
        self.say(link, words.Subscribed(word.id))
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
                self.say(link, words.Wanted(text))

    # ---- messages

    def _publish(self, link: int, header: Publish, attributes: bytes, body: bytes) -> None:
        publisher = self.links[link].publisher
        number = header.number
        if header.durable and number <= self.published.get(publisher, 0):
            self.say(link, words.Published(number))
            return
        message = palio.Message.from_json(attributes)
        if self.forbidden.matches(message):
            self.say(link, words.Rejected(number, "no grant matches it"))
        else:
            if header.durable:
                self.published[publisher] = number
                self.stored.append((publisher, number, attributes, body))
                for queue in self.queues.values():
                    if queue.predicate.matches(message):
                        self._enqueue(queue, publisher, number, attributes, body)
            else:
                self.live.append((publisher, number))
            deliver = Deliver((), 0, publisher, number, header.time)
            for state in self.links.values():
                for interest in state.interests.values():
                    if interest.predicate is None:
                        continue
                    if interest.word.durable and header.durable:
                        continue  # it comes from the queue
                    if interest.predicate.matches(message):
                        interest.backlog.append((deliver, attributes, body))
            self._serve()
        if header.durable and not self.holds:
            self.say(link, words.Published(number))

    def release(self) -> None:
        """Acknowledge what was held back."""
        self.holds = False
        for link, state in self.links.items():
            if state.is_greeted:
                self.say(link, words.Published(self.published.get(state.publisher, 0)))

    def lose_acknowledgements(self, count: int) -> None:
        """As a crash does with what was not committed."""
        for queue in self.queues.values():
            for position in list(queue.done)[-count:]:
                queue.entries[position] = queue.done.pop(position)

    def _enqueue(
        self, queue: Queue, publisher: str, number: int, attributes: bytes, body: bytes
    ) -> None:
        self._position += 1
        header = Deliver((), self._position, publisher, number, 0)
        queue.entries[self._position] = header, attributes, body

    def _serve(self) -> None:
        for link, state in self.links.items():
            for id, interest in state.interests.items():
                if interest.word.durable:
                    self._serve_queue(link, id, interest)
                while interest.backlog and interest.credit:
                    header, attributes, body = interest.backlog.popleft()
                    interest.credit -= 1
                    self._deliver(link, id, header, attributes, body, again=False)

    def _serve_queue(self, link: int, id: int, interest: Interest) -> None:
        name = f"{self.links[link].identity}/{interest.word.durable}"
        queue = self.queues.get(name)
        if queue is None:
            return
        under_way = sum(holder == link for holder in queue.sent.values())
        for position in sorted(queue.entries.keys() - queue.sent.keys()):
            if under_way >= interest.word.credit:
                break
            under_way += 1
            queue.sent[position] = link
            again = position in queue.ever_sent
            queue.ever_sent.add(position)
            self._deliver(link, id, *queue.entries[position], again=again)

    def _deliver(
        self, link: int, id: int, header: Deliver, attributes: bytes, body: bytes, *, again: bool
    ) -> None:
        if self.is_silent:
            return
        sent = Deliver((id,), header.position, header.publisher, header.number, header.time, again)
        self.out[link].append(letter_frame(sent, attributes, body))
