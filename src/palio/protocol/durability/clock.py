"""The time of the current call of a message store; time comes in from outside."""

from __future__ import annotations


class StoreClock:
    __slots__ = ("now_us",)

    def __init__(self, now_us: int) -> None:
        self.now_us = now_us
