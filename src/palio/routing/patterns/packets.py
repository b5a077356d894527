"""What is said about patterns: by clients to their router, and by routers to each other.

    who watches: a client, or a router             a router, nearer to the sources
        Watch(id, pattern, task, lateness)  ─────▶
                                            ◀─────  Assembled(id, compound)     whole, assemble
                                            ◀─────  Sieved(id, publication)     sieve
        Unwatch(id)                         ─────▶

A watch is named by whoever sends it, and lives until it is taken back or its sender leaves. To
delegate a part of a pattern is to watch it at a neighbour; a client's watch is always `whole`.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from palio.errors import InvalidPattern
from palio.model.values import Value
from palio.routing.patterns.pattern import Pattern
from palio.routing.publication import Publish


class Task(StrEnum):
    """What a router does with a pattern that it is given."""

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


class Watch(msgspec.Struct, frozen=True, tag=True):
    """Tell me when this happens. The same id again, with something else, is a new watch."""

    id: int
    pattern: Pattern
    task: Task = Task.WHOLE
    lateness: int | None = None
    """For how many microseconds messages may be held to bring them into order; None: as the
    router thinks best."""

    def __post_init__(self) -> None:
        if (self.lateness or 0) < 0:
            raise InvalidPattern(f"lateness is 0 or more microseconds, not {self.lateness}")


class Unwatch(msgspec.Struct, frozen=True, tag=True):
    """I need that no more."""

    id: int


class Assembled(msgspec.Struct, frozen=True, tag=True):
    """It has happened: what came out of a watch."""

    id: int
    compound: Compound


class Sieved(msgspec.Struct, frozen=True, tag=True):
    """A message that may matter to a watch; it is for the one who watches, and goes no further."""

    id: int
    publication: Publish
