"""A small web server for machines that watch a broker (`health.py` has its pages).

It serves GET and HEAD, one request a connection. Requests are bounded in size, time and number.
Every other request gets a response with a status that says what is wrong; none raises an exception.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

from palio.errors import PalioError
from palio.net.endpoint import Endpoint

_REQUEST_BYTES_MAX = 8192
_REQUEST_S_MAX = 5.0
_REQUESTS_MAX = 32
_STATUS = {
    200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed",
    431: "Request Header Fields Too Large", 503: "Service Unavailable",
}  # fmt: skip


class HttpResponse(NamedTuple):
    status: int
    content_type: str
    body: bytes


Page: TypeAlias = Callable[[], Awaitable[HttpResponse]]


def as_json(code: int, /, **fields: object) -> HttpResponse:
    return HttpResponse(code, "application/json", json.dumps(fields).encode() + b"\n")


class WebServer:
    """Serves pages by their paths."""

    def __init__(self, pages: dict[str, Page]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._under_way = 0

    async def start(self, address: Endpoint) -> int:
        """Listen from now on; gives the port."""
        try:
            self._server = await asyncio.start_server(
                self._serve, address.host, address.port, limit=_REQUEST_BYTES_MAX
            )
        except OSError as error:
            raise PalioError(
                f"metrics cannot be shown on {address}: {error.strerror}; choose another listen "
                f"in [metrics]"
            ) from None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._under_way += 1
        try:
            async with asyncio.timeout(_REQUEST_S_MAX):
                if self._under_way > _REQUESTS_MAX:
                    writer.write(_response(as_json(503, reason="too many requests at once"), True))
                else:
                    writer.write(await self._answer(reader))
                await writer.drain()
        except (TimeoutError, OSError):
            writer.transport.abort()
        finally:
            self._under_way -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _response(as_json(431, reason="the request is too long"), True)
        except asyncio.IncompleteReadError:
            return _response(as_json(400, reason="the request is cut off"), True)
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _response(as_json(400, reason="this is not HTTP/1"), True)
        method, target = words[0], words[1].split(b"?")[0].decode("latin-1")
        if method not in (b"GET", b"HEAD"):
            return _response(as_json(405, reason="only GET and HEAD"), True)
        page = self._pages.get(target)
        if page is None:
            return _response(as_json(404, reason=f"the pages are {', '.join(self._pages)}"), True)
        return _response(await page(), method == b"GET")


def _response(response: HttpResponse, has_body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {response.status} {_STATUS[response.status]}\r\n"
        f"Content-Type: {response.content_type}\r\n"
        f"Content-Length: {len(response.body)}\r\n"
        f"Connection: close\r\n\r\n"
    )
    return head.encode() + (response.body if has_body else b"")
