"""The walk of one message through the code of three brokers: `python -m palio.lab.demo.walk`.

    publisher ─PUBLISH─▶ a ──▶ b ──▶ c ─DELIVER─▶ a durable subscription, and a live one

Everything is in this process: the cores of the brokers, a store in memory, and clients that are
just bytes. While one durable message travels, from its PUBLISH frame until it is delivered and
acknowledged, every call of a Python function of Palio is counted, with the file that it is in, and
how often each broker parses the attributes of the message.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from palio.lab.memory_store import MemoryStore
from palio.matching.table import ForwardingTable
from palio.model.message import Message
from palio.protocol.broker.access import EVERYTHING, Access, Identity
from palio.protocol.broker.broker import Broker
from palio.protocol.broker.settings import Neighbour, Settings
from palio.protocol.wire.control import VERSION, Acknowledge, Hello, SubscribeRequest
from palio.protocol.wire.frames import (
    FrameReader,
    MessageFrame,
    control_frame,
    message_frame,
)
from palio.protocol.wire.headers import DeliverHeader, PublishHeader

NAMES = ("a", "b", "c")
PUBLISHER, DURABLE, LIVE = 1, 2, 3  # links of clients
_PACKAGE = str(Path(__file__).resolve().parents[2])
_LAB = str(Path(__file__).resolve().parents[1])
"""What a broker does not consist of: this file, and the store in memory."""
_ROUNDS_MAX = 1000


class Walk(msgspec.Struct):
    """What one message costs."""

    calls: int = 0
    functions: Counter[str] = msgspec.field(default_factory=Counter)
    files: Counter[str] = msgspec.field(default_factory=Counter)
    file_changes: int = 0
    parses: Counter[str] = msgspec.field(default_factory=Counter)
    """By broker."""
    deliveries: list[tuple[int, bool]] = msgspec.field(default_factory=list)
    """Links of clients that got the message; True: from the queue of a durable subscription."""


def _numbered(first: int) -> Callable[[int], bytes]:
    """Bytes that are different each time, in place of random ones."""
    numbers = count(first)
    return lambda size: next(numbers).to_bytes(size, "little")


class _BrokerLine:
    """The brokers, joined in a line, and three clients."""

    def __init__(self) -> None:
        self.now_us = 1_000_000_000
        self.at = ""
        """The broker whose code runs."""
        self.walk = Walk()
        self._numbers = count(1)
        access = Access(anonymous=Identity("anybody", EVERYTHING, EVERYTHING))
        self.brokers = {}
        for i, name in enumerate(NAMES):
            others = [NAMES[j] for j in (i - 1, i + 1) if 0 <= j < len(NAMES)]
            secrets = {
                other: Neighbour("".join(sorted((name, other))).encode()) for other in others
            }
            self.brokers[name] = Broker(
                Settings(name, access, secrets),
                MemoryStore(),
                self.now_us,
                _numbered(1000 * i),
                defers=True,
            )
        self._busy: set[str] = set(NAMES)
        self._ends: dict[tuple[str, int], tuple[str, int]] = {}
        links = count(10)
        for a, b in pairwise(NAMES):
            x, y = next(links), next(links)
            self._ends[a, x], self._ends[b, y] = (b, y), (a, x)
            self.brokers[b].open(y, self.now_us)
            self.brokers[a].open(x, self.now_us, dials=b)
        self.run()
        for name, link in (("a", PUBLISHER), ("c", DURABLE), ("c", LIVE)):
            self.brokers[name].open(link, self.now_us)
            self.send(name, link, control_frame(Hello(VERSION, "client", str(link))))
        durable = SubscribeRequest(1, "price < 500", durable="orders")
        self.send("c", DURABLE, control_frame(durable))
        self.send("c", LIVE, control_frame(SubscribeRequest(1, "price < 500")))

    def send(self, name: str, link: int, data: bytes) -> None:
        """Bytes of a client, and all that follows from them."""
        self._receive(name, link, data)
        self.run()

    def publish(self) -> None:
        header = PublishHeader(next(self._numbers), self.now_us, True)
        self.send("a", PUBLISHER, message_frame(header, b'{"price": 450}', b"body"))

    def run(self) -> None:
        """Until nothing happens any more. As a host does, a broker is asked once a turn."""
        for _ in range(_ROUNDS_MAX):
            if not self._busy:
                return
            self.at = name = min(self._busy)
            self._busy.remove(name)
            effects = self.brokers[name].take()
            for link, frames in effects.writes.items():
                self._carry(name, link, b"".join(frames))
            for job in effects.jobs:
                job.run()
                self.brokers[name].finished(job, self.now_us)
            if effects.has_more or effects.jobs:
                self._busy.add(name)
            if effects.commit is not None:
                self.at = name
                self.brokers[name].committed(effects.commit, self.now_us)
                self._busy.add(name)
        raise RuntimeError("the brokers do not come to rest")

    def _carry(self, name: str, link: int, data: bytes) -> None:
        if (name, link) in self._ends:
            self._receive(*self._ends[name, link], data)
            return
        for item in FrameReader().feed(data):
            if isinstance(item, MessageFrame) and isinstance(item.header, DeliverHeader):
                position = item.header.position
                self.walk.deliveries.append((link, position > 0))
                if position:
                    self._receive(name, link, control_frame(Acknowledge(1, (position,))))

    def _receive(self, name: str, link: int, data: bytes) -> None:
        self.at = name
        self._busy.add(name)
        self.brokers[name].receive(link, data, self.now_us)


def walk() -> Walk:
    """Send a durable message from a to c, after two others that warm everything up."""
    line = _BrokerLine()
    line.publish()
    line.publish()
    line.walk = counted = Walk()
    with _parses_counted(line), _calls_counted(counted):
        line.publish()
    return counted


@contextmanager
def _calls_counted(counted: Walk) -> Iterator[None]:
    last = ""

    def count_call(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal last
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(_PACKAGE) or path.startswith(_LAB):
            return
        place = path[len(_PACKAGE) + 1 :]
        counted.calls += 1
        counted.functions[f"{place} {frame.f_code.co_name}"] += 1
        counted.files[place] += 1
        counted.file_changes += place != last
        last = place

    sys.setprofile(count_call)
    try:
        yield
    finally:
        sys.setprofile(None)


@contextmanager
def _parses_counted(line: _BrokerLine) -> Iterator[None]:
    """Count where JSON is read: message by message, or by the kernels of a table."""
    from_json, match_json = Message.from_json, ForwardingTable.match_json

    def parse(text: str | bytes) -> Message:
        line.walk.parses[line.at] += 1
        return from_json(text)

    def match(table: ForwardingTable, messages: Any) -> Any:
        line.walk.parses[line.at] += len(messages)
        return match_json(table, messages)

    Message.from_json, ForwardingTable.match_json = parse, match  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        Message.from_json, ForwardingTable.match_json = from_json, match_json  # type: ignore[method-assign]


def main() -> None:
    counted = walk()
    print(
        f"{counted.calls} Python calls in {len(counted.functions)} functions of {len(counted.files)} "
        f"files, {counted.file_changes} changes of file"
    )
    parses = ", ".join(f"{name} {counted.parses[name]}" for name in NAMES)
    print(f"the attributes were parsed: {parses}")
    for place, calls in counted.files.most_common():
        print(f"{calls:6} {place}")


if __name__ == "__main__":
    main()
