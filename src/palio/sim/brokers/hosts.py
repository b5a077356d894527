"""A host: a real broker core, its disk, its wires, its timer, and who it dials.

It does what a process does: it reads, lets the core decide, writes once a turn, commits one batch
at a time, and dials neighbours that are not linked. It can be killed, started again and stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from palio.protocol.broker import Broker
from palio.protocol.settings import Settings
from palio.sim.brokers.disks import Disk
from palio.sim.brokers.sleeping import Sleeper
from palio.sim.brokers.wires import Network, Wire
from palio.sim.checkers import Violation

COMMIT_US = (500, 8_000)
SLOW_COMMIT_US = (20_000, 300_000)
REDIAL_US = (100_000, 600_000)
PRESSED_BYTES = 3_000
"""More than this on a wire is more than should wait there."""
WAKES_MAX = 2_000
"""In a second: more is a loop."""
EXPECTED = (
    "nothing was heard",
    "has a newer connection",
    "keeps the connection",
    "the other end said",
    "too many durable",
)
"""Why a broker may close a connection here; everybody speaks the protocol well."""


class Host(Sleeper):
    def __init__(
        self,
        settings: Settings,
        network: Network,
        random: Random,
        dials: tuple[str, ...],
        find: Callable[[str], Host],
    ) -> None:
        super().__init__(settings.name, network, random)
        self.settings = settings
        self.disk = Disk()
        self.core: Broker | None = None
        self._dials = dials
        self._find = find
        self._wires: dict[int, Wire] = {}
        self._links: dict[int, int] = {}  # of wires
        self._last_link = 0
        self._wakes = (0, 0)  # which second, how many
        self._is_doomed = False
        self._pressed: set[int] = set()

    @property
    def is_up(self) -> bool:
        return self.core is not None

    @property
    def connections(self) -> int:
        return len(self._wires)

    # ---- life

    def start(self) -> None:
        if self.core is None:
            random = self._random
            self.core = Broker(self.settings, self.disk, self._clock.now_us, random.randbytes)
            self.soon()
            for name in self._dials:
                self.after(random.randint(0, 50_000), partial(self._dial, name))

    def restart(self) -> None:
        if self._is_doomed:
            self.crash(is_silent=False)
        self.start()

    def doom(self) -> None:
        """Die in the middle of the next commit."""
        self._is_doomed = True

    def crash(self, is_silent: bool) -> None:
        """Lose the memory, and what was not committed. What was written arrives still, unless
        `is_silent`: then the power is gone too, and nobody hears of it."""
        self._is_doomed = False
        if self.core is None:
            return
        self.core = None
        self._die()
        for wire in list(self._wires.values()):
            if is_silent:
                wire.cut(is_silent=True)
            wire.close(self)
        self._wires.clear()
        self._links.clear()
        self._pressed.clear()
        self.disk.crash(self._random.random() < 0.5)

    # ---- wires

    def accept(self, wire: Wire) -> None:
        """Somebody has dialled. A host that sleeps notices when it wakes."""
        self._happen(self._life, lambda: self._open(wire, None))

    def _open(self, wire: Wire, dials: str | None) -> None:
        assert self.core is not None
        self._last_link += 1
        self._wires[self._last_link] = wire
        self._links[wire.number] = self._last_link
        self.core.open(self._last_link, self._clock.now_us, dials=dials)
        self.soon()

    def received(self, wire: Wire, data: bytes) -> None:
        link = self._links.get(wire.number)
        if self.core is None or link is None:  # it died before it could accept
            wire.close(self)
            return
        self.core.receive(link, data, self._clock.now_us)
        self.soon()

    def hung_up(self, wire: Wire) -> None:
        link = self._links.pop(wire.number, None)
        if self.core is None or link is None:
            return
        del self._wires[link]
        self.core.close(link, self._clock.now_us)
        self.soon()

    def _dial(self, name: str) -> None:
        """Now and then, for ever: call a neighbour that is not linked."""
        core, other = self.core, self._find(name)
        assert core is not None
        is_parted = self._network.is_parted(frozenset((self.place, name)))
        is_trying = any(link.dialled == name for link in core.links.values())
        if name not in core.neighbours.names and not is_trying and other.is_up and not is_parted:
            wire = self._network.join(self, other)
            other.accept(wire)
            self._open(wire, name)
        self.after(self._random.randint(*REDIAL_US), partial(self._dial, name))

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
        core = self.core
        assert core is not None
        self._press(core)
        effects = core.take()
        for link, frames in effects.writes.items():
            wire = self._wires.get(link)
            if wire is not None:
                wire.write(self, b"".join(frames))
        for link, reason in effects.closes:
            if not any(text in reason for text in EXPECTED):
                raise Violation("refused", f"{self.place} closes a connection: {reason}")
            wire = self._wires.pop(link, None)
            if wire is not None:
                del self._links[wire.number]
                wire.close(self)
        if effects.commit is not None:
            ticket = effects.commit
            self.disk.begin()
            is_slow = self._is_doomed or self._random.random() < 0.03
            lasts_us = self._random.randint(*(SLOW_COMMIT_US if is_slow else COMMIT_US))
            self.after(lasts_us, lambda: self._committed(ticket))
            if self._is_doomed:
                self.after(self._random.randrange(lasts_us), lambda: self.crash(is_silent=False))
        self.set_timer(core.deadline_us)

    def _press(self, core: Broker) -> None:
        """Tell the core where nobody reads what it writes."""
        pressed = {n for n, wire in self._wires.items() if wire.waiting(self) > PRESSED_BYTES}
        for link in sorted(pressed ^ self._pressed):
            core.press(link, link in pressed, self._clock.now_us)
        self._pressed = pressed

    def _committed(self, ticket: int) -> None:
        assert self.core is not None
        self.disk.end()
        self.core.committed(ticket, self._clock.now_us)
        self.soon()
