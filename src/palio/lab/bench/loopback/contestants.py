"""The contestants of the broker benchmark: each a process on loopback with a load connected to it.

    relay     cuts frames and passes them on: the most that this transport can do
    live      a broker, best effort: each message matches one of the subscriptions
    hop       the same over two brokers: the source at one, the sinks at the other
    durable   a broker, durable: stored, then delivered to durable subscriptions and acknowledged
    durable-postgres   the same with a store in PostgreSQL that has a synchronous standby
    http      as live, but published over HTTP: a message a request, on one connection
    http-lines   the same with 500 messages a request
    durable-http   as durable, published over HTTP: 500 messages a request, which waits until they are stored
    topic     a broker on equality of one attribute
    mqtt      its MQTT listener with one topic a subscription ┐
    mosquitto the same client, where Mosquitto is installed   ┘ side by side; mqtt-1, mosquitto-1: QoS 1

Source and sinks are the same for all of them (load.py), and so are the messages.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from palio.errors import PalioError
from palio.lab.bench.loopback import http, mqtt, relay
from palio.lab.bench.loopback.load import STAMP_BYTES, Load, Sink, cut_frames, stamp
from palio.lab.bench.loopback.postgres import postgres_pair, why_no_postgres
from palio.lab.bench.loopback.processes import (
    broker_process,
    connected,
    free_port,
    mosquitto_process,
    mosquitto_program,
    process,
)
from palio.protocol.wire.control import (
    VERSION,
    Acknowledge,
    ControlMessage,
    Hello,
    Refused,
    Subscribed,
    SubscribeRequest,
)
from palio.protocol.wire.frames import FrameReader, MessageFrame, control_frame, message_frame
from palio.protocol.wire.headers import DeliverHeader, PublishHeader

SINKS = 20
PIECE = 500  # messages that are sent at once
_CREDIT = 1 << 20
_HEAR_S = 3.0  # by then brokers have heard of the subscriptions at the others
PACED, _PACED_PER_S = 5000, 2000
_HTTP_PACED_PER_S, _DURABLE_HTTP_PACED_PER_S = (
    200,
    25,
)  # requests on one connection wait for each other


@dataclass(frozen=True, slots=True)
class LoadSize:
    """How many subscriptions and messages there are; `body` is a message's without its time. `paced` messages
    are sent one by one, for their age."""

    subscriptions: int
    messages: int
    body: bytes
    paced: int = PACED


class LoopbackContestant:
    """A process with a load that is connected to it."""

    def __init__(
        self,
        load: Load,
        size: LoadSize,
        make: Callable[[int, bool], bytes],
        join: Callable[[list[bytes]], bytes] = b"".join,
        paced_per_s: int = _PACED_PER_S,
    ) -> None:
        """`make` gives what is sent for a message, `join` for a piece of them."""
        self._paced, self._paced_per_s = size.paced, paced_per_s
        self.load = load
        self._join = join
        self.subscriptions = size.subscriptions
        self._messages = size.messages
        self._make = make
        self._numbers = 0

    def warm_up(self) -> None:
        pieces = -(-self._messages // (4 * PIECE))
        self.load.push(self._pieces(pieces * PIECE), PIECE)

    def turn(self) -> float:
        return self.load.push(self._pieces(self._messages), PIECE)

    def ages_s(self) -> list[float]:
        """How old messages arrive that are sent at a moderate rate, in order."""
        count = self._paced * self._paced_per_s // _PACED_PER_S
        return sorted(self.load.pace(self._next, max(1, count), self._paced_per_s))

    def _pieces(self, count: int) -> list[bytes]:
        """Messages in pieces; numbers go on, as a publisher's must."""
        first, self._numbers = self._numbers + 1, self._numbers + count
        return [
            self._join([self._make(first + i, False) for i in range(at, at + PIECE)])
            for at in range(0, count, PIECE)
        ]

    def _next(self, _: int) -> bytes:
        self._numbers += 1
        return self._join([self._make(self._numbers, True)])


