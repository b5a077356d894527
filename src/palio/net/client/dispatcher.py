"""Brings the events of a session to those who wait for them: inboxes, requests and publishers.

Two kinds of events concern the connection itself, Welcome and Closing; the link gets those.
"""

from __future__ import annotations

from typing import Any

from palio.errors import SubscriptionEnded
from palio.net.client.acknowledgements import Acknowledgements
from palio.net.client.inbox import Inbox
from palio.net.client.pending_answers import PendingAnswers
from palio.net.client.status import ClientStatus
from palio.protocol.client.events import Arrival, Closing, SessionEvent
from palio.protocol.wire import control
from palio.protocol.wire.control import ControlMessage
from palio.protocol.wire.queue_control import Purged, QueuesListed, SubscriptionsListed
from palio.protocol.wire.refusals import to_error


class EventDispatcher:
    __slots__ = ("_acknowledgements", "_answers", "_inboxes", "_status")

    def __init__(
        self,
        inboxes: dict[int, Inbox[Any]],
        answers: PendingAnswers,
        acknowledgements: Acknowledgements,
        status: ClientStatus,
    ) -> None:
        self._inboxes = inboxes
        self._answers = answers
        self._acknowledgements = acknowledgements
        self._status = status

    def dispatch(self, events: list[SessionEvent]) -> list[control.Welcome | Closing]:
        """Hot. Returns the events that concern the connection."""
        inboxes = self._inboxes
        rest: list[control.Welcome | Closing] = []
        for event in events:
            if type(event) is Arrival:
                inbox = inboxes.get(event.id)
                if inbox is not None:
                    inbox.put(event.frame)
            elif type(event) is Closing or type(event) is control.Welcome:
                rest.append(event)
            else:
                self._handle(event)  # type: ignore[arg-type]
        return rest

    def _handle(self, message: ControlMessage) -> None:
        match message:
            case control.Published(number):
                self._acknowledgements.store(number)
                self._status.notify()
            case control.Rejected(number, reason):
                self._acknowledgements.reject(number, reason)
            case control.Occurred(id, items):
                if id in self._inboxes:
                    self._inboxes[id].put(items)
            case control.SubscriptionEnded(id, reason, code):
                if id in self._inboxes:
                    text = f"the broker ended the subscription: {reason}"
                    error = SubscriptionEnded(text, code=code)
                    self._inboxes.pop(id).end(error)
                self._answers.answer(id, control.Unsubscribed(id))
            case control.Refused(id):
                refusal = to_error(message, str(self._status.address))
                if id in self._inboxes:
                    self._inboxes.pop(id).end(refusal)
                self._answers.refuse(id, refusal)
            case control.Subscribed(id):
                if id in self._inboxes:
                    self._inboxes[id].confirm()
            case (
                control.Unsubscribed(id)
                | control.Done(id)
                | control.Explained(id)
                | control.Shown(id)
                | QueuesListed(id)
                | SubscriptionsListed(id)
                | Purged(id)
            ):
                self._answers.answer(id, message)
