"""Wires: connections as reliable, ordered streams of bytes, until something happens to them.

    write ──▶ pieces, cut anywhere ──(each after a delay, none before an earlier one)──▶ received
    close ──▶ the other end hears it after all that was written

    cut       both ends hear of it after a while; what was under way is lost
    silence   nobody hears anything ever again; what was under way is lost
    part      two places cannot reach each other: all waits on the way, and goes on when they join
    an end that sleeps takes nothing until it wakes

All randomness comes from one generator, drawn in the order in which bytes are written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Protocol

from palio.sim.clock import Clock

DELAY_US = (100, 6_000)
NOTICE_US = (500, 200_000)
"""How long it takes to hear of a cut."""
_END = b""


class Plug(Protocol):
    """What is at an end of a wire: a broker's host, or an application."""

    @property
    def place(self) -> str: ...

    @property
    def is_awake(self) -> bool: ...

    def received(self, wire: Wire, data: bytes) -> None: ...

    def hung_up(self, wire: Wire) -> None:
        """The other end has closed, or the wire was cut."""
        ...


class Wire:
    """A connection of two plugs; `0` is the one that dialled."""

    def __init__(self, network: Network, number: int, plugs: tuple[Plug, Plug]) -> None:
        self.number = number
        self.plugs = plugs
        self._network = network
        self._is_broken = False
        self._is_open = [True, True]
        self._under_way: tuple[deque[tuple[int, bytes]], ...] = (deque(), deque())  # to each plug

    @property
    def places(self) -> frozenset[str]:
        return frozenset(plug.place for plug in self.plugs)

    @property
    def is_gone(self) -> bool:
        """Nobody holds an end of it any more."""
        return not any(self._is_open)

    def write(self, plug: Plug, data: bytes) -> None:
        if self._is_open[self._side(plug)] and data:
            for piece in self._network.pieces(data):
                self._send(1 - self._side(plug), piece, DELAY_US)

    def close(self, plug: Plug) -> None:
        """Let go of one end."""
        side = self._side(plug)
        if self._is_open[side]:
            self._drop(side)
            self._send(1 - side, _END, DELAY_US)

    def waiting(self, plug: Plug) -> int:
        """Bytes that this plug has written and that the other has not read."""
        return sum(len(piece) for _, piece in self._under_way[1 - self._side(plug)])

    def cut(self, is_silent: bool) -> None:
        if self._is_broken:
            return
        for side in (0, 1):
            self._under_way[side].clear()
            if not is_silent:
                self._send(side, _END, NOTICE_US)
        self._is_broken = True

    def pump(self, side: int) -> None:
        """Hand over what has arrived, as far as the end can take it."""
        plug, waiting = self.plugs[side], self._under_way[side]
        while waiting and waiting[0][0] <= self._network.clock.now_us and self._is_open[side]:
            if not plug.is_awake or self._network.is_parted(self.places):
                return
            piece = waiting.popleft()[1]
            self._network.saw(self.number, side, piece)
            if piece:
                plug.received(self, piece)
            else:
                self._drop(side)
                plug.hung_up(self)

    def _send(self, side: int, piece: bytes, span_us: tuple[int, int]) -> None:
        if self._is_broken or not self._is_open[side]:
            return
        clock, waiting = self._network.clock, self._under_way[side]
        at_us = clock.now_us + self._network.random.randint(*span_us)
        if waiting:
            at_us = max(at_us, waiting[-1][0])
        waiting.append((at_us, piece))
        clock.after(at_us - clock.now_us, self.pump, side)

    def _drop(self, side: int) -> None:
        self._is_open[side] = False
        self._under_way[side].clear()
        self._network.forget_if_gone(self)

    def _side(self, plug: Plug) -> int:
        return 0 if plug is self.plugs[0] else 1


class Network:
    """All wires. `saw` hears every piece that is handed over."""

    def __init__(
        self, clock: Clock, random: Random, saw: Callable[[int, int, bytes], None]
    ) -> None:
        self.clock = clock
        self.random = random
        self.saw = saw
        self._wires: dict[int, Wire] = {}
        self._made = 0
        self._parted: set[frozenset[str]] = set()

    def join(self, dialler: Plug, other: Plug) -> Wire:
        self._made += 1
        wire = self._wires[self._made] = Wire(self, self._made, (dialler, other))
        return wire

    def wires(self, places: frozenset[str]) -> list[Wire]:
        """Those between two places."""
        return [wire for wire in self._wires.values() if wire.places == places]

    def forget_if_gone(self, wire: Wire) -> None:
        if wire.is_gone:
            self._wires.pop(wire.number, None)

    # ---- faults

    def is_parted(self, places: frozenset[str]) -> bool:
        return places in self._parted

    def part(self, places: frozenset[str]) -> None:
        self._parted.add(places)

    def rejoin(self, places: frozenset[str]) -> None:
        self._parted.discard(places)
        for wire in self.wires(places):
            self._go_on(wire)

    def rejoin_all(self) -> None:
        for places in sorted(self._parted, key=sorted):
            self.rejoin(places)

    def woke(self, place: str) -> None:
        """An end can take again what has arrived."""
        for wire in list(self._wires.values()):
            if place in wire.places:
                self._go_on(wire)

    def _go_on(self, wire: Wire) -> None:
        for side in (0, 1):
            self.clock.after(self.random.randint(*DELAY_US), wire.pump, side)

    def pieces(self, data: bytes) -> list[bytes]:
        """Cut somewhere, or nowhere."""
        random = self.random
        places = random.choice((0, 0, 0, 1, 2, 5))
        cuts = (
            sorted({random.randrange(1, len(data)) for _ in range(places)}) if len(data) > 1 else []
        )
        return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
