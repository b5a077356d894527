"""The options of a queue: what a client may ask for, and what the operator allows.

The operator's options are the default, and a ceiling: a client may ask for what is no worse for others,
and otherwise it is refused. What a subscription has stays, until it is forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

from palio.protocol.durability.administration import QueueStatus
from palio.protocol.wire.codes import Full, RefusalCode, parse_full
from palio.protocol.wire.control import SubscribeRequest
from palio.protocol.wire.refusals import RequestRefused


class QueueOptions(NamedTuple):
    full: Full | None = None
    """What the queue does when it is full; None: as the operator says."""
    deliveries_max: int = 0
    """After so many deliveries a message is a dead letter; 0: as the operator says, or never."""

    def asked(self, request: SubscribeRequest) -> QueueOptions:
        """What a client asks for, where these are the operator's; raises if it may not."""
        return QueueOptions(
            _allowed_full(parse_full(request.full), self.full or Full.BLOCK),
            _allowed_deliveries(request.deliveries_max, self.deliveries_max),
        )

    def within(self, ceiling: QueueOptions) -> QueueOptions:
        """Of a new subscription. The ceiling of deliveries counts when the queue is opened, each time."""
        return self._replace(full=self.full or ceiling.full)

    def check(self, durable: str, status: QueueStatus) -> None:
        """Raise unless a subscription that exists has what is asked for."""
        for name, asked, found in (
            ("full", self.full, status.full),
            ("deliveries_max", self.deliveries_max, status.deliveries_max),
        ):
            if asked and asked != found:
                raise RequestRefused(
                    RefusalCode.CONFLICT,
                    f"the durable subscription {durable!r} has {name} = {_shown(found)}, not "
                    f"{_shown(asked)}",
                    remedy=f"subscribe without `{name}`, unsubscribe it with forget first, or choose "
                    "another name",
                )


def _shown(value: Full | int) -> str:
    return repr(value.value) if isinstance(value, Full) else str(value)


def _allowed_full(full: Full | None, ceiling: Full) -> Full | None:
    if full is not None and full.within(ceiling) is not full:
        raise RequestRefused(
            RefusalCode.DENIED,
            "this broker lets no durable subscription block publishers: its configuration has "
            f"[queues] full = {ceiling.value!r}",
            remedy="subscribe without `full`, or with full = 'drop' or 'end'; or ask the operator "
            "for full = 'block'",
        )
    return full


def _allowed_deliveries(deliveries: int, ceiling: int) -> int:
    if ceiling and deliveries > ceiling:
        raise RequestRefused(
            RefusalCode.DENIED,
            f"this broker delivers a message at most {ceiling} times: its configuration has "
            f"[queues] deliveries = {ceiling}",
            remedy=f"subscribe without `deliveries_max`, or with at most {ceiling}",
        )
    return deliveries
