"""Benchmark of one broker on loopback, beside a bare relay of the same frames.

    relay     cuts frames and passes them on: the most that this transport can do
    live      a broker, best effort: each message matches one of the subscriptions
    hop       the same over two brokers: the source at one, the sinks at the other
    durable   a broker, durable: stored, then delivered to durable subscriptions and acknowledged
    topic     a broker on equality of one attribute ┐
    mosquitto the same as topics, where it is there ┘ side by side

Each contestant is a process of its own; source and sinks are the same (broker_load.py). They take
turns, several times, so that ratios hold on a noisy machine; the median is told.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from statistics import median

from rich.console import Console
from rich.table import Table

from palio.errors import PalioError
from palio.lab import mqtt, relay
from palio.lab.broker_load import STAMP_BYTES, WINDOW, Load, Sink, cut_frames, stamp
from palio.protocol.frames import Deliver, Frames, Letter, Publish, letter_frame, word_frame
from palio.protocol.words import VERSION, Acknowledge, Hello, Refused, Subscribe, Subscribed, Word

CONTESTANTS = ("relay", "live", "hop", "durable", "topic", "mosquitto")
SINKS = 20
_PIECE = 500
_CREDIT = 1 << 20
_START_S = 60.0
_HEAR_S = 3.0
"""By then brokers have heard what is wanted at the others."""


@dataclass(frozen=True, slots=True)
class Result:
    """The medians of one contestant."""

    contestant: str
    subscriptions: int
    messages: int
    body_bytes: int
    per_second: float
    ratio: float  # to the relay, within the run
    p50_us: float
    p99_us: float

    def row(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Size:
    subscriptions: int
    messages: int
    body: bytes


class _Contestant:
    """A process with a load that is connected to it."""

    def __init__(self, name: str, load: Load, make: Callable[[int, bool], bytes]) -> None:
        self.name = name
        self.load = load
        self.make = make
        self._numbers = 0

    def pieces(self, count: int) -> list[bytes]:
        """Messages in pieces; numbers go on, as a publisher's must."""
        first, self._numbers = self._numbers + 1, self._numbers + count
        return [
            b"".join(self.make(first + i, False) for i in range(at, min(at + _PIECE, count)))
            for at in range(0, count, _PIECE)
        ]

    def next(self, _: int) -> bytes:
        self._numbers += 1
        return self.make(self._numbers, True)


