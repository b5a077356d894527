"""Palio: a content-based network for data.

Receivers declare predicates over typed attributes, senders publish messages without an address,
and each message reaches exactly those whose predicate it matches.

>>> import palio
>>> palio.parse("dest = 'MXP' AND price < 500").matches({"dest": "MXP", "price": 450})
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from palio.errors import InvalidPredicate, InvalidValue, LimitExceeded, PalioError, ParseError
from palio.model.advertisement import Advertisement
from palio.model.covering import covers, intersects
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Constraint, Filter, Predicate
from palio.model.reduction import reduce

if TYPE_CHECKING:
    from palio import dialects, topics
    from palio.matching.table import ForwardingTable
    from palio.net import blocking
    from palio.net.client import connect

__version__ = "0.1.0"

__all__ = [
    "Advertisement",
    "Constraint",
    "Filter",
    "ForwardingTable",
    "InvalidPredicate",
    "InvalidValue",
    "LimitExceeded",
    "Message",
    "PalioError",
    "ParseError",
    "Predicate",
    "blocking",
    "connect",
    "covers",
    "dialects",
    "intersects",
    "parse",
    "reduce",
    "topics",
]


def __getattr__(name: str) -> Any:
    """Load on first use what needs more than the model."""
    if name == "ForwardingTable":
        from palio.matching.table import ForwardingTable

        return ForwardingTable
    if name in ("dialects", "spark", "topics"):
        return import_module(f"palio.{name}")
    if name == "connect":
        from palio.net.client import connect

        return connect
    if name == "blocking":
        from palio.net import blocking

        return blocking
    raise AttributeError(f"module 'palio' has no attribute {name!r}")


def __dir__() -> list[str]:
    """For completion: also what is not loaded yet."""
    return sorted({*globals(), *__all__, "spark"})
