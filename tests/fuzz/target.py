"""A target: draws cases from a seed, and checks them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from random import Random
from typing import ClassVar

from tests.fuzz.findings import Finding, failure_of, shrink


class Target(ABC):
    name: ClassVar[str]
    goal: ClassVar[int]
    """How many cases of it are searched, over as many runs as that takes."""
    chunk: ClassVar[int]

    def run(self, seed: int) -> int:
        """Check a chunk of cases; how many these were. Raises a Finding."""
        random = Random(f"{self.name} {seed}")
        for _ in range(self.chunk):
            self.check_small(self.draw(random))
        return self.chunk

    def check_small(self, case: list[bytes]) -> None:
        """Check a case; one that fails is made smaller."""
        error = failure_of(self.check, case)
        if error is not None:
            small = shrink(case, self.check)
            error = failure_of(self.check, small) or error
            raise Finding(f"{type(error).__name__}: {error}", small) from error

    @abstractmethod
    def draw(self, random: Random) -> list[bytes]:
        """A case."""

    @abstractmethod
    def check(self, case: list[bytes]) -> object:
        """Raises what must not be raised."""
