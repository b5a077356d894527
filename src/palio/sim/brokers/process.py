"""A broker process: a shipped broker core, its disk, its connections, and the neighbours it dials.

It does what the real process does: it reads, lets the core decide, writes once a turn, commits one
batch at a time, and dials neighbours that are not linked.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias

from palio.protocol.broker.broker import Broker
from palio.protocol.broker.effects import BackgroundJob
from palio.protocol.broker.settings import Settings
from palio.protocol.wire.control import CloseCode
from palio.sim.brokers.core_view import is_dialling, linked_brokers
from palio.sim.kernel.disk import SimulatedDisk
from palio.sim.kernel.process import CrashMode, EventLoopProcess
from palio.sim.kernel.streams import ByteStream, StreamNetwork
from palio.sim.kernel.verdicts import Violation

COMMIT_US = (500, 8_000)
JOB_US = (100, 20_000)
SLOW_COMMIT_US = (20_000, 300_000)
SLOW_COMMIT_SHARE = 0.03
REDIAL_US = (100_000, 600_000)
CONGESTED_BYTES = 3_000
"""A connection with more unread bytes than this is congested."""
WAKES_MAX = 2_000
"""In a second: more is a loop."""
EXPECTED_CODES = frozenset(
    {CloseCode.SILENT, CloseCode.REPLACED, CloseCode.REMOTE, CloseCode.OVERLOAD}
)
"""Why a broker may close a connection here; everybody follows the protocol."""

MakeBroker: TypeAlias = Callable[
    [Settings, SimulatedDisk[bytes], int, Callable[[int], bytes]], Broker
]
"""Settings, store, the time, and a source of random bytes."""


class BrokerProcess(EventLoopProcess):
    def __init__(
        self,
        settings: Settings,
        network: StreamNetwork,
        random: Random,
        dials: tuple[str, ...],
        find: Callable[[str], BrokerProcess],
        make_broker: MakeBroker,
        note: Callable[[str], None] | None,
    ) -> None:
        super().__init__(settings.name, network, random)
        self.settings = settings
        self.disk: SimulatedDisk[bytes] = SimulatedDisk()
        self.core: Broker | None = None
        self.crashes = 0
        self._network = network
        self._dials = dials
        self._find = find
        self._make_broker = make_broker
        self._note = note
        self._connections = _Connections()
        self._wakes = (0, 0)  # which second, how many
        self._crashes_in_commit = False
        self._noted_links: list[str] = []

    @property
    def is_up(self) -> bool:
        return self.core is not None

    # ---- life

    def start(self) -> None:
        if self.core is None:
            random = self._random
            self.core = self._make_broker(
                self.settings, self.disk, self._clock.now_us, random.randbytes
            )
            self.plan_turn()
            for name in self._dials:
                self.after(random.randint(0, 50_000), self._dial, name)

    def restart(self) -> None:
        if self._crashes_in_commit:
            self._die(CrashMode.NOW)
        self.start()

    def crash(self, mode: CrashMode) -> None:
        """Crash. What was written before still arrives, unless the crash is silent."""
        if self.core is None:
            return
        self.crashes += 1
        if mode is CrashMode.IN_COMMIT:
            self._crashes_in_commit = True
        else:
            self._die(mode)

    def _die(self, mode: CrashMode) -> None:
        self._crashes_in_commit = False
        if self.core is None:
            return
        self.core = None
        self._end_life()
        for stream in self._connections.drop_all():
            if mode is CrashMode.SILENTLY:
                stream.cut(is_silent=True)
            stream.close(self)
        is_done = self._random.random() < 0.5
        if self._note is not None:
            commit = ("done" if is_done else "lost") if self.disk.is_committing else "none"
            self._note(f"{self.place} is down, commit under way: {commit}")
            self._noted_links = []
        self.disk.crash(is_done)

    # ---- connections

    def accept(self, stream: ByteStream) -> None:
        """Accept a connection; a frozen process does so when it thaws."""
        self.at_once(self._open, stream, None)

    def _open(self, stream: ByteStream, dials: str | None) -> None:
        assert self.core is not None
        number = self._connections.add(stream)
        self.core.open(number, self._clock.now_us, dials=dials)
        self.plan_turn()

    def received(self, stream: ByteStream, data: bytes) -> None:
        number = self._connections.number_of(stream)
        if self.core is None or number is None:  # it crashed before it could accept
            stream.close(self)
            return
        self.core.receive(number, data, self._clock.now_us)
        self.plan_turn()

    def disconnected(self, stream: ByteStream) -> None:
        number = self._connections.number_of(stream)
        if self.core is None or number is None:
            return
        self._connections.drop(number)
        self.core.close(number, self._clock.now_us)
        self.plan_turn()

    def _dial(self, name: str) -> None:
        """Dial a neighbour whenever it is not linked; repeats itself."""
        core, other = self.core, self._find(name)
        assert core is not None
        is_parted = self._network.is_partitioned(frozenset((self.place, name)))
        is_linked = name in linked_brokers(core) or is_dialling(core, name)
        if not is_linked and other.is_up and not is_parted:
            stream = self._network.connect(self, other)
            other.accept(stream)
            self._open(stream, name)
        self.after(self._random.randint(*REDIAL_US), self._dial, name)

    # ---- turns

    def wake(self) -> None:
        assert self.core is not None
        second, count = self._wakes
        now = self._clock.now_us // 1_000_000
        self._wakes = (now, count + 1 if now == second else 1)
        if self._wakes[1] > WAKES_MAX:
            raise Violation("restless", f"{self.place} wakes {WAKES_MAX} times in a second")
        self.core.wake(self._clock.now_us)
        self.turn()

    def turn(self) -> None:
        core, made_us = self.core, self._take_undone_us()
        assert core is not None
        for number, is_congested in self._connections.congestion_changes(self):
            core.congest(number, is_congested, self._clock.now_us)
        effects = core.take()
        for number, frames in effects.writes.items():
            stream = self._connections.get(number)
            if stream is not None:
                stream.write(self, b"".join(frames), made_us)
        for number, close in effects.closes:
            if close.code not in EXPECTED_CODES:
                raise Violation("refused", f"{self.place} closes a connection: {close.reason}")
            stream = self._connections.drop(number)
            if stream is not None:
                stream.close(self)
        if effects.commit is not None:
            self._commit(effects.commit)
        for job in effects.jobs:
            self.after(self._random.randint(*JOB_US), self._finish, job)
        if effects.has_more:
            self.plan_turn()
        self.set_timer(core.deadline_us)
        if self._note is not None:
            self._note_links(core, self._note)

    def _commit(self, ticket: int) -> None:
        assert not self.disk.is_committing, "one commit at a time"
        self.disk.begin()
        is_slow = self._crashes_in_commit or self._random.random() < SLOW_COMMIT_SHARE
        lasts_us = self._random.randint(*(SLOW_COMMIT_US if is_slow else COMMIT_US))
        self.after(lasts_us, self._committed, ticket)
        if self._crashes_in_commit:
            self.after(self._random.randrange(lasts_us), self._die, CrashMode.IN_COMMIT)

    def _committed(self, ticket: int) -> None:
        assert self.core is not None
        self.disk.end()
        self.core.committed(ticket, self._clock.now_us)
        self.plan_turn()

    def _finish(self, job: BackgroundJob[Any]) -> None:
        assert self.core is not None
        job.run()
        self.core.finished(job, self._clock.now_us)
        self.plan_turn()

    def _note_links(self, core: Broker, note: Callable[[str], None]) -> None:
        links, before = linked_brokers(core), self._noted_links
        if links != before:
            for name in [name for name in before if name not in links]:
                note(f"{self.place} has lost its link with {name}")
            for name in [name for name in links if name not in before]:
                note(f"{self.place} has a link with {name}")
            self._noted_links = links


class _Connections:
    """The connections of one broker process, by the numbers that its core knows them by."""

    def __init__(self) -> None:
        self._streams: dict[int, ByteStream] = {}
        self._numbers: dict[int, int] = {}  # of streams
        self._last = 0
        self._congested: set[int] = set()

    def add(self, stream: ByteStream) -> int:
        self._last += 1
        self._streams[self._last] = stream
        self._numbers[stream.number] = self._last
        return self._last

    def get(self, number: int) -> ByteStream | None:
        return self._streams.get(number)

    def number_of(self, stream: ByteStream) -> int | None:
        return self._numbers.get(stream.number)

    def drop(self, number: int) -> ByteStream | None:
        stream = self._streams.pop(number, None)
        if stream is not None:
            del self._numbers[stream.number]
        return stream

    def drop_all(self) -> list[ByteStream]:
        streams = list(self._streams.values())
        self._streams.clear()
        self._numbers.clear()
        self._congested.clear()
        return streams

    def congestion_changes(self, end: BrokerProcess) -> list[tuple[int, bool]]:
        """Connections that have become congested, or are no longer."""
        congested = {
            number
            for number, stream in self._streams.items()
            if stream.unread_bytes(end) > CONGESTED_BYTES
        }
        changed = sorted(congested ^ self._congested)
        self._congested = congested
        return [(number, number in congested) for number in changed]
