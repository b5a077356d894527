"""A connection that speaks HTTP/1.1: bytes to requests by h11, one at a time.

    head ──▶ body ──▶ serving ──▶ head (the next request) ...      each with a deadline
      └────────┴── what is wrong with it: answered before more is read ──▶ lingering ──▶ closed
                        serving ──▶ upgraded: bytes go to another protocol

What always holds: a head, a body, all bodies together and the chunks of a body are bounded before they are
read; a part of them must come in time. One turn of the loop parses a bounded number of events. While a
request is served, little more is read. Whoever does not read an answer is cut off (`output`).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

import h11

from palio.errors import PalioError
from palio.net.config.values import HttpSettings
from palio.net.listeners.http.answering import HttpExchange
from palio.net.listeners.http.exchange import Request, as_response
from palio.net.listeners.http.output import SocketOutput, peer_of
from palio.net.listeners.http.problems import RETRY_AFTER, Problem, as_problem
from palio.net.listeners.http.request_body import RequestBody
from palio.net.listeners.http.served import Service, Sockets
from palio.net.monitoring.logs import log_bug
from palio.net.security import certificate_name

_EVENTS_MAX = 100
"""Events that one turn of the loop parses."""
_AHEAD_BYTES_MAX = 64 << 10
_LINGER_S = 0.5
_REASON_MAX = 200
"""Characters of what h11 says: it quotes what came."""
_STATUS = (400, 405, 414, 431, 501)
"""What h11 may say of a broken request."""


class HttpConnection(asyncio.Protocol):
    def __init__(self, service: Service, settings: HttpSettings, sockets: Sockets) -> None:
        self._service, self._settings, self._sockets = service, settings, sockets
        self._http = h11.Connection(h11.SERVER, settings.head_bytes_max)
        self._loop = asyncio.get_running_loop()
        self._output = SocketOutput(settings.stalled_us_max / 1e6, sockets.counts)
        self._answering = HttpExchange(self._http, self._output, service, sockets)
        self._body = RequestBody(sockets, settings.body_bytes_max)
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._ahead = 0  # bytes that came while a request is served
        self._is_lingering = False

    @property
    def is_streaming(self) -> bool:
        return self._answering.is_streaming

    # ---- called by the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.accepted(cast(asyncio.Transport, transport))
        self.secured(cast(asyncio.Transport, transport))

    def accepted(self, socket: asyncio.Transport) -> None:
        """A TLS handshake begins, or a connection without one."""
        self._transport = socket
        self._sockets.counts.accepted += 1
        self._output.attach(socket)
        self._sockets.add(self)

    def handshake_received(self, size: int) -> bool:
        """Bytes of a TLS handshake came; `tls.py` bounds its time."""
        return self._output.is_open

    def secured(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._output.attach(transport)
        self._set_timer(self._settings.head_us_max)

    def data_received(self, data: bytes) -> None:
        upgraded = self._answering.upgraded
        if self._is_lingering:
            return
        if upgraded is not None:
            upgraded.data_received(data)
            return
        if self._task is not None:
            self._ahead += len(data)
            if self._ahead > _AHEAD_BYTES_MAX:
                self._output.set_reading(False)
        elif self._is_idle:
            self._set_timer(self._settings.head_us_max)
        try:
            self._http.receive_data(data)
        except (h11.RemoteProtocolError, RuntimeError):  # bytes after `Connection: close`
            return
        if self._task is not None:
            return
        if self._sockets.turns.is_over():  # thousands may send at once
            self._output.set_reading(False)
            self._sockets.turns.soon(self._advance)
        else:
            self._advance()

    def pause_writing(self) -> None:
        self._output.pause()

    def resume_writing(self) -> None:
        self._output.resume()

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is None:
            return
        self._transport = None
        self._output.detach()
        self._stop_timer()
        self._body.clear()
        self._sockets.remove(self)
        if self._task is not None:
            self._task.cancel()
        if self._answering.upgraded is not None:
            self._answering.upgraded.connection_lost()

    # ---- receiving

    @property
    def _is_idle(self) -> bool:
        """Nothing of a request has come."""
        return self._http.their_state is h11.IDLE and not self._http.trailing_data[0]

    def _advance(self) -> None:
        """Take events from h11, a bounded number in one turn."""
        try:
            for _ in range(_EVENTS_MAX):
                if self._transport is None or self._task is not None or self._is_lingering:
                    return
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    self._output.set_reading(True)
                    return
                self._take(event)
        except h11.RemoteProtocolError as error:
            status = error.error_status_hint if error.error_status_hint in _STATUS else 400
            reason = f"this is not HTTP/1.1 as it must be: {str(error)[:_REASON_MAX]}"
            self._refuse(Problem(status, "protocol", reason))
            return
        except Problem as problem:
            self._refuse(problem)
            return
        self._output.set_reading(False)
        self._loop.call_soon(self._advance)

    def _take(self, event: object) -> None:
        match event:
            case h11.Request():
                self._sockets.counts.requests += 1
                self._set_timer(self._settings.head_us_max)
                assert self._transport is not None
                self._answering.request = _request(event, self._transport)
                self._service.check(self._answering.request)
                if self._http.they_are_waiting_for_100_continue:
                    self._answering.go_on()
            case h11.Data(data=data):
                if self._body.add(bytes(data)):
                    self._set_timer(self._settings.head_us_max)
            case h11.EndOfMessage():
                self._stop_timer()
                self._sockets.serve(self)
                self._task = self._loop.create_task(self._serve(self._body.whole()))
                self._output.set_reading(True)  # so that its end is noticed
            case h11.ConnectionClosed():
                self.close()

    # ---- serving

    async def _serve(self, body: bytes) -> None:
        answering = self._answering
        answering.request = replace(answering.request, body=body)
        try:
            await self._service.serve(answering)
            await answering.end_if_open()
        except PalioError as error:
            await self._fail(as_problem(error))
        except (ConnectionError, h11.LocalProtocolError):
            self.close()
        except asyncio.CancelledError:
            self.close()
            raise
        except Exception as error:
            log_bug("a request over HTTP met a bug", error)
            await self._fail(Problem(500, "bug", "the broker met a bug, and has logged it"))
        finally:
            self._task = None
            self._body.clear()
            self._finish()

    async def _fail(self, problem: Problem) -> None:
        if self._answering.can_respond:
            await self._answering.respond(as_response(problem))
        else:  # the answer has begun: its end says that it is not whole
            self.close()

    def _finish(self) -> None:
        """The answer is complete: the next request, or the end."""
        if not self._output.is_open:
            return
        if self._answering.upgraded is not None:
            self._answering.upgraded = None
            self._linger()
            return
        is_complete = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        if not is_complete or self._sockets.ending.is_set():
            self.close()
            return
        self._answering.next()
        self._ahead = 0
        self._sockets.wait(self)
        settings = self._settings
        self._set_timer(settings.idle_us_max if self._is_idle else settings.head_us_max)
        self._advance()

    # ---- the end

    def _refuse(self, problem: Problem) -> None:
        """Answer before the request is read, and close when the answer can have arrived."""
        self._sockets.counts.refused += 1
        if self._answering.can_respond and self._output.is_open:
            self._answering.answer(as_response(problem), is_last=True)
        self._body.clear()
        self._linger()

    def _linger(self) -> None:
        """Read and drop for a moment: closing over unread bytes would take back the last ones sent."""
        self._is_lingering = True
        if self._output.is_open:
            self._output.set_reading(True)
            self._output.finish()
            self._stop_timer()
            self._timer = self._loop.call_later(_LINGER_S, self.close)

    def _late(self) -> None:
        self._sockets.counts.late += 1
        if self._is_idle:
            self.close()
        else:
            self._refuse(Problem(408, "late", "the request did not come in time"))

    def overload(self) -> None:
        self._refuse(Problem(503, "too_many_connections", "too many connections", RETRY_AFTER))

    def cancel(self) -> None:
        """The broker stops."""
        if self._task is not None:
            self._task.cancel()
        else:
            self.close()

    def close(self) -> None:
        self._stop_timer()
        self._output.close()

    def abort(self) -> None:
        self._output.abort()

    def _set_timer(self, time_us: int) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(time_us / 1e6, self._late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _request(event: h11.Request, transport: asyncio.Transport) -> Request:
    headers: dict[str, str] = {}
    repeated = set()
    for name, value in event.headers:
        key = name.decode("ascii")
        if key in headers:
            repeated.add(key)
        headers[key] = value.decode("latin-1")
    path, _, query = event.target.decode("latin-1").partition("?")
    tls = transport.get_extra_info("ssl_object")
    return Request(
        event.method.decode("ascii"), path, query, headers, peer_of(transport),
        certificate_name(tls), tls is not None, frozenset(repeated),
    )  # fmt: skip
