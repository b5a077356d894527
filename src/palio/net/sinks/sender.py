"""Sends one request to a sink and reads the answer, within bounds of time and size."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from datetime import UTC, datetime

import httpcore

from palio.net.sinks.connections import CheckedConnections, Resolver, resolve
from palio.protocol.cloudevents.delivery import (
    Answer,
    Permission,
    handshake_headers,
    permission_of,
    retry_after_s,
)
from palio.protocol.cloudevents.sinks import AllowedSink, RefusedSink, SinkRules

BODY_MAX = 65_536
"""Bytes of an answer that are read, so that the connection can be used again; they mean nothing."""


def _now() -> datetime:
    return datetime.now(UTC)


class SinkSender:
    """Shared by all workers of a broker: `connections_max` connections, each answer within `timeout_s`."""

    def __init__(
        self,
        rules: SinkRules,
        *,
        timeout_s: float = 10.0,
        connections_max: int = 100,
        tls: ssl.SSLContext | None = None,
        resolver: Resolver = resolve,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self._timeout_s = timeout_s
        self._places = asyncio.Semaphore(connections_max)
        """The time of a request begins when it has a place: slow sinks of others cost it no attempt."""
        self._clock = clock
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls or ssl.create_default_context(),
            max_connections=connections_max,
            max_keepalive_connections=connections_max,
            keepalive_expiry=30.0,
            network_backend=CheckedConnections(rules, resolver),
        )

    async def aclose(self) -> None:
        await self._pool.aclose()

    async def send(
        self, sink: AllowedSink, method: str, headers: list[tuple[str, str]], body: bytes
    ) -> Answer:
        """What the sink answers; what goes wrong is an answer too."""
        try:
            status, found = await self._request(sink, method, headers, body)
        except TimeoutError:
            return Answer(error=f"no answer within {self._timeout_s:g} s")
        except RefusedSink as error:
            return Answer(error=error.reason)
        except (
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.TimeoutException,
            OSError,
        ) as error:
            return Answer(error=f"{type(error).__name__} {error}".strip()[:200])
        after = dict(found).get("retry-after")
        return Answer(status, retry_after_s(after, self._clock()))

    async def ask(
        self, sink: AllowedSink, origin: str, per_minute: int | None
    ) -> Permission | None:
        """The handshake; None where the sink does not agree or does not answer."""
        try:
            _, found = await self._request(
                sink, "OPTIONS", handshake_headers(origin, per_minute), b""
            )
        except (
            TimeoutError, RefusedSink, httpcore.NetworkError, httpcore.ProtocolError,
            httpcore.TimeoutException, OSError,
        ):  # fmt: skip
            return None
        return permission_of(found, origin, per_minute)

    async def _request(
        self, sink: AllowedSink, method: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[int, list[tuple[str, str]]]:
        url = httpcore.URL(scheme=sink.scheme, host=sink.host, port=sink.port, target=sink.target)
        raw = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers]
        raw += [(b"Host", _authority(sink)), (b"Content-Length", str(len(body)).encode())]
        async with (
            self._places,
            asyncio.timeout(self._timeout_s),
            self._pool.stream(method, url, headers=raw, content=body) as response,
        ):
            size = 0
            async for part in response.aiter_stream():
                size += len(part)
                if size > BODY_MAX:
                    break
            pairs = [
                (name.decode("latin-1").lower(), value.decode("latin-1"))
                for name, value in response.headers
            ]
            return response.status, pairs


def _authority(sink: AllowedSink) -> bytes:
    host = f"[{sink.host}]" if ":" in sink.host else sink.host
    is_default = sink.port == (443 if sink.scheme == "https" else 80)
    return (host if is_default else f"{host}:{sink.port}").encode("ascii")
