"""How many bytes of predicates clients may have here: each of them, each identity, and all together.

    live subscriptions, patterns   count for their client, while it is connected
    durable subscriptions          count for their identity, until they are ended

Filters of live and durable subscriptions are announced to other brokers, so these bounds are also those of
a link state: it stays below `STATE_BYTES_MAX` (policies/state_parts.py), which other brokers accept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from palio.errors import LimitExceeded
from palio.model.predicate import Filter
from palio.protocol.broker.expression_budget import ExpressionBudget
from palio.protocol.broker.settings import SubscriptionBounds
from palio.protocol.wire.codes import RefusalCode
from palio.protocol.wire.parts import TEXT_BYTES_MAX, text_bytes
from palio.protocol.wire.refusals import RequestRefused

BROKER_BYTES_MAX = 256 << 20
"""Of all predicates at a broker; the same everywhere, because other brokers must take them."""
_FILTER_BYTES = 64
"""Of a filter, besides its text."""


class TextBudget:
    """An owner is a link (of a client) or the name of an identity."""

    def __init__(self, bounds: SubscriptionBounds) -> None:
        self._bounds = bounds
        self._used: dict[int | str, int] = {}
        self._total = 0
        self.expressions = ExpressionBudget(bounds)

    def check(self, owner: int | str, size: int) -> None:
        """Raise RequestRefused if an owner has no room for so many bytes."""
        used, own_max = self._used.get(owner, 0), self._bounds.predicates_bytes_max
        all_max = BROKER_BYTES_MAX
        if used + size > own_max:
            who = "this client" if isinstance(owner, int) else f"the identity {owner!r}"
            raise RequestRefused(
                RefusalCode.LIMIT,
                f"the predicates of {who} have {used:,} bytes, and this one {size:,}; "
                f"this broker takes {own_max:,}",
                remedy="end subscriptions that nobody needs",
            )
        if self._total + size > all_max:
            raise RequestRefused(
                RefusalCode.LIMIT,
                f"the predicates of all subscriptions at this broker have {self._total:,} bytes, and "
                f"this one {size:,}; a broker takes {all_max:,}",
                remedy="subscribe at another broker",
            )

    def add(self, owner: int | str, size: int) -> None:
        self._used[owner] = self._used.get(owner, 0) + size
        self._total += size

    def remove(self, owner: int | str, size: int) -> None:
        self.add(owner, -size)
        if not self._used[owner]:
            del self._used[owner]


def predicate_bytes(filters: Iterable[Filter]) -> int:
    """The bytes of a predicate in its normal form, as they count."""
    return sum([_FILTER_BYTES + text_bytes(str(found)) for found in filters])


def sendable_bytes(filters: Sequence[Filter]) -> int:
    """The same. Raises LimitExceeded if the predicate is too large to be sent to other brokers."""
    size = predicate_bytes(filters)
    text = size - _FILTER_BYTES * len(filters)
    if text > TEXT_BYTES_MAX:
        raise LimitExceeded(
            f"the predicate has {text:,} bytes in its normal form; brokers take {TEXT_BYTES_MAX:,}: "
            "use several subscriptions"
        )
    return size
