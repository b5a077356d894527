"""All subscriptions of a session: made, ended, and stated anew on each connection.

Acknowledgements and credit gather per subscription until `flush`. A subscription that was ended
here receives nothing more, whatever the broker still sends before it has heard of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from palio.errors import InvalidValue
from palio.protocol.client.events import Arrival, SessionEvent
from palio.protocol.client.send_buffer import SendBuffer
from palio.protocol.client.subscription_state import SubscriptionState
from palio.protocol.wire import control
from palio.protocol.wire.frames import MessageFrame
from palio.protocol.wire.headers import DeliverHeader
from palio.protocol.wire.parts import check_request

CREDIT_MAX = 1 << 30
WINDOW_PER_CREDIT = 4
"""A dedup window remembers at least this many times the credit of its subscription."""


class SessionSubscriptions:
    __slots__ = ("_buffer", "_ids", "_states", "_window_size", "due")

    def __init__(self, ids: Iterator[int], buffer: SendBuffer, window_size: int) -> None:
        self._ids = ids
        self._buffer = buffer
        self._window_size = window_size
        self._states: dict[int, SubscriptionState] = {}
        self.due: set[int] = set()
        """Ids of subscriptions with acknowledgements or credit that `flush` sends."""

    # ---- commands of the application

    def subscribe(
        self,
        predicate: str = "",
        *,
        pattern: str = "",
        durable: str = "",
        since: int | None = None,
        group: str = "",
        credit: int = 1000,
        full: str = "",
        deliveries_max: int = 0,
        home: str = "",
        last: bool = False,
    ) -> int:
        """Ask for messages, or for compounds of a pattern. Returns the id of the subscription."""
        if not 1 <= credit <= CREDIT_MAX:
            raise InvalidValue(
                f"the credit of a subscription is a number from 1 to {CREDIT_MAX}, not {credit}"
            )
        id = next(self._ids)
        request = control.SubscribeRequest(
            id, predicate, pattern, durable, since, group, credit, full, deliveries_max, home, last
        )
        check_request("the subscription", request)
        window_size = max(self._window_size, WINDOW_PER_CREDIT * credit)
        self._states[id] = SubscriptionState(request, window_size)
        self._request(id)
        return id

    def unsubscribe(self, id: int, forget: bool = False) -> bool:
        """End a subscription; nothing more arrives. True: Unsubscribed or Refused will follow."""
        state = self._states.get(id)
        if state is None:
            return False
        if state.is_deferred:
            del self._states[id]
            return False
        is_ready = self._buffer.is_ready
        if is_ready:
            self._send_due(id)
        state.is_leaving = True
        state.is_forgetting = forget
        if is_ready:
            self._buffer.send_if_ready(control.UnsubscribeRequest(id, forget))
        elif not state.survives_disconnect:
            del self._states[id]
            return False
        return True

    def is_subscribed(self, id: int) -> bool:
        """Does the subscription exist, and has nobody ended it?"""
        state = self._states.get(id)
        return state is not None and not state.is_leaving

    def confirmation(self, id: int) -> control.Subscribed | None:
        """The broker's last confirmation of a subscription; None: there is none yet."""
        state = self._states.get(id)
        return None if state is None else state.confirmation

    def acknowledge(self, id: int, position: int) -> bool:
        """The application has processed a message. False: the subscription has ended."""
        state = self._states.get(id)
        if state is None or state.is_leaving:
            return False
        state.acknowledge(position)
        self.due.add(id)
        return True

    def nack(self, id: int, position: int, delay_us: int = 0) -> bool:
        """Give a message of the queue back. False: the subscription has ended. Without a connection the
        broker sends all again anyway."""
        return self.nack_all(id, (position,), delay_us)

    def nack_all(self, id: int, positions: Iterable[int], delay_us: int = 0) -> bool:
        """The same for many."""
        parts = self._given_back(id, positions)
        for part in parts or ():
            self._buffer.send_if_ready(control.Nack(id, part, delay_us))
        return parts is not None

    def reject(self, id: int, position: int, reason: str = "") -> bool:
        """Say that the application will never process a message of the queue. False: the subscription
        has ended."""
        return self.reject_all(id, (position,), reason)

    def reject_all(self, id: int, positions: Iterable[int], reason: str = "") -> bool:
        """The same for many."""
        parts = self._given_back(id, positions)
        for part in parts or ():
            self._buffer.send_if_ready(control.Reject(id, part, reason))
        return parts is not None

    def _given_back(self, id: int, positions: Iterable[int]) -> list[tuple[int, ...]] | None:
        """Those positions that the application has, as many as one Nack may hold each; None: the
        subscription has ended."""
        state = self._states.get(id)
        if state is None or state.is_leaving:
            return None
        found = [position for position in positions if state.nack(position)]
        most = control.NACKED_MAX
        return [tuple(found[at : at + most]) for at in range(0, len(found), most)]

    def consumed(self, id: int, count: int = 1) -> None:
        """The application has taken this many live messages or compounds, so more may come."""
        state = self._states.get(id)
        if state is not None:
            state.consume(count)
            if state.is_due:
                self.due.add(id)

    def unacknowledged(self, id: int) -> int:
        """How many messages of a durable subscription the application has not acknowledged."""
        state = self._states.get(id)
        return 0 if state is None else state.unacknowledged

    # ---- the broker

    def deliver(
        self, frame: MessageFrame, header: DeliverHeader, events: list[SessionEvent]
    ) -> None:
        """A message arrived. Hot: once for each message."""
        for id in header.subscriptions:
            state = self._states.get(id)
            if state is None or state.is_leaving:
                continue
            if state.is_new(header, frame.payload):
                events.append(Arrival(id, frame))
            else:
                self.due.add(id)

    def deliver_compound(self, id: int) -> bool:
        """A compound of a pattern arrived. False: its subscription has ended."""
        state = self._states.get(id)
        if state is None or state.is_leaving:
            return False
        state.receive_live()
        return True

    def confirm(self, confirmation: control.Subscribed) -> bool:
        """The broker has accepted a subscription. False: it does not exist here."""
        state = self._states.get(confirmation.id)
        if state is None:
            return False
        state.confirmation = confirmation
        return True

    def remove(self, id: int) -> bool:
        """A subscription is gone at the broker. False: it does not exist here."""
        gone = self._states.pop(id, None)
        if gone is None:
            return False
        if gone.survives_disconnect:
            for deferred in [other for other, state in self._states.items() if state.is_deferred]:
                self._request(deferred)
        return True

    # ---- the connection

    def restate(self) -> None:
        """State all subscriptions on a new connection."""
        for id, state in self._states.items():
            self._request(id)
            if state.is_leaving:
                self._buffer.send_if_ready(control.UnsubscribeRequest(id, state.is_forgetting))

    def disconnect(self) -> list[SessionEvent]:
        """The connection is lost: those that were leaving are gone, except the ones to forget."""
        gone = [
            id
            for id, state in self._states.items()
            if state.is_leaving and not state.survives_disconnect
        ]
        for id in gone:
            del self._states[id]
        return [control.Unsubscribed(id) for id in gone]

    def flush(self) -> None:
        """Send the acknowledgements and the credit that have gathered, if the connection is ready."""
        if self._buffer.is_ready:
            for id in sorted(self.due):
                self._send_due(id)
            self.due.clear()

    def _send_due(self, id: int) -> None:
        state = self._states.get(id)
        if state is not None and state.is_due and not state.is_leaving:
            for message in state.take_due():
                self._buffer.send_if_ready(message)

    def _request(self, id: int) -> None:
        """Send a SubscribeRequest, unless the broker has yet to forget one of the same name and group.

        Otherwise, if both had to be stated again, the broker would forget the new one.
        """
        state = self._states[id]
        state.is_deferred = state.is_durable and any(  # others are never deferred, and may be many
            other.survives_disconnect and other is not state and other.has_queue_of(state)
            for other in self._states.values()
        )
        if not state.is_deferred:
            self._buffer.send_if_ready(state.request())