@contextmanager
def _relay(size: LoadSize) -> Iterator[LoopbackContestant]:
    port = free_port()
    with (
        process([sys.executable, "-m", "palio.lab.bench.loopback.relay", str(port)]),
        ExitStack() as stack,
    ):
        sinks = [Sink(stack.enter_context(connected(port)), cut_frames) for _ in range(SINKS)]
        for sink in sinks:
            sink.connection.sendall(relay.SINK)
        time.sleep(0.2)  # all sinks are known before the first message
        source = stack.enter_context(connected(port))
        source.sendall(relay.SOURCE)
        load = Load(source, sinks, cut_frames)
        yield LoopbackContestant(load, replace(size, subscriptions=SINKS), _maker(size))


@contextmanager
def _live(size: LoadSize) -> Iterator[LoopbackContestant]:
    """One subscription matches each message."""
    with broker_process() as port, ExitStack() as stack:
        load = _connect(port, _by_symbol_and_price(size), stack)
        yield LoopbackContestant(load, size, _maker(size))


@contextmanager
def _hop(size: LoadSize) -> Iterator[LoopbackContestant]:
    """The same over two brokers."""
    here, there = free_port(), free_port()
    with broker_process(here, there), broker_process(there, here), ExitStack() as stack:
        load = _connect(here, _by_symbol_and_price(size), stack, source=there)
        time.sleep(_HEAR_S)
        yield LoopbackContestant(load, size, _maker(size))


@contextmanager
def _http(
    size: LoadSize, join: Callable[[list[bytes]], bytes] | None = None
) -> Iterator[LoopbackContestant]:
    """The same, published over HTTP on one connection, whose requests do not wait for answers."""
    at = free_port()
    with broker_process(http=at) as port, ExitStack() as stack:
        load = _connect(port, _by_symbol_and_price(size), stack, source=at, speaks_http=True)
        requests = join or (lambda messages: b"".join(map(http.one, messages)))
        yield LoopbackContestant(load, size, _http_maker(size), requests, _HTTP_PACED_PER_S)


def _http_maker(size: LoadSize) -> Callable[[int, bool], bytes]:
    random = Random(1)

    def make(number: int, timed: bool) -> bytes:
        end = stamp() if timed else bytes(STAMP_BYTES)
        return http.message(_attributes(random, size, number), size.body + end)

    return make


@contextmanager
def _durable_http(size: LoadSize) -> Iterator[LoopbackContestant]:
    at, few = free_port(), replace(size, subscriptions=SINKS)
    with broker_process(http=at) as port, ExitStack() as stack:
        predicates = _by_symbol_and_price(few)
        load = _connect(port, predicates, stack, durable=True, source=at, speaks_http=True)
        load.heard = _acknowledge
        yield LoopbackContestant(
            load, few, _http_maker(few), http.many_durable, _DURABLE_HTTP_PACED_PER_S
        )


def _http_lines(size: LoadSize) -> AbstractContextManager[LoopbackContestant]:
    return _http(size, http.many)


@contextmanager
def _topic(size: LoadSize) -> Iterator[LoopbackContestant]:
    """The same with one equality a subscription."""
    with broker_process() as port, ExitStack() as stack:
        load = _connect(port, [f"symbol = 's{i}'" for i in range(size.subscriptions)], stack)
        yield LoopbackContestant(load, size, _maker(size))


@contextmanager
def _durable(size: LoadSize) -> Iterator[LoopbackContestant]:
    """Each sink has one durable subscription, and acknowledges."""
    with broker_process() as port, ExitStack() as stack:
        yield _durable_load(port, size, stack)


@contextmanager
def _durable_postgres(size: LoadSize) -> Iterator[LoopbackContestant]:
    """The same with a store in PostgreSQL; both of its nodes sync to their disks."""
    with (
        postgres_pair() as pair,
        broker_process(storage=pair.url()) as port,
        ExitStack() as stack,
    ):
        yield _durable_load(port, size, stack)


def _durable_load(port: int, size: LoadSize, stack: ExitStack) -> LoopbackContestant:
    few = replace(size, subscriptions=SINKS)
    load = _connect(port, _by_symbol_and_price(few), stack, durable=True)
    load.heard = _acknowledge
    return LoopbackContestant(load, few, _maker(few, durable=True))


def _by_symbol_and_price(size: LoadSize) -> list[str]:
    return [f"symbol = 's{i}' AND price < 1000" for i in range(size.subscriptions)]


