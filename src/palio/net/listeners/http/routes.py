"""Which handler serves which request, and what is checked before its body is read.

check:  the path and the method; the host, against DNS rebinding; the site, against requests that a page of
        another origin makes in a browser; the length of the body
serve:  the handler, or the answer to a preflight of CORS
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

from palio.net.config.values import HttpSettings
from palio.net.listeners.http import (
    cloudevents,
    events,
    messages,
    network,
    polling,
    requests,
    sinks,
    socket,
)
from palio.net.listeners.http.api import Api, bearer
from palio.net.listeners.http.clients import BrokerClients, Credential
from palio.net.listeners.http.exchange import Exchange, Headers, Request, Response, as_json
from palio.net.listeners.http.logins import Logins, login_of
from palio.net.listeners.http.problems import CHALLENGE, Problem
from palio.net.listeners.http.room import ReplyRoom
from palio.net.monitoring.counts import HttpCounts
from palio.net.sinks.service import SinkService
from palio.protocol.wire.frames import Limits

_SINGLE = ("authorization", "content-type", "cookie", "host", "origin", messages.ATTRIBUTES)
"""Header fields that may come only once: readers would differ in which one counts."""
_ASKED_HEADERS = (
    "Authorization, Content-Type, Last-Event-ID, Palio-Attributes, ce-specversion, ce-id, ce-source, "
    "ce-type, ce-subject, ce-time, ce-dataschema"
)
_ALWAYS: Final[Headers] = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
)


@dataclass(frozen=True, slots=True)
class Route:
    path: str
    """A part in braces is any text, and an argument of the handlers."""
    handlers: dict[str, Callable[..., Awaitable[None]]]

    def match(self, parts: list[str]) -> list[str] | None:
        """The arguments; None: it is another path."""
        own = self.path.split("/")
        if len(own) != len(parts):
            return None
        pairs = list(zip(own, parts, strict=True))
        if any(a != b for a, b in pairs if not a.startswith("{")):
            return None
        return [_unquoted(b) for a, b in pairs if a.startswith("{")]


async def _login(exchange: Exchange, api: Api) -> None:
    request = exchange.request
    field = request.headers.get("authorization", "")
    if not field:
        raise Problem(401, "unauthorized", "give the token: `Authorization: Bearer`", CHALLENGE)
    token = bearer(field)
    async with api.clients.shared(Credential(token, request.certificate)) as client:
        identity = client.identity
    cookie = api.logins.cookie(api.logins.open(token), request.is_secure, is_other_origin(request))
    found = {"identity": identity, "seconds": int(api.settings.login_us / 1e6)}
    await exchange.respond(as_json(200, found, (("Set-Cookie", cookie),)))


async def _logout(exchange: Exchange, api: Api) -> None:
    request = exchange.request
    api.logins.close(login_of(request))
    cookie = api.logins.cookie("", request.is_secure, is_other_origin(request))
    await exchange.respond(Response(204, headers=(("Set-Cookie", cookie),)))


async def _description(exchange: Exchange, api: Api) -> None:
    await exchange.respond(Response(200, description()))


@cache
def description() -> bytes:
    return (files("palio.net.listeners.http") / "openapi.json").read_bytes()


ROUTES: Final = (
    Route("/v1/messages", {"POST": messages.publish}),
    Route("/v1/requests", {"POST": requests.ask}),
    Route("/v1/events", {"GET": events.events, "POST": cloudevents.publish_events}),
    Route("/v1/socket", {"GET": socket.serve}),
    Route("/v1/subscriptions/{name}/messages", {"GET": polling.poll, "POST": polling.poll}),
    Route("/v1/subscriptions/{name}", {"DELETE": polling.forget}),
    Route(sinks.PATH, {"GET": sinks.query, "POST": sinks.create}),
    Route(
        f"{sinks.PATH}/{{id}}", {"GET": sinks.retrieve, "PUT": sinks.update, "DELETE": sinks.delete}
    ),
    Route("/v1/login", {"POST": _login, "DELETE": _logout}),
    Route("/v1/explain", {"POST": network.explain}),
    Route("/v1/topology", {"GET": network.topology}),
    Route("/openapi.json", {"GET": _description}),
)


class HttpService:
    def __init__(
        self,
        settings: HttpSettings,
        clients: BrokerClients,
        limits: Limits,
        counts: HttpCounts,
        sinks: SinkService | None = None,
    ) -> None:
        logins = Logins(settings.login_us / 1e6, asyncio.get_running_loop().time)
        replies = ReplyRoom(settings.requests_max)
        self._api = Api(settings, clients, logins, limits, counts, replies, sinks)
        self._settings = settings

    def check(self, request: Request) -> None:
        for name in _SINGLE:
            if name in request.repeated:
                raise Problem(400, "invalid", f"the field {name} is given twice")
        self._check_host(request)
        self._check_site(request)
        route, _ = _found(request)
        if request.method not in (*route.handlers, "OPTIONS"):
            allowed = ", ".join(route.handlers)
            raise Problem(405, "method", f"the methods are {allowed}", (("Allow", allowed),))
        if "content-length" in request.headers and "transfer-encoding" in request.headers:
            reason = "Content-Length and Transfer-Encoding exclude each other"
            raise Problem(400, "protocol", reason)  # a proxy may have taken the other one
        length = request.headers.get("content-length", "0")
        most = self._settings.body_bytes_max
        if len(length) > 15 or int(length) > most:
            raise Problem(413, "too_large", f"the body has more than {most:,} bytes")

    async def serve(self, exchange: Exchange) -> None:
        request = exchange.request
        route, arguments = _found(request)
        if request.method == "OPTIONS":
            allowed = ", ".join(route.handlers)
            fields = (("Allow", allowed), ("Access-Control-Allow-Methods", allowed),
                      ("Access-Control-Allow-Headers", _ASKED_HEADERS),
                      ("Access-Control-Max-Age", "600"))  # fmt: skip
            await exchange.respond(Response(204, headers=fields))
            return
        await route.handlers[request.method](exchange, self._api, *arguments)

    def headers(self, request: Request) -> Headers:
        origin = request.headers.get("origin", "")
        if origin not in self._settings.origins:
            return _ALWAYS
        return (
            *_ALWAYS,
            ("Access-Control-Allow-Origin", origin),
            ("Access-Control-Allow-Credentials", "true"),
            ("Vary", "Origin"),
        )

    def _check_host(self, request: Request) -> None:
        """A page may make its own name mean this address (DNS rebinding): then the name is a strange one."""
        name = host_name(request.headers.get("host", ""))
        hosts = self._settings.hosts
        if name in hosts or (not hosts and not self._settings.listen.is_loopback):
            return
        if name != "localhost" and not _is_address(name):
            raise Problem(421, "host", "this broker has another name: see hosts, in [http]")

    def _check_site(self, request: Request) -> None:
        """Only pages of allowed origins may use it. Programs that are no browsers say no origin."""
        origin = request.headers.get("origin")
        is_allowed = origin is not None and origin in self._settings.origins
        site = request.headers.get("sec-fetch-site", "none")
        if is_allowed:
            return
        if is_other_origin(request) or site in ("cross-site", "same-site"):
            raise Problem(403, "origin", "pages of this origin may not: see origins, in [http]")


def is_other_origin(request: Request) -> bool:
    origin = request.headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()
    except ValueError:
        return True


def host_name(host: str) -> str:
    """
    >>> host_name("LocalHost:80"), host_name("[::1]:80"), host_name("a")
    ('localhost', '::1', 'a')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _found(request: Request) -> tuple[Route, list[str]]:
    parts = request.path.split("/")
    for route in ROUTES:
        arguments = route.match(parts)
        if arguments is not None:
            return route, arguments
    paths = ", ".join(route.path for route in ROUTES)
    raise Problem(404, "path", f"there is nothing here; the paths are {paths}")


def _unquoted(text: str) -> str:
    try:
        found = unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        found = ""
    if not found:
        raise Problem(400, "invalid", "a part of the path is empty, or is not UTF-8")
    return found
