"""What a broker holds to route messages, as operators see it and as link states carry it."""

from __future__ import annotations

import msgspec

from palio.protocol.wire.structs import Number


class RoutingMemory(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the interest table of a broker has for other brokers, and what it keeps besides to make
    that table anew. Bytes are those of the model in routing/schemes/memory.py."""

    scheme: str = ""
    """The routing policy."""
    predicates: Number = 0
    """Entries of the scheme: reduced disjunctions."""
    filters: Number = 0
    constraints: Number = 0
    bytes: Number = 0
    formula_constraints: Number = 0
    """By the paper's formula with alpha = 1: every entry has the predicates of all of its brokers."""
    formula_bytes: Number = 0
    database_bytes: Number = 0
    """Of the predicates in the link-state database, as text."""
