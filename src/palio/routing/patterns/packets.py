"""What routers say to each other about patterns, beside the packets of routing/packets.py.

    subscriber's router                              router nearer to the sources
        Delegated(id, task, pattern)  ────────────▶
                                      ◀────────────  Assembled(id, compound)  whole, assemble
                                      ◀────────────  Publish                  sieve
        Withdrawn(id)                 ────────────▶

A delegation is named by whoever sends it, and lives until it is withdrawn or its sender leaves.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from palio.model.values import Value
from palio.routing.packets import Publish
from palio.routing.patterns.pattern import Pattern


class Task(StrEnum):
    """What the other router does with a pattern that it is given."""

    WHOLE = "whole"
    """Match all of it: a Monitor. Its compounds are what the subscriber gets."""
    ASSEMBLE = "assemble"
    """Match a part of a larger pattern: an Assembler. Its compounds go into a monitor."""
    SIEVE = "sieve"
    """Send only the messages that can matter: a Sieve."""


class Compound(msgspec.Struct, frozen=True, tag=True):
    """The messages of one instance of a pattern, in their order."""

    messages: tuple[Publish, ...]
    key: tuple[Value, ...] = ()
    """The values of the pattern's `same` attributes."""

    @property
    def start(self) -> int:
        """When its first message was published."""
        return self.messages[0].time

    @property
    def end(self) -> int:
        """When its last message was published."""
        return self.messages[-1].time


class Delegated(msgspec.Struct, frozen=True, tag=True):
    """Do this for me."""

    id: int
    task: Task
    pattern: Pattern


class Withdrawn(msgspec.Struct, frozen=True, tag=True):
    """I need that no more."""

    id: int


class Assembled(msgspec.Struct, frozen=True, tag=True):
    """What came out of a delegation."""

    id: int
    compound: Compound