def _connect(
    port: int,
    predicates: list[str],
    stack: ExitStack,
    *,
    durable: bool = False,
    source: int | None = None,
    speaks_http: bool = False,
) -> Load:
    """Sinks with these subscriptions at a broker, and a source there or at the port `source`."""
    sinks = []
    for i in range(SINKS):
        connection = stack.enter_context(connected(port))
        of_sink = predicates[i::SINKS]
        control: list[ControlMessage] = [Hello(VERSION, "client", f"sink {i}")]
        control += [
            SubscribeRequest(id, predicate, durable=f"queue {i}" if durable else "", credit=_CREDIT)
            for id, predicate in enumerate(of_sink, 1)
        ]
        connection.sendall(b"".join(map(control_frame, control)))
        _expect(connection, len(of_sink))
        sinks.append(Sink(connection, cut_frames))
    connection = stack.enter_context(connected(source or port))
    if speaks_http:
        return Load(connection, sinks, http.skip_answers)
    connection.sendall(control_frame(Hello(VERSION, "client", "source")))
    return Load(connection, sinks, cut_frames)


def _expect(connection: socket.socket, count: int) -> None:
    """Wait until all subscriptions are there."""
    frames, confirmed = FrameReader(), 0
    while confirmed < count:
        for frame in frames.feed(connection.recv(1 << 16)):
            if isinstance(frame, Refused):
                raise PalioError(f"the broker refuses a subscription: {frame.reason}")
            confirmed += isinstance(frame, Subscribed)


def _acknowledge(sink: Sink, data: bytes, ends: list[int]) -> None:
    """All that came: a single consumer gets the positions of its queue one after the other."""
    first = _position(data[: ends[0]])
    positions = tuple(range(first, first + len(ends)))
    if _position(data[ends[-2] if len(ends) > 1 else 0 : ends[-1]]) != positions[-1]:
        raise PalioError("the broker left out positions of a queue, or sent them twice")
    sink.connection.sendall(control_frame(Acknowledge(1, positions)))


def _position(frame: bytes) -> int:
    (delivered,) = FrameReader().feed(frame)
    if not isinstance(delivered, MessageFrame) or not isinstance(delivered.header, DeliverHeader):
        raise PalioError(f"the broker said {delivered} instead of delivering a message")
    return delivered.header.position


def _maker(size: LoadSize, *, durable: bool = False) -> Callable[[int, bool], bytes]:
    random = Random(1)

    def make(number: int, timed: bool) -> bytes:
        attributes = _attributes(random, size, number)
        body = size.body + (stamp() if timed else bytes(STAMP_BYTES))
        return message_frame(PublishHeader(number, 0, durable), attributes, body)

    return make


def _attributes(random: Random, size: LoadSize, number: int) -> bytes:
    symbol, price = random.randrange(size.subscriptions), random.randrange(1000)
    return b'{"symbol":"s%d","price":%d,"volume":%d}' % (symbol, price, number)


@contextmanager
def _mqtt(qos: int, size: LoadSize) -> Iterator[LoopbackContestant]:
    port = free_port()
    with broker_process(mqtt=port), ExitStack() as stack:
        yield _topics(port, size, qos, stack)


@contextmanager
def _mosquitto(qos: int, size: LoadSize) -> Iterator[LoopbackContestant]:
    with mosquitto_process() as port, ExitStack() as stack:
        yield _topics(port, size, qos, stack)


def _topics(port: int, size: LoadSize, qos: int, stack: ExitStack) -> LoopbackContestant:
    """Sinks with topics at a broker of MQTT, and a source."""
    load, make = mqtt.topics(port, size.subscriptions, SINKS, size.body, qos, stack)
    return LoopbackContestant(load, size, make)


CONTESTANTS: dict[str, Callable[[LoadSize], AbstractContextManager[LoopbackContestant]]] = {
    "relay": _relay,
    "live": _live,
    "http": _http,
    "http-lines": _http_lines,
    "hop": _hop,
    "durable": _durable,
    "durable-postgres": _durable_postgres,
    "durable-http": _durable_http,
    "topic": _topic,
    "mqtt": partial(_mqtt, 0),
    "mosquitto": partial(_mosquitto, 0),
    "mqtt-1": partial(_mqtt, 1),
    "mosquitto-1": partial(_mosquitto, 1),
}


def why_missing(contestant: str) -> str | None:
    """Why a contestant cannot take part here; None: it can."""
    if contestant.startswith("mosquitto") and mosquitto_program() is None:
        return "it is not installed"
    return why_no_postgres() if contestant == "durable-postgres" else None
