"""The state of one subscription, over all connections of its session.

    from a queue   the dedup window knows what the application has; acknowledgements make room
    live           allowed ──broker sends──▶ waiting ──application consumes──▶ owed ──Credit──▶ allowed

A durable subscription gets both: durable messages from its queue, and best-effort ones live.
`waiting + allowed` never exceeds the credit that was asked for, with one exception: a reconnect.
Then a subscription must ask for a credit of at least 1, and a durable one for its whole credit,
since that is the room for its queue too. No new credit is granted until the excess is consumed.
"""

from __future__ import annotations

import msgspec

from palio.protocol.client.dedup_window import PositionWindow
from palio.protocol.client.last_value_filter import LastValueFilter
from palio.protocol.wire import control
from palio.protocol.wire.headers import DeliverHeader

ACKNOWLEDGED_MAX = 8192
"""Positions of one Acknowledge."""


class SubscriptionState:
    __slots__ = (
        "_allowed",
        "_last_values",
        "_request",
        "_waiting",
        "_window",
        "confirmation",
        "is_deferred",
        "is_forgetting",
        "is_leaving",
    )

    def __init__(self, request: control.SubscribeRequest, window_size: int) -> None:
        self._request = request
        self._window = PositionWindow(window_size) if request.durable else None
        self._last_values = LastValueFilter() if request.last else None
        self._waiting = 0
        self._allowed = request.credit
        self.is_deferred = False
        """Not sent yet, because the broker has yet to forget a subscription of the same name."""
        self.is_leaving = False
        """The application has unsubscribed, and the broker has not confirmed it."""
        self.is_forgetting = False
        """Leaving, and the broker must forget the durable subscription too."""
        self.confirmation: control.Subscribed | None = None
        """The broker's last answer."""

    @property
    def is_durable(self) -> bool:
        return bool(self._request.durable)

    def has_queue_of(self, other: SubscriptionState) -> bool:
        """Whether two durable subscriptions are the same: name and group."""
        mine, theirs = self._request, other._request
        return (mine.durable, mine.group) == (theirs.durable, theirs.group)

    @property
    def survives_disconnect(self) -> bool:
        """Leaving, and a lost connection does not end it: the broker must be told to forget it."""
        return bool(self.is_forgetting and self._request.durable)

    @property
    def unacknowledged(self) -> int:
        return 0 if self._window is None else self._window.unacknowledged

    @property
    def is_due(self) -> bool:
        """There are acknowledgements or credit to tell the broker."""
        return self._is_credit_due or (self._window is not None and self._window.is_due)

    @property
    def _is_credit_due(self) -> bool:
        return self._owed * 2 >= self._request.credit

    @property
    def _owed(self) -> int:
        """How much more credit the broker may get."""
        return self._request.credit - self._waiting - self._allowed

    def is_new(self, header: DeliverHeader, payload: bytes = b"") -> bool:
        """Record a message that arrived. False: the application has had it."""
        if self._window is not None and header.position:
            return self._window.is_new(header.position, header.number)
        if self._last_values is not None and not self._last_values.is_new(header, payload):
            self._allowed -= 1  # and nobody consumes it
            return False
        self.receive_live()
        return True

    def receive_live(self) -> None:
        """Record a message or a compound that needs no acknowledgement."""
        self._waiting += 1
        self._allowed -= 1

    def consume(self, count: int) -> None:
        """The application has taken this many that need no acknowledgement."""
        self._waiting -= count

    def acknowledge(self, position: int) -> None:
        """The application has processed a message of the queue."""
        if self._window is not None:
            self._window.acknowledge(position)

    def nack(self, position: int) -> bool:
        """The application gives a message of the queue back. False: it does not have it."""
        return self._window is not None and self._window.forget(position)

    def take_due(self) -> list[control.Acknowledge | control.Credit]:
        """Hand over the acknowledgements and the credit that the broker must be told now."""
        due: list[control.Acknowledge | control.Credit] = []
        if self._window is not None and self._window.is_due:
            positions = self._window.take_due()
            for at in range(0, len(positions), ACKNOWLEDGED_MAX):
                part = positions[at : at + ACKNOWLEDGED_MAX]
                due.append(control.Acknowledge(self._request.id, part))
        if self._is_credit_due:
            due.append(control.Credit(self._request.id, self._owed))
            self._allowed += self._owed
        return due

    def request(self) -> control.SubscribeRequest:
        """The request for a new connection, with the credit that messages waiting here leave over."""
        if self._window is not None:
            self._allowed = self._request.credit
            return self._request
        self._allowed = max(1, self._request.credit - self._waiting)
        return msgspec.structs.replace(self._request, credit=self._allowed)
