"""The simulator's disk, with what tests of the protocol ask of it."""

from __future__ import annotations

from palio.sim.kernel.disk import SimulatedDisk


class MemoryStore(SimulatedDisk[bytes]):
    def __init__(self) -> None:
        super().__init__()
        self.puts = 0

    def put(self, key: str, value: bytes) -> None:
        self.puts += 1
        super().put(key, value)

    def commit(self) -> None:
        self.begin()
        self.end()

    def crash(self, is_done: bool = False) -> None:
        super().crash(is_done)
