"""A branch that items are forwarded to, and which items these are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic

from palio.routing.item_order import T


@dataclass(slots=True)
class BranchLink(Generic[T]):
    met: set[T] | None
    """The items that the peer wants, shared by its branches; None: all."""
    forwarded: dict[T, None] = field(default_factory=dict)
    news: dict[T, bool] | None = None
    """Changes of `forwarded`, for a follower."""
