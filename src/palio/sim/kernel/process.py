"""A simulated process: it starts, crashes, and can be frozen for a while (SIGSTOP).

What a process plans belongs to its current life: a crash cancels it, a freeze delays it. `EventLoopProcess` adds what a process with an event loop has: turns, each for all that happened
since the last one, and one timer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import StrEnum
from random import Random
from typing import Any

from palio.errors import PalioError
from palio.sim.kernel.network import SimulatedNetwork

TURN_US = (0, 50, 1_000)


class CrashMode(StrEnum):
    NOW = "now"
    SILENTLY = "silently"
    """Power loss: the other ends of connections do not notice."""
    IN_COMMIT = "in-commit"
    """In the middle of the next commit."""


class SimulatedProcess:
    """Each crash begins a new life: what was planned before is cancelled."""

    def __init__(self, place: str, network: SimulatedNetwork) -> None:
        self._place = place
        self._net = network
        self._clock = network.clock
        self._is_frozen = False
        self._delayed: list[tuple[int, Callable[..., None], tuple[Any, ...]]] = []
        self._life = 0

    @property
    def place(self) -> str:
        return self._place

    @property
    def is_awake(self) -> bool:
        return not self._is_frozen

    def restart(self) -> None:
        """Start again if it is down; a process that cannot crash does nothing."""

    def crash(self, mode: CrashMode) -> None:
        """Lose the memory, and what was not committed."""
        raise PalioError(f"{self._place} is no process that can crash")

    def freeze(self) -> None:
        self._is_frozen = True

    def thaw(self) -> None:
        if not self._is_frozen:
            return
        self._is_frozen = False
        delayed, self._delayed = self._delayed, []
        for life, action, arguments in delayed:
            self._happen(life, action, arguments)
        self._net.resumed(self._place)

    def after(self, delay_us: int, action: Callable[..., None], *arguments: Any) -> None:
        """Plan something in this life."""
        self._clock.after(delay_us, self._happen, self._life, action, arguments)

    def at_once(self, action: Callable[..., None], *arguments: Any) -> None:
        """Do something now, or when the process thaws."""
        self._happen(self._life, action, arguments)

    def _happen(self, life: int, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if life != self._life:
            return
        if self._is_frozen:
            self._delayed.append((life, action, arguments))
        else:
            action(*arguments)

    def _end_life(self) -> None:
        self._life += 1
        self._delayed.clear()
        self._is_frozen = False


class EventLoopProcess(SimulatedProcess, ABC):
    """A process with turns and one timer."""

    def __init__(self, place: str, network: SimulatedNetwork, random: Random) -> None:
        super().__init__(place, network)
        self._random = random
        self._timer_us: int | None = None
        self._has_turn = False
        self._undone_us: int | None = None
        """Since when there is something that the next turn deals with."""

    @abstractmethod
    def turn(self) -> None:
        """Write what is to be written, and set the timer."""

    @abstractmethod
    def wake(self) -> None:
        """The timer has expired."""

    def plan_turn(self) -> None:
        """Plan one turn for everything that happens before it."""
        if self._undone_us is None:
            self._undone_us = self._clock.now_us
        if not self._has_turn:
            self._has_turn = True
            self.after(self._random.choice(TURN_US), self._begin_turn)

    def _begin_turn(self) -> None:
        self._has_turn = False
        self.turn()

    def _take_undone_us(self) -> int:
        """A turn begins: when the first thing happened that it deals with. It was long ago if the process
        was frozen since."""
        found, self._undone_us = self._undone_us, None
        return self._clock.now_us if found is None else found

    def set_timer(self, at_us: int | None) -> None:
        """Wake at this time; an earlier plan is void."""
        if at_us == self._timer_us:
            return
        self._timer_us = at_us
        if at_us is not None:
            self.after(max(1, at_us - self._clock.now_us), self._expire, at_us)

    def _expire(self, at_us: int) -> None:
        if at_us == self._timer_us:
            self._timer_us = None
            self.wake()

    def _end_life(self) -> None:
        super()._end_life()
        self._timer_us = None
        self._has_turn = False
        self._undone_us = None
