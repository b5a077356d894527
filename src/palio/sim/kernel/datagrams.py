"""A network of datagrams: they are delayed, lost, doubled, reordered, or lost in a partition."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from palio.errors import PalioError
from palio.sim.kernel.clock import VirtualClock
from palio.sim.kernel.network import SimulatedNetwork


class DatagramFaults(msgspec.Struct, frozen=True):
    """The faults of a datagram network. Shares are between 0 and 1."""

    delay_us_min: int = 500
    delay_us_max: int = 5_000
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    """The share that takes up to `reorder_us_max` longer, so that others overtake."""
    reorder_us_max: int = 30_000

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate", "reorder"):
            share = getattr(self, name)
            if not 0 <= share < 1:
                raise PalioError(f"{name} is a share of datagrams, from 0 to below 1, not {share}")
        if not 1 <= self.delay_us_min <= self.delay_us_max:
            raise PalioError(
                f"a delay goes from at least 1 us to the most, "
                f"not from {self.delay_us_min} to {self.delay_us_max}"
            )


class DatagramNetwork(SimulatedNetwork):
    """Carries datagrams between places. A partition loses those that arrive while it lasts."""

    def __init__(self, clock: VirtualClock, random: Random, faults: DatagramFaults) -> None:
        super().__init__(clock, random)
        self._faults = faults
        self.arrive: Callable[[str, str, Any], None] = _nowhere
        """Called with sender, receiver and datagram."""
        self.sent = 0

    def send(self, sender: str, receiver: str, datagram: object) -> None:
        self.sent += 1
        faults, random = self._faults, self.random
        copies = 2 if faults.duplicate and random.random() < faults.duplicate else 1
        for _ in range(copies):
            if faults.loss and random.random() < faults.loss:
                continue
            span_us = faults.delay_us_max - faults.delay_us_min
            delay_us = faults.delay_us_min + int(random.random() * span_us)
            if faults.reorder and random.random() < faults.reorder:
                delay_us += int(random.random() * faults.reorder_us_max)
            self.clock.after(delay_us, self._arrive, sender, receiver, datagram)

    def _arrive(self, sender: str, receiver: str, datagram: object) -> None:
        if self._partitions and frozenset((sender, receiver)) in self._partitions:
            return
        self.arrive(sender, receiver, datagram)


def _nowhere(*_: Any) -> None:
    raise PalioError("the network leads nowhere: set `arrive`")
