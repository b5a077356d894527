"""Advertisements: what a publisher says it may send (2000, 3.2).

The dual of a filter: every attribute of the message must be allowed by one of the constraints on
its name, and several constraints on one name are alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from palio.model.message import Message, as_message
from palio.model.predicate import Constraint


class Advertisement(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """A set of allowed attributes.

    >>> Advertisement((Constraint("what", "=", "alarm"), Constraint("user", "any")))
    Advertisement(what = 'alarm', user IS NOT NULL)
    """

    constraints: tuple[Constraint, ...]

    def matches(self, message: Message | Mapping[str, object]) -> bool:
        """May this publisher send the message?"""
        return all(
            any(c.name == name and c.matches(value) for c in self.constraints)
            for name, value in as_message(message).items()
        )

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self.constraints)

    def __repr__(self) -> str:
        return f"Advertisement({', '.join(map(str, self.constraints))})"
