"""What the handlers of requests share, and who asks."""

from __future__ import annotations

from dataclasses import dataclass

from palio.net.client.client import DELIVERIES_MAX
from palio.net.config.values import HttpSettings
from palio.net.listeners.http.clients import BrokerClients, Credential
from palio.net.listeners.http.exchange import Request
from palio.net.listeners.http.logins import Logins, login_of
from palio.net.listeners.http.problems import CHALLENGE, Problem
from palio.net.listeners.http.room import ReplyRoom
from palio.net.monitoring.counts import HttpCounts
from palio.net.sinks.service import SinkService
from palio.protocol.wire.control import DELAY_US_MAX
from palio.protocol.wire.frames import Limits

CREDIT = 1000
CREDIT_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Api:
    settings: HttpSettings
    clients: BrokerClients
    logins: Logins
    limits: Limits
    counts: HttpCounts
    replies: ReplyRoom
    sinks: SinkService | None = None
    """None: the broker pushes events to nobody."""


def credential(request: Request, api: Api, *, takes_cookie: bool = False) -> Credential:
    """Raises Problem for what is no token."""
    field = request.headers.get("authorization", "")
    if field:
        return Credential(bearer(field), request.certificate)
    number = login_of(request) if takes_cookie else ""
    if not number:
        return Credential("", request.certificate)
    token = api.logins.token(number)
    if token is None:
        raise Problem(401, "login", "the login is over: POST /v1/login again", CHALLENGE)
    return Credential(token, request.certificate)


def is_read_only(request: Request) -> bool:
    """Whether only the cookie of a login says who asks: browsers send it for whatever page they show."""
    return not request.headers.get("authorization") and bool(login_of(request))


def bearer(field: str) -> str:
    kind, _, token = field.partition(" ")
    token = token.strip()
    if kind.lower() != "bearer" or not token or not token.isascii() or not token.isprintable():
        raise Problem(401, "unauthorized", "it must be `Authorization: Bearer TOKEN`", CHALLENGE)
    return token


def number(parameters: dict[str, str], name: str, default: float, most: float) -> float:
    """A parameter that is a number from 0."""
    text = parameters.get(name)
    if text is None:
        return default
    try:
        found = float(text) if len(text) <= 20 and text.isascii() else -1.0
    except ValueError:
        found = -1.0
    if not 0 <= found <= most:
        raise Problem(400, "invalid", f"{name} is a number from 0 to {most:,.0f}")
    return found


def seconds(parameters: dict[str, str], name: str) -> float | None:
    """A parameter that is a time, as for `Client.publish`; None: it is not given."""
    return number(parameters, name, 0.0, DELAY_US_MAX / 1e6) if name in parameters else None


def deliveries(parameters: dict[str, str]) -> int | None:
    """The parameter deliveries_max; None: it is not given."""
    name = "deliveries_max"
    return count(parameters, name, 1, DELIVERIES_MAX) if name in parameters else None


def count(parameters: dict[str, str], name: str, default: int, most: int) -> int:
    found = number(parameters, name, default, most)
    if found < 1 or found != int(found):
        raise Problem(400, "invalid", f"{name} is a whole number from 1 to {most:,}")
    return int(found)


def flag(parameters: dict[str, str], name: str, default: bool) -> bool:
    text = parameters.get(name)
    if text not in (None, "true", "false"):
        raise Problem(400, "invalid", f"{name} is true or false")
    return default if text is None else text == "true"