def run(
    *,
    subscriptions: int = 10_000,
    messages: int = 100_000,
    body_bytes: int = 100,
    repeats: int = 3,
    contestants: tuple[str, ...] = CONTESTANTS,
    progress: Callable[[str], None] = lambda _text: None,
) -> Iterator[Result]:
    """Time the contestants; `mosquitto` is left out where it is not installed."""
    unknown = set(contestants) - set(CONTESTANTS)
    if unknown:
        raise PalioError(f"no contestant {min(unknown)!r}; there are {', '.join(CONTESTANTS)}")
    if subscriptions < SINKS or messages < _PIECE or body_bytes < STAMP_BYTES or repeats < 1:
        raise PalioError(
            f"a benchmark of brokers takes {SINKS} subscriptions, {_PIECE} messages of "
            f"{STAMP_BYTES} bytes and one repeat at least"
        )
    messages -= messages % _PIECE
    size = _Size(subscriptions, messages, bytes(body_bytes - STAMP_BYTES))
    if "mosquitto" in contestants and _mosquitto() is None:
        progress("mosquitto is not installed: left out")
        contestants = tuple(name for name in contestants if name != "mosquitto")
    names = ("relay", *(name for name in contestants if name != "relay"))
    with ExitStack() as stack:
        started = []
        for name in names:
            progress(f"{name}: starting")
            started.append(stack.enter_context(_STARTS[name](size)))
        times: dict[str, list[float]] = {name: [] for name in names}
        for repeat in range(-1, repeats):  # the first warms up
            for one in started:
                progress(f"{one.name}: {'warming up' if repeat < 0 else f'run {repeat + 1}'}")
                taken = one.load.push(
                    one.pieces(messages if repeat >= 0 else messages // 4), _PIECE
                )
                if repeat >= 0:
                    times[one.name].append(taken)
        for one in started:
            progress(f"{one.name}: latency")
            ages = sorted(one.load.pace(one.next, 5000, 2000))
            ratios = [r / t for r, t in zip(times["relay"], times[one.name], strict=True)]
            yield Result(
                one.name,
                subscriptions if one.name in ("live", "hop", "topic", "mosquitto") else SINKS,
                messages,
                body_bytes,
                messages / median(times[one.name]),
                median(ratios),
                1e6 * ages[len(ages) // 2],
                1e6 * ages[int(len(ages) * 0.99)],
            )


def show(console: Console, results: list[Result]) -> None:
    table = Table(title="One broker on loopback")
    for name in ("contestant", "subscriptions", "messages/s", "of the relay", "p50", "p99"):
        table.add_column(name, justify="left" if name == "contestant" else "right")
    for one in results:
        table.add_row(
            one.contestant,
            f"{one.subscriptions:,}",
            f"{one.per_second:,.0f}",
            f"{one.ratio:.0%}",
            f"{one.p50_us:,.0f} us",
            f"{one.p99_us:,.0f} us",
        )
    console.print(table)


# ---- contestants


@contextmanager
def _relay(size: _Size) -> Iterator[_Contestant]:
    port = _free_port()
    with _process([sys.executable, "-m", "palio.lab.relay", str(port)]), ExitStack() as stack:
        sinks = [Sink(stack.enter_context(_connected(port)), cut_frames) for _ in range(SINKS)]
        for sink in sinks:
            sink.connection.sendall(relay.SINK)
        time.sleep(0.2)  # all sinks are known before the first message
        source = stack.enter_context(_connected(port))
        source.sendall(relay.SOURCE)
        yield _Contestant("relay", Load(source, sinks, cut_frames), _maker(size, durable=False))


@contextmanager
def _live(size: _Size) -> Iterator[_Contestant]:
    """One subscription matches each message."""
    with _broker() as port, ExitStack() as stack:
        wishes = [f"symbol = 's{i}' AND price < 1000" for i in range(size.subscriptions)]
        yield _on_broker("live", port, wishes, _maker(size, durable=False), stack)


@contextmanager
def _hop(size: _Size) -> Iterator[_Contestant]:
    """The same over two brokers."""
    here, there = _free_port(), _free_port()
    with _broker(here, there), _broker(there, here), ExitStack() as stack:
        wishes = [f"symbol = 's{i}' AND price < 1000" for i in range(size.subscriptions)]
        made = _on_broker("hop", here, wishes, _maker(size, durable=False), stack, source=there)
        time.sleep(_HEAR_S)
        yield made


@contextmanager
def _topic(size: _Size) -> Iterator[_Contestant]:
    with _broker() as port, ExitStack() as stack:
        wishes = [f"symbol = 's{i}'" for i in range(size.subscriptions)]
        yield _on_broker("topic", port, wishes, _maker(size, durable=False), stack)


@contextmanager
def _durable(size: _Size) -> Iterator[_Contestant]:
    """Each sink has one durable subscription, and acknowledges."""
    small = replace(size, subscriptions=SINKS)
    with _broker() as port, ExitStack() as stack:
        wishes = [f"symbol = 's{i}' AND price < 1000" for i in range(SINKS)]
        made = _on_broker("durable", port, wishes, _maker(small, durable=True), stack, durable=True)
        made.load.heard = _acknowledge
        yield made


def _on_broker(
    name: str,
    port: int,
    wishes: list[str],
    make: Callable[[int, bool], bytes],
    stack: ExitStack,
    *,
    durable: bool = False,
    source: int | None = None,
) -> _Contestant:
    """`source`: the port of another broker, at which messages are published."""
    sinks = []
    for i in range(SINKS):
        connection = stack.enter_context(_connected(port))
        words: list[Word] = [Hello(VERSION, "client", f"sink {i}")]
        own = wishes[i::SINKS]
        words += [
            Subscribe(id, wish, durable=f"queue {i}" if durable else "", credit=_CREDIT)
            for id, wish in enumerate(own, 1)
        ]
        connection.sendall(b"".join(map(word_frame, words)))
        _expect(connection, len(own))
        sinks.append(Sink(connection, cut_frames))
    connection = stack.enter_context(_connected(source or port))
    connection.sendall(word_frame(Hello(VERSION, "client", "source")))
    return _Contestant(name, Load(connection, sinks, cut_frames), make)


def _expect(connection: socket.socket, count: int) -> None:
    """Wait until all subscriptions are there."""
    frames, found = Frames(), 0
    while found < count:
        for frame in frames.feed(connection.recv(1 << 16)):
            if isinstance(frame, Refused):
                raise PalioError(f"the broker refuses a subscription: {frame.reason}")
            found += isinstance(frame, Subscribed)


def _acknowledge(sink: Sink, data: bytes, ends: list[int]) -> None:
    """All that came: a single consumer gets the positions of its queue one after the other."""
    first = _position(data[: ends[0]])
    positions = tuple(range(first, first + len(ends)))
    if _position(data[ends[-2] if len(ends) > 1 else 0 : ends[-1]]) != positions[-1]:
        raise PalioError("the broker left out positions of a queue, or sent them twice")
    sink.connection.sendall(word_frame(Acknowledge(1, positions)))


def _position(frame: bytes) -> int:
    (letter,) = Frames().feed(frame)
    if not isinstance(letter, Letter) or not isinstance(letter.header, Deliver):
        raise PalioError(f"the broker said {letter} instead of delivering a message")
    return letter.header.position


@contextmanager
def _mosquitto_process(size: _Size) -> Iterator[_Contestant]:
    program = _mosquitto()
    assert program is not None
    port = _free_port()
    settings = f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n"
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        config = Path(directory, "mosquitto.conf")
        config.write_text(settings)
        stack.enter_context(_process([program, "-c", str(config)]))
        sinks = []
        for i in range(SINKS):
            connection = stack.enter_context(_connected(port))
            topics = [f"s{k}" for k in range(i, size.subscriptions, SINKS)]
            connection.sendall(mqtt.connect(f"sink {i}") + mqtt.subscribe(topics))
            _drain(connection, 2)
            sinks.append(Sink(connection, mqtt.cut_packets))
        source = stack.enter_context(_connected(port))
        source.sendall(mqtt.connect("source"))
        random = Random(1)

        def make(_: int, timed: bool) -> bytes:
            end = stamp() if timed else bytes(STAMP_BYTES)
            return mqtt.publish(f"s{random.randrange(size.subscriptions)}", size.body + end)

        yield _Contestant("mosquitto", Load(source, sinks, mqtt.cut_packets), make)


def _drain(connection: socket.socket, packets: int) -> None:
    data = b""
    while len(mqtt.cut_packets(data)[0]) < packets:
        data += connection.recv(1 << 16)


def _mosquitto() -> str | None:
    return shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")


_STARTS = {
    "relay": _relay,
    "live": _live,
    "hop": _hop,
    "durable": _durable,
    "topic": _topic,
    "mosquitto": _mosquitto_process,
}


def _maker(size: _Size, *, durable: bool) -> Callable[[int, bool], bytes]:
    random = Random(1)

    def make(number: int, timed: bool) -> bytes:
        symbol, price = random.randrange(size.subscriptions), random.randrange(1000)
        attributes = b'{"symbol":"s%d","price":%d,"volume":%d}' % (symbol, price, number)
        body = size.body + (stamp() if timed else bytes(STAMP_BYTES))
        return letter_frame(Publish(number, 0, durable), attributes, body)

    return make


# ---- processes


@contextmanager
def _broker(port: int | None = None, neighbour: int | None = None) -> Iterator[int]:
    """A broker, named by its port; with a neighbour at another one."""
    port = port or _free_port()
    settings = (
        f'[broker]\nname = "at-{port}"\nlisten = "127.0.0.1:{port}"\ndata = "data"\n'
        'secret = "only for this benchmark, on loopback"\n'
        '[times]\nkeepalive = "10 min"\n'  # the load says no Ping
        f"[limits]\nwaiting = {2 * WINDOW}\n"
    )
    if neighbour is not None:
        settings += f'[neighbours."at-{neighbour}"]\naddress = "127.0.0.1:{neighbour}"\n'
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory, "broker.toml")
        config.write_text(settings)
        command = [sys.executable, "-m", "palio.cli", "broker", "--config", str(config)]
        with _process(command):
            yield port


@contextmanager
def _process(command: list[str]) -> Iterator[None]:
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=errors, stderr=errors)
        try:
            yield
        except (OSError, PalioError) as error:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()
            raise PalioError(f"{error}; the process said: {said or 'nothing'}") from None
        finally:
            process.terminate()
            process.wait()


@contextmanager
def _connected(port: int) -> Iterator[socket.socket]:
    """A connection, as soon as somebody listens."""
    until = time.monotonic() + _START_S
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port))
            break
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise PalioError(f"nobody listens at port {port} after {_START_S:g} s") from None
            time.sleep(0.05)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with closing(connection):
        yield connection


def _free_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
