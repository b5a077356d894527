"""The slots of the interest table: a number for each interface, by which answers name it.

A slot is free, in use, or retired: its interface is gone, but an answer that is still in use may
name it. The oldest retired slots become free first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from palio.routing.interest_buckets import Interface


class InterestSlots:
    """The numbers of interfaces, each with the kind that the owner of the table gives it: a bit."""

    def __init__(self, kind_of: Callable[[Any], int]) -> None:
        self.interfaces: list[Interface] = []
        self.kinds = np.zeros(64, np.uint8)
        self._kind_of = kind_of
        self.numbers: dict[Interface, int] = {}
        self._free: list[int] = []
        self._retired: deque[int] = deque()

    def get(self, interface: Interface) -> int | None:
        return self.numbers.get(interface)

    def assign(self, interface: Interface) -> int:
        slot = self._free.pop() if self._free else len(self.interfaces)
        if slot == len(self.interfaces):
            self.interfaces.append(interface)
            if slot == len(self.kinds):
                self.kinds = np.concatenate([self.kinds, np.zeros_like(self.kinds)])
        self.interfaces[slot] = interface
        self.kinds[slot] = self._kind_of(interface)
        self.numbers[interface] = slot
        return slot

    def retire(self, interface: Interface) -> None:
        self._retired.append(self.numbers.pop(interface))

    def reclaim_oldest(self) -> None:
        self._free.append(self._retired.popleft())
