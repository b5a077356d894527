"""The network between routers: frames are delayed, lost, doubled, reordered, or cut off.

All randomness comes from one generator that is passed in, and is drawn in the order in which frames
are sent: the same frames meet the same fate.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from palio.errors import PalioError
from palio.protocol.links import Frame
from palio.routing.packets import Packet
from palio.sim.clock import Clock


class Weather(msgspec.Struct, frozen=True):
    """What happens to frames on their way. Shares are between 0 and 1."""

    delay_us_min: int = 500
    delay_us_max: int = 5_000
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    """The share of frames that take up to `reorder_us_max` longer, so that others overtake them."""
    reorder_us_max: int = 30_000

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate", "reorder"):
            share = getattr(self, name)
            if not 0 <= share < 1:
                raise PalioError(f"{name} is a share of frames, from 0 to below 1, not {share}")
        if not 1 <= self.delay_us_min <= self.delay_us_max:
            raise PalioError(
                f"a delay goes from at least 1 us to the most, "
                f"not from {self.delay_us_min} to {self.delay_us_max}"
            )


class Network:
    """Carries frames between ends that are named by their routers."""

    def __init__(self, clock: Clock, random: Random, weather: Weather) -> None:
        self._clock = clock
        self._random = random
        self._weather = weather
        self._cut: set[frozenset[str]] = set()
        self.arrive: Callable[[str, str, Frame[Packet]], None] = _nowhere
        """Called with sender, receiver and frame."""
        self.frames = 0

    def cut(self, a: str, b: str) -> None:
        self._cut.add(frozenset((a, b)))

    def heal(self, a: str, b: str) -> None:
        self._cut.discard(frozenset((a, b)))

    def heal_all(self) -> None:
        self._cut.clear()

    def send(self, sender: str, receiver: str, frame: Frame[Packet]) -> None:
        self.frames += 1
        weather, random = self._weather, self._random
        copies = 2 if weather.duplicate and random.random() < weather.duplicate else 1
        for _ in range(copies):
            if weather.loss and random.random() < weather.loss:
                continue
            span_us = weather.delay_us_max - weather.delay_us_min
            delay_us = weather.delay_us_min + int(random.random() * span_us)
            if weather.reorder and random.random() < weather.reorder:
                delay_us += int(random.random() * weather.reorder_us_max)
            self._clock.after(delay_us, self._arrive, sender, receiver, frame)

    def _arrive(self, sender: str, receiver: str, frame: Frame[Packet]) -> None:
        """A frame that arrives while the two are cut off is lost."""
        if self._cut and frozenset((sender, receiver)) in self._cut:
            return
        self.arrive(sender, receiver, frame)


def _nowhere(*_: Any) -> None:
    raise PalioError("the network leads nowhere: set `arrive`")
