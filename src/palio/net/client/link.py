"""The link of a session to its broker: at most one socket at a time, with its handshake and timer.

    dial ──▶ socket open ──▶ Hello ──▶ Welcome: `dial` returns ──▶ ... ──▶ lost: `lost` is set
                                  └──▶ refused, or no broker: `dial` raises

The link says what happened; whether and when to dial again is decided elsewhere (reconnecting.py).
"""

from __future__ import annotations

import asyncio
import logging
import time

from palio.errors import RefusedByBroker, Unreachable
from palio.net.client.broker_socket import (
    DIAL_S_MAX,
    DIAL_S_MAX_OF_SEVERAL,
    LINGER_S,
    BrokerSocket,
    Dial,
)
from palio.net.client.dispatcher import EventDispatcher
from palio.net.client.status import ClientStatus
from palio.net.client.writer import Writer
from palio.protocol.client.events import CloseCause, Closing
from palio.protocol.client.session import Session
from palio.protocol.wire.control import Welcome

log = logging.getLogger("palio.client")


class BrokerLink:
    def __init__(
        self,
        session: Session,
        dial: Dial,
        writer: Writer,
        dispatcher: EventDispatcher,
        status: ClientStatus,
    ) -> None:
        self._session = session
        self._dial_socket = dial
        self._writer = writer
        self._dispatcher = dispatcher
        self._status = status
        self._socket: BrokerSocket | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """From now on the link belongs to the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._epoch_s = time.time() - self._loop.time()
        """Added to the loop's clock, it gives a time that never goes back."""
        self._lost: asyncio.Future[None] = self._loop.create_future()

    # ---- dialling and leaving

    async def dial(self) -> None:
        """Make one connection, with a Welcome; raises Unreachable or RefusedByBroker."""
        self._welcomed: asyncio.Future[None] = self._loop.create_future()
        socket = BrokerSocket(self._open, self._receive, self._pause, self._lose)
        try:
            await self._dial_socket(self._status.address, socket, self._dial_s_max)
            async with asyncio.timeout(self._dial_s_max):
                await self._welcomed
        except BaseException as error:
            if self._socket is socket:  # it took too long, or this task was cancelled
                self._drop(socket)
            else:
                socket.leave()  # one that was cancelled in the middle must not report its end
            if isinstance(error, TimeoutError):
                raise Unreachable(f"what listens at {self._status.address} says nothing") from None
            raise

    @property
    def _dial_s_max(self) -> float:
        return DIAL_S_MAX if len(self._status.addresses) == 1 else DIAL_S_MAX_OF_SEVERAL

    async def wait_until_lost(self) -> None:
        await self._lost
        self._lost = self._loop.create_future()

    async def leave(self, reason: str) -> None:
        """Say goodbye to the broker and close the socket."""
        if self._socket is None:
            return
        socket, self._socket = self._socket, None
        self._session.bye(reason)
        self._writer.flush()
        self._writer.detach()
        self._session.closed()
        socket.leave()
        await asyncio.wait([socket.gone], timeout=LINGER_S + 1.0)

    def stop(self) -> None:
        """The timer runs no more."""
        if self._timer is not None:
            self._timer.cancel()

    # ---- what the socket reports

    def _open(self, socket: BrokerSocket, transport: asyncio.Transport) -> None:
        """Say Hello. A broker that takes nobody says Bye at once, so the session opens before that."""
        self._socket = socket
        self._writer.attach(transport)
        self._session.opened(self._now_us())
        self._writer.flush()
        self._set_timer()

    def _receive(self, data: bytes) -> None:
        for event in self._dispatcher.dispatch(self._session.receive(data, self._now_us())):
            self._follow(event)
        self._writer.schedule()

    def _pause(self, is_paused: bool) -> None:
        self._writer.is_paused = is_paused
        self._status.notify()

    def _lose(self, reason: str) -> None:
        """The socket is gone."""
        self._socket = None
        self._writer.detach()
        self._status.trouble = reason
        self._dispatcher.dispatch(self._session.closed())
        address = self._status.address
        if not self._welcomed.done():
            other = "palio" if address.is_secure else "palios"
            self._welcomed.set_exception(
                Unreachable(
                    f"what listens at {address} ended the connection before it said "
                    f"Welcome ({reason}): it is no Palio broker, or it wants {other}://"
                )
            )
        elif not self._lost.done():
            log.warning("%s: %s; connecting again", address, reason)
            self._lost.set_result(None)
        self._status.notify()

    # ---- what the session reports

    def _follow(self, event: Welcome | Closing) -> None:
        if isinstance(event, Closing):
            self._close(event)
        else:
            self._welcome(event)

    def _welcome(self, welcome: Welcome) -> None:
        self._status.trouble = ""
        log.debug("connected to broker %s at %s", welcome.broker, self._status.address)
        if not self._welcomed.done():
            self._welcomed.set_result(None)
        self._set_timer()
        self._status.notify()

    def _close(self, closing: Closing) -> None:
        """The session gives up the connection."""
        socket = self._socket
        if socket is None:
            return
        if closing.cause.is_refusal or closing.cause is CloseCause.UNAVAILABLE:
            if not self._welcomed.done():
                self._welcomed.set_exception(self._refusal(closing))
            self._drop(socket)
        else:
            self._writer.flush()
            socket.leave()
            self._lose(closing.reason)

    def _refusal(self, closing: Closing) -> RefusedByBroker | Unreachable:
        """The error of a dial that the broker answered with Bye."""
        address, code = self._status.address, closing.code or ""
        if closing.cause.is_refusal:
            reason = f"the broker at {address} refuses this client: {closing.reason}"
            return RefusedByBroker(reason, code=code)
        reason = f"the broker at {address} takes no clients now: {closing.reason}"
        return Unreachable(reason, code=code)

    def _drop(self, socket: BrokerSocket) -> None:
        """Leave a socket on which there was no Welcome."""
        self._writer.flush()
        self._writer.detach()
        self._socket = None
        socket.leave()
        self._session.closed()

    # ---- time

    def _now_us(self) -> int:
        return int((self._epoch_s + self._loop.time()) * 1e6)

    def _set_timer(self) -> None:
        self.stop()
        deadline_us = self._session.deadline_us
        if deadline_us is not None:
            self._timer = self._loop.call_at(deadline_us / 1e6 - self._epoch_s, self._wake)

    def _wake(self) -> None:
        for event in self._dispatcher.dispatch(self._session.wake(self._now_us())):
            self._follow(event)
        self._writer.schedule()
        self._set_timer()
