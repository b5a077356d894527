"""The answers of a connection: events of h11 to bytes. The `Exchange` that handlers see.

respond                                  a whole answer
begin, write ..., end                    a stream
begin(101), upgrade, write ...           bytes of another protocol
"""

from __future__ import annotations

from http import HTTPStatus

import h11

from palio.net.listeners.http.exchange import Headers, Request, Response, Upgraded
from palio.net.listeners.http.output import SocketOutput
from palio.net.listeners.http.served import Service, Sockets

NO_REQUEST = Request("", "", "", {}, "?")


class HttpExchange:
    """One for each connection; `request` is the one that is served now."""

    def __init__(
        self, http: h11.Connection, output: SocketOutput, service: Service, sockets: Sockets
    ) -> None:
        self._http, self._output, self._service = http, output, service
        self._counts, self._ending = sockets.counts, sockets.ending
        self.request = NO_REQUEST
        self.is_streaming = False
        self.upgraded: Upgraded | None = None

    @property
    def can_respond(self) -> bool:
        """No answer has begun."""
        return self.upgraded is None and self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE)

    async def respond(self, response: Response) -> None:
        self.answer(response)
        await self._output.drained()

    def answer(self, response: Response, *, is_last: bool = False) -> None:
        """`is_last`: no request is read after it."""
        self._counts.statuses[response.status] += 1
        fields: Headers = (*response.headers, *self._service.headers(self.request))
        if response.status != HTTPStatus.NO_CONTENT:
            fields = (*fields, ("Content-Length", str(len(response.body))))
        if response.body:
            fields = (("Content-Type", response.content_type), *fields)
        if is_last or self._ending.is_set():
            fields = (*fields, ("Connection", "close"))
        parts = [self._http.send(_head(response.status, fields))]
        if response.body and self.request.method != "HEAD":
            parts.append(self._http.send(h11.Data(data=response.body)))
        parts.append(self._http.send(h11.EndOfMessage()))
        self._output.write(b"".join(part for part in parts if part))

    def go_on(self) -> None:
        """The other end waits for 100 before it sends a body."""
        self._send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))

    async def begin(self, status: int, headers: Headers) -> None:
        self._counts.statuses[status] += 1
        self.is_streaming = True
        if status == HTTPStatus.SWITCHING_PROTOCOLS:
            reason = HTTPStatus(status).phrase.encode()
            fields = list(headers)
            self._send(h11.InformationalResponse(status_code=status, headers=fields, reason=reason))
        else:
            self._send(_head(status, (*headers, *self._service.headers(self.request))))
        await self._output.drained()

    async def write(self, data: bytes) -> None:
        if not self._output.is_open:
            raise ConnectionResetError("the other end is gone")
        if self.upgraded is not None:
            self._output.write(data)
        else:
            self._send(h11.Data(data=data))
        await self._output.drained()

    async def end(self) -> None:
        self._send(h11.EndOfMessage())
        await self._output.drained()

    async def end_if_open(self) -> None:
        """End an answer that its handler has left."""
        if self.upgraded is None and self._http.our_state is h11.SEND_BODY:
            await self.end()

    def next(self) -> None:
        """The answer is complete, and the next request may come."""
        self._http.start_next_cycle()
        self.is_streaming = False

    def _send(self, event: h11.Event) -> None:
        self._output.write(self._http.send(event) or b"")

    # ---- for an upgraded connection

    def upgrade(self, protocol: Upgraded) -> bytes:
        self.upgraded = protocol
        early: bytes = self._http.trailing_data[0]
        self._output.set_reading(True)
        return early

    @property
    def is_read(self) -> bool:
        return self._output.is_read

    async def drained(self) -> None:
        await self._output.drained()

    def write_soon(self, data: bytes) -> None:
        self._output.write(data)

    def set_reading(self, is_reading: bool) -> None:
        self._output.set_reading(is_reading)

    def cut_off(self) -> None:
        self._output.cut_off()


def _head(status: int, fields: Headers) -> h11.Response:
    reason = HTTPStatus(status).phrase.encode()
    return h11.Response(status_code=status, headers=list(fields), reason=reason)
