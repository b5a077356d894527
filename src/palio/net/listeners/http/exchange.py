"""A request and its answer, as values: what handlers see of HTTP.

    Handler: Exchange ─▶ respond(Response), or begin(...), write(...) ..., end(), or upgrade()

An `Exchange` is one request of one connection. Its handler is cancelled when the other end is gone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias
from urllib.parse import parse_qsl

import msgspec

from palio.net.listeners.http.problems import Problem

JSON = "application/json"
Headers: TypeAlias = tuple[tuple[str, str], ...]

_PARAMETERS_MAX = 32


@dataclass(frozen=True, slots=True)
class Request:
    """`headers`: the last of equal names, in small letters."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    peer: str
    certificate: str = ""
    """The verified name in the certificate of the other end."""
    is_secure: bool = False
    repeated: frozenset[str] = frozenset()
    """Names of header fields that came more than once."""
    body: bytes = field(default=b"", repr=False)

    def parameters(self, *known: str) -> dict[str, str]:
        """The query; raises Problem for a parameter that is not known, or comes twice."""
        try:
            pairs = parse_qsl(
                self.query, keep_blank_values=True, max_num_fields=_PARAMETERS_MAX,
                encoding="utf-8", errors="strict", strict_parsing=bool(self.query),
            )  # fmt: skip
        except ValueError:
            raise Problem(400, "invalid", "the query is not of the form name=value&...") from None
        found: dict[str, str] = {}
        for name, value in pairs:
            if name not in known:
                names = ", ".join(known) or "none"
                raise Problem(400, "invalid", f"no parameter {name[:60]!r}; there are: {names}")
            if name in found:
                raise Problem(400, "invalid", f"the parameter {name} is given twice")
            found[name] = value
        return found


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: Headers = ()


def as_json(status: int, value: object, headers: Headers = ()) -> Response:
    return Response(status, msgspec.json.encode(value) + b"\n", JSON, headers)


def as_response(problem: Problem) -> Response:
    body = msgspec.json.encode(problem.members()) + b"\n"
    return Response(problem.status, body, "application/problem+json", problem.headers)


class Upgraded(Protocol):
    """Who gets the bytes of a connection that speaks HTTP no more."""

    def data_received(self, data: bytes) -> None: ...

    def connection_lost(self) -> None: ...


class Exchange(Protocol):
    @property
    def request(self) -> Request: ...

    async def respond(self, response: Response) -> None: ...

    async def begin(self, status: int, headers: Headers) -> None:
        """Begin an answer of unknown length."""
        ...

    async def write(self, data: bytes) -> None:
        """Send a part of it; returns when the other end has read most of it."""
        ...

    async def end(self) -> None: ...

    def upgrade(self, protocol: Upgraded) -> bytes:
        """Hand the connection to another protocol; gives the bytes that have arrived for it.
        From then on `write` sends bytes as they are."""
        ...

    # ---- for an upgraded connection

    def write_soon(self, data: bytes) -> None:
        """Send without waiting."""
        ...

    @property
    def is_read(self) -> bool:
        """Whether the other end has read most of what was sent."""
        ...

    async def drained(self) -> None:
        """Return when that is so."""
        ...

    def set_reading(self, is_reading: bool) -> None: ...

    def cut_off(self) -> None:
        """The other end does not read, or does not answer."""
        ...


Handler: TypeAlias = Callable[[Exchange], Awaitable[None]]
