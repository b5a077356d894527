"""The packets of patterns: from clients to their router, and between routers.

    the watcher: a client, or a router             a router, nearer to the sources
        Watch(id, pattern, task, lateness)  ─────▶
                                            ◀─────  Assembled(id, compound)     whole, assemble
                                            ◀─────  Sieved(id, publication)     sieve
        Unwatch(id)                         ─────▶

The sender of a watch chooses its id. The watch lasts until the sender removes it or leaves. A router
delegates a part of a pattern by watching it at a neighbour; a client's watch is always `whole`, what is
delegated is not. A neighbour's watch that comes again with another `within` around the pattern, or
another lateness, continues; any other difference begins a new one.
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
    """Match all of it: a Monitor, at the router of a client. Its compounds are what the client gets."""
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
    """Report the matches of this pattern. A different watch with the same id replaces it."""

    id: int
    pattern: Pattern
    task: Task = Task.WHOLE
    lateness: int | None = None
    """For how many microseconds messages may be held to bring them into order; None: the setting of
    the router."""

    def __post_init__(self) -> None:
        if (self.lateness or 0) < 0:
            raise InvalidPattern(f"lateness is 0 or more microseconds, not {self.lateness}")


class Unwatch(msgspec.Struct, frozen=True, tag=True):
    """Remove this watch."""

    id: int


class Assembled(msgspec.Struct, frozen=True, tag=True):
    """A match of a watched pattern."""

    id: int
    compound: Compound


class Sieved(msgspec.Struct, frozen=True, tag=True):
    """A message that may be in a match of a watched pattern. It is for the watcher only."""

    id: int
    publication: Publish
