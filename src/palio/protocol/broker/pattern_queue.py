"""Messages and answers of neighbours on their way to the patterns, in the order in which they came.

    data path ─▶ observe ─┐
    neighbours ─▶ hear ───┴─▶ as much as a turn may ─▶ router ─▶ occurrences
                              the rest waits         ─▶ slices ─▶ the same

A message costs something for each watch that wants it, and one read may bring thousands of messages.
So a turn does a part; the rest waits, and is done in slices (scheduler.py). As long as a turn can do all,
nothing waits, and everything happens as if there were no queue.

What waits keeps its order, so each watch gets the same as without a queue. A watch that begins meanwhile
gets nothing of it; nor does one that ends, whose client has no use for it. Time does not advance for
patterns while something waits.

What waits is bounded in bytes. Beyond that the oldest is dropped and counted: nobody waits for patterns,
as nobody waits for live subscriptions. It takes thousands of messages, each for hundreds of watches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from palio.errors import InvalidValue, PalioError
from palio.protocol.broker.effects import Output
from palio.protocol.broker.failure import BrokerFailed
from palio.protocol.broker.router_port import RouterPort
from palio.protocol.broker.scheduler import SLICE_UNITS, Slices, WorkList
from palio.protocol.wire.batch import MessageBatch
from palio.routing.packets import Publish
from palio.routing.patterns.packets import Assembled, Sieved

WAITING_BYTES_MAX = 16 << 20
"""Of messages that wait for the patterns."""
EFFORT_PER_UNIT = 40
"""Of routers, for one unit of the scheduler."""


class _Arrival:
    """Messages, or an answer, that came from a neighbour, or (None) from clients."""

    __slots__ = ("batch", "begun", "bytes", "came_from", "packet")

    def __init__(self, came_from: str | None, begun: int) -> None:
        self.came_from, self.begun = came_from, begun
        self.batch: MessageBatch | None = None
        self.packet: Assembled | Sieved | None = None
        self.bytes = 0

    def __len__(self) -> int:
        """The number of messages."""
        return 1 if self.batch is None else self.batch.count


class PatternQueue:
    def __init__(self, port: RouterPort, output: Output, work: WorkList, *, defers: bool) -> None:
        self._port, self._output, self._work, self._defers = port, output, work, defers
        self._left: float = SLICE_UNITS  # of what this turn may do at once
        self.has_worked = False
        """Whether `end_turn` must be called."""
        self._waiting: deque[_Arrival] = deque()
        self._steps: Iterator[int] | None = None  # of what is under way
        self.bytes = 0
        """Of what waits."""
        self.dropped = 0
        """Messages and answers that were dropped because too much waited."""
        self.misread = 0
        """Messages that kernels could read and Python could not."""

    @property
    def is_busy(self) -> bool:
        """Whether anything waits."""
        return self._steps is not None

    def observe(self, came_from: str | None, batch: MessageBatch) -> None:
        """Pass messages to the patterns."""
        arrival = _Arrival(came_from, self._port.router.watches.begun)
        arrival.batch = batch
        self._add(arrival)

    def hear(self, neighbour: str, packet: Assembled | Sieved) -> None:
        """Pass the answer of a neighbour to the patterns; raises RoutingError if it is wrong."""
        arrival = _Arrival(neighbour, self._port.router.watches.begun)
        self._port.hearing(neighbour, packet, arrival.begun)  # to check it
        arrival.packet = packet
        self._add(arrival)

    def end_turn(self) -> None:
        """A new turn begins."""
        self._left, self.has_worked = SLICE_UNITS, False

    # ---- what waits

    def _add(self, arrival: _Arrival) -> None:
        self._waiting.append(arrival)
        self.has_worked = True
        if self._steps is not None:
            self._keep(arrival)
            return
        self._steps = self._all_steps()
        self._left = self._work_off(self._left)
        if self._steps is not None:
            self._keep(arrival)
            self._work.add(self._slices())

    def _keep(self, arrival: _Arrival) -> None:
        """An arrival waits: keep its bytes only, and drop the oldest that wait if they are too many."""
        if arrival.batch is not None:
            arrival.bytes = sum(arrival.batch.sizes())
            if self._waiting:  # else its messages are under way
                is_small = len(arrival.batch.data) > 2 * arrival.bytes  # in what it came with
                kept = arrival.batch.compact() if is_small else arrival.batch
                arrival.batch = _unparsed(kept)
        elif arrival.packet is not None:
            arrival.bytes = _packet_bytes(arrival.packet)
        self.bytes += arrival.bytes
        while self.bytes > WAITING_BYTES_MAX and len(self._waiting) > 1:
            oldest = self._waiting.popleft()
            self.bytes -= oldest.bytes
            self.dropped += len(oldest)

    def _slices(self) -> Slices:
        try:
            while self._steps is not None:
                left = self._work_off(SLICE_UNITS)
                yield int(-left) if left < 0 else None
        except PalioError as error:  # as in DataPath.flush: nobody is to blame
            raise BrokerFailed(f"messages for patterns were not processed: {error}") from error

    def _work_off(self, units: float) -> float:
        """Take steps for so many units, or all, if this broker does not defer; returns what is left."""
        assert self._steps is not None
        while units > 0 or not self._defers:
            effort = next(self._steps, None)
            if effort is None:
                self._steps = None
                break
            units -= effort / EFFORT_PER_UNIT
        return units

    def _all_steps(self) -> Iterator[int]:
        while self._waiting:
            arrival = self._waiting.popleft()
            if arrival.batch is not None:
                yield from self._observe(arrival, arrival.batch)
            elif arrival.packet is not None:
                assert arrival.came_from is not None
                yield from self._port.hearing(arrival.came_from, arrival.packet, arrival.begun)
            self.bytes -= arrival.bytes

    def _observe(self, arrival: _Arrival, batch: MessageBatch) -> Iterator[int]:
        for row in range(batch.count):
            try:
                message = batch.message(row)
            except InvalidValue as error:  # kernels have read it (admission.py)
                self.misread += 1
                self._output.report(
                    f"readers of attributes do not agree on a message: {error}"[:300]
                )
                continue
            packet = Publish(message, batch.publisher(row), batch.number(row), batch.time(row))
            yield from self._port.observing(arrival.came_from, packet, arrival.begun)


def _unparsed(batch: MessageBatch) -> MessageBatch:
    """The same messages as bytes only: parsed ones take several times as much."""
    return MessageBatch(batch.data, batch.names, batch.rows, batch.durable)


def _packet_bytes(packet: Assembled | Sieved) -> int:
    parts = packet.compound.messages if isinstance(packet, Assembled) else (packet.publication,)
    return sum(one.message.memory_bytes for one in parts)
