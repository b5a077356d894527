"""Something that can be stopped for a while (SIGSTOP): its timers and turns run late."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from palio.sim.brokers.wires import Network


class Sleeper:
    """`life` grows when it dies: what was planned before does not happen any more."""

    def __init__(self, place: str, network: Network, random: Random) -> None:
        self._place = place
        self._network = network
        self._clock = network.clock
        self._random = random
        self._is_frozen = False
        self._late: list[tuple[int, Callable[[], None]]] = []
        self._life = 0
        self._timer_us: int | None = None
        self._has_turn = False

    @property
    def place(self) -> str:
        return self._place

    @property
    def is_awake(self) -> bool:
        return not self._is_frozen

    def freeze(self) -> None:
        self._is_frozen = True

    def thaw(self) -> None:
        if not self._is_frozen:
            return
        self._is_frozen = False
        late, self._late = self._late, []
        for life, action in late:
            self._happen(life, action)
        self._network.woke(self._place)

    def after(self, delay_us: int, action: Callable[[], None]) -> None:
        """Plan something of this life."""
        self._clock.after(delay_us, self._happen, self._life, action)

    def _happen(self, life: int, action: Callable[[], None]) -> None:
        if life != self._life:
            return
        if self._is_frozen:
            self._late.append((life, action))
        else:
            action()

    def _die(self) -> None:
        self._life += 1
        self._late.clear()
        self._is_frozen = False
        self._timer_us = None
        self._has_turn = False

    # ---- turns and timers

    def soon(self) -> None:
        """There will be a turn, for all that happens until then."""
        if not self._has_turn:
            self._has_turn = True
            self.after(self._random.choice((0, 50, 1_000)), self._begin_turn)

    def _begin_turn(self) -> None:
        self._has_turn = False
        self.turn()

    def turn(self) -> None:
        raise NotImplementedError

    def wake(self) -> None:
        raise NotImplementedError

    def set_timer(self, at_us: int | None) -> None:
        """Wake at this time; an earlier plan is void."""
        if at_us == self._timer_us:
            return
        self._timer_us = at_us
        if at_us is not None:
            self.after(max(1, at_us - self._clock.now_us), lambda: self._ring(at_us))

    def _ring(self, at_us: int) -> None:
        if at_us == self._timer_us:
            self._timer_us = None
            self.wake()
