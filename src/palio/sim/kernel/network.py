"""What all simulated networks have: a clock, seeded randomness, and partitions of two places.

All randomness comes from one generator, in the order of the sends: the same sends get the same delays
and faults.
"""

from __future__ import annotations

from random import Random

from palio.sim.kernel.clock import VirtualClock


class SimulatedNetwork:
    """A network whose places can be cut off from each other."""

    def __init__(self, clock: VirtualClock, random: Random) -> None:
        self.clock = clock
        self.random = random
        self._partitions: set[frozenset[str]] = set()

    def is_partitioned(self, places: frozenset[str]) -> bool:
        return places in self._partitions

    def partition(self, a: str, b: str) -> None:
        """Nothing passes between these two from now on."""
        self._partitions.add(frozenset((a, b)))

    def heal(self, a: str, b: str) -> None:
        self._partitions.discard(frozenset((a, b)))

    def heal_all(self) -> None:
        for a, b in sorted(map(sorted, self._partitions)):
            self.heal(a, b)

    def break_connections(self, a: str, b: str, *, is_silent: bool) -> None:
        """End all connections of two places; `is_silent`: neither end notices. Datagrams have
        no connections."""

    def resumed(self, place: str) -> None:
        """A process that was frozen can receive again."""
