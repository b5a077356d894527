"""Requests in flight, and advertisements.

A request is repeated on each new connection until it is answered or withdrawn. An advertisement
is repeated on each connection until it is withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from palio.protocol.client.events import SessionEvent
from palio.protocol.client.send_buffer import SendBuffer
from palio.protocol.wire import control
from palio.protocol.wire.control import ControlMessage
from palio.protocol.wire.parts import check_request
from palio.protocol.wire.queue_control import ForgetDurable, QueueRequest

QueueAsked: TypeAlias = QueueRequest | ForgetDurable


class SessionRequests:
    __slots__ = ("_advertised", "_buffer", "_ids", "_in_flight")

    def __init__(self, ids: Iterator[int], buffer: SendBuffer) -> None:
        self._ids = ids
        self._buffer = buffer
        self._in_flight: dict[int, ControlMessage] = {}
        self._advertised: dict[int, control.AdvertiseRequest] = {}

    # ---- commands of the application; each returns the id that comes with the answer

    def advertise(self, constraints: tuple[str, ...]) -> int:
        """Declare what will be published; Done or Refused answers."""
        advertise = control.AdvertiseRequest(next(self._ids), constraints)
        check_request("the advertisement", advertise)
        self._advertised[advertise.id] = advertise
        self._buffer.send_if_ready(advertise)
        return advertise.id

    def unadvertise(self, id: int) -> bool:
        """Withdraw an advertisement. True: Done will follow."""
        if self._advertised.pop(id, None) is None or not self._buffer.is_ready:
            return False
        self._send(id, control.UnadvertiseRequest(id))
        return True

    @property
    def advertised(self) -> Mapping[int, tuple[str, ...]]:
        """The advertisements that stand, by their ids."""
        return {id: advertise.constraints for id, advertise in self._advertised.items()}

    def quench(self, on: bool) -> int:
        """Turn quenching on or off; Done answers."""
        id = next(self._ids)
        self._send(id, control.Quench(id, on))
        return id

    def explain(self, attributes: str, subscription: str = "") -> int:
        """Ask where a message would go; Explained answers."""
        id = next(self._ids)
        request = control.Explain(id, attributes, subscription)
        check_request("the message to explain", request)
        self._send(id, request)
        return id

    def show(self, *, memory: bool = False) -> int:
        """Ask for the network; Shown answers."""
        id = next(self._ids)
        self._send(id, control.Show(id, memory))
        return id

    def forget(self, broker: str) -> int:
        """Declare that a broker is gone for good; Done or Refused answers."""
        id = next(self._ids)
        self._send(id, control.Forget(id, broker))
        return id

    def ask(self, kind: type[QueueAsked], *fields: str | int | bool) -> int:
        """Ask about queues and subscriptions, or act on them (wire/queue_control.py)."""
        id = next(self._ids)
        self._send(id, kind(id, *fields))  # type: ignore[arg-type]
        return id

    def withdraw(self, id: int) -> None:
        """Nobody waits for the answer any more, so the request is not repeated."""
        self._in_flight.pop(id, None)

    # ---- the broker

    def is_in_flight(self, id: int) -> bool:
        return id in self._in_flight

    def answer(self, id: int) -> None:
        """A request is answered."""
        self._in_flight.pop(id, None)

    def refuse(self, id: int) -> None:
        """The broker refuses a request or an advertisement."""
        self._in_flight.pop(id, None)
        self._advertised.pop(id, None)

    # ---- the connection

    def restate_advertisements(self) -> None:
        for advertise in self._advertised.values():
            self._buffer.send_if_ready(advertise)

    def resend(self) -> None:
        """Repeat all requests in flight on a new connection."""
        for request in self._in_flight.values():
            self._buffer.send_if_ready(request)

    def disconnect(self) -> list[SessionEvent]:
        """The connection is lost, and with it each advertisement that was being withdrawn."""
        gone = [
            id for id, one in self._in_flight.items() if isinstance(one, control.UnadvertiseRequest)
        ]
        for id in gone:
            del self._in_flight[id]
        return [control.Done(id) for id in gone]

    def _send(self, id: int, request: ControlMessage) -> None:
        self._in_flight[id] = request
        self._buffer.send_if_ready(request)
