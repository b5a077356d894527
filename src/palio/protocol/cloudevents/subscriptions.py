"""Subscriptions of the CloudEvents Subscriptions API as values (subscriptions/spec.md, 3.2).

    {"sink": "https://example.com/in", "protocol": "HTTP",          required
     "source": "/a", "types": ["t"], "filters": [{...}],            what it selects
     "config": {"mode": "binary"},                                  or "structured"
     "protocolsettings": {"method": "POST", "headers": {...}},
     "sinkcredential": {"credentialtype": "PLAIN" | "ACCESSTOKEN", ...}}

What is not known is refused, so that nobody relies on it. Secrets go in and are not shown again.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from palio.errors import InvalidPredicate, InvalidValue
from palio.model.dialects import cloudevents_filters
from palio.model.language import parse
from palio.model.predicate import Predicate
from palio.model.sql_text import value_sql
from palio.model.values import shortened
from palio.protocol.cloudevents.sinks import AllowedSink, SinkRules, check_sink

DOCUMENT_MAX: Final = 262_144
"""Bytes of a subscription."""
TYPES_MAX: Final = 1_000
HEADERS_MAX: Final = 50
MODES: Final = ("binary", "structured")
METHODS: Final = ("POST", "PUT", "PATCH")


class InvalidSubscription(InvalidValue):
    """A subscription that cannot be made; `place` leads to the part that is wrong."""

    def __init__(self, reason: str, place: str = "", *, remedy: str = "") -> None:
        super().__init__(f"{place}: {reason}" if place else reason, remedy=remedy)
        self.place = place


@dataclass(frozen=True, slots=True)
class EventSubscription:
    """`document` is what was asked for, with the defaults and the secrets. `predicate` is what it selects."""

    id: str
    document: Mapping[str, Any]
    sink: AllowedSink
    predicate: Predicate
    mode: str
    method: str
    headers: tuple[tuple[str, str], ...]

    def shown(self) -> dict[str, Any]:
        """As it is told: without secrets."""
        found: dict[str, Any] = {"id": self.id, **self.document}
        if "sinkcredential" in found:
            kind = found["sinkcredential"]["credentialtype"]
            found["sinkcredential"] = {"credentialtype": kind}
        return found

    def stored(self) -> bytes:
        """For `read_subscription` after a restart, secrets included."""
        return msgspec.json.encode(self.document)


def read_subscription(
    document: bytes | Mapping[str, Any], id: str, rules: SinkRules
) -> EventSubscription:
    """The subscription of a document; its own id is ignored. Raises InvalidSubscription."""
    given = {**_decoded(document)}
    given.pop("id", None)
    if given.get("sinkcredential", ...) is None:  # as if it were not there
        del given["sinkcredential"]
    for name in given:
        if name not in _MEMBERS:
            raise InvalidSubscription(f"is not known; there are {', '.join(_MEMBERS)}", name)
    if "sink" not in given or "protocol" not in given:
        missing = "sink" if "sink" not in given else "protocol"
        raise InvalidSubscription(f"the subscription has no {missing}, and needs one")
    if given["protocol"] != "HTTP":
        shown = shortened(given["protocol"])
        raise InvalidSubscription(f"events are delivered by 'HTTP', not by {shown}", "protocol")
    try:
        sink = check_sink(given["sink"], rules)
    except InvalidValue as error:
        raise InvalidSubscription(error.reason, "sink", remedy=error.remedy) from None
    given["config"] = {"mode": "structured", **_object(given, "config", ("mode",))}
    mode = given["config"]["mode"]
    if mode not in MODES:
        raise InvalidSubscription(f"is {' or '.join(MODES)}, not {shortened(mode)}", "config.mode")
    settings = {"method": "POST", **_object(given, "protocolsettings", ("method", "headers"))}
    if settings["method"] not in METHODS:
        raise InvalidSubscription(f"is one of {', '.join(METHODS)}", "protocolsettings.method")
    given["protocolsettings"] = settings
    headers = _headers(settings) + _credential(given)
    return EventSubscription(
        id, given, sink, _predicate(given), mode, settings["method"], tuple(headers)
    )


_MEMBERS = (
    "source", "types", "config", "filters", "sink", "sinkcredential", "protocol", "protocolsettings",
)  # fmt: skip


def _decoded(document: bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(document, Mapping):
        return document
    if len(document) > DOCUMENT_MAX:
        raise InvalidSubscription(f"the subscription has more than {DOCUMENT_MAX:,} bytes")
    try:
        return msgspec.json.decode(document, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InvalidSubscription(f"the subscription is no JSON object: {error}") from None


def _object(given: Mapping[str, Any], name: str, known: tuple[str, ...]) -> dict[str, Any]:
    found = given.get(name, {})
    if not isinstance(found, dict):
        raise InvalidSubscription(f"is an object, not {shortened(found)}", name)
    for key in found:
        if key not in known:
            raise InvalidSubscription(f"is not known; there is {', '.join(known)}", f"{name}.{key}")
    return found


def _predicate(given: Mapping[str, Any]) -> Predicate:
    parts: list[str] = []
    if "source" in given:
        parts.append(f"source = {value_sql(_text(given['source'], 'source'))}")
    if types := given.get("types"):
        if not isinstance(types, list) or len(types) > TYPES_MAX:
            raise InvalidSubscription(f"is an array of up to {TYPES_MAX:,} strings", "types")
        texts = [value_sql(_text(one, f"types[{at}]")) for at, one in enumerate(types)]
        parts.append(f"type IN ({', '.join(texts)})")
    filters = given.get("filters", [])
    if not isinstance(filters, list):
        raise InvalidSubscription("is an array of filters", "filters")
    try:
        selected = cloudevents_filters.read(filters)
        if not parts:
            return selected
        if not filters:
            return parse(" AND ".join(parts))
        return parse(" AND ".join([*parts, f"({selected})"]))
    except InvalidPredicate as error:
        raise InvalidSubscription(error.reason, "filters") from None


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidSubscription(f"is a string that is not empty, not {shortened(value)}", place)
    return value


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}", re.ASCII)
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,4000}[\x21-\x7e])?|", re.ASCII)
_OWN_HEADERS = frozenset(
    "host content-length content-type transfer-encoding connection upgrade te trailer expect keep-alive "
    "proxy-connection proxy-authorization authorization cookie webhook-request-origin "
    "webhook-request-rate webhook-request-callback".split()
)
"""Headers that the broker writes, or that change what a request is."""


def _headers(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    given = settings.get("headers", {})
    place = "protocolsettings.headers"
    if not isinstance(given, dict) or len(given) > HEADERS_MAX:
        raise InvalidSubscription(f"is an object of up to {HEADERS_MAX} headers", place)
    for name, value in given.items():
        if not _HEADER_NAME.fullmatch(name):
            raise InvalidSubscription("is no name of a header", f"{place}.{name[:100]}")
        if name.lower() in _OWN_HEADERS or name.lower().startswith("ce-"):
            raise InvalidSubscription("this header is not for subscriptions", f"{place}.{name}")
        _check_header(value, f"{place}.{name}")
    return list(given.items())


def _check_header(value: Any, place: str) -> None:
    if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
        raise InvalidSubscription("is a string of printable ASCII characters", place)


def _credential(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The header Authorization. The secret is in no error."""
    found = given.get("sinkcredential")
    if found is None:
        return []
    if not isinstance(found, dict):
        raise InvalidSubscription("is an object", "sinkcredential")
    kind = found.get("credentialtype")
    wanted = _CREDENTIALS.get(kind) if isinstance(kind, str) else None
    if wanted is None:
        place = "sinkcredential.credentialtype"
        raise InvalidSubscription(f"is one of {', '.join(_CREDENTIALS)}", place)
    for name in wanted:
        if not isinstance(found.get(name), str) or not found[name]:
            raise InvalidSubscription("is needed, a string", f"sinkcredential.{name}")
    if unknown := found.keys() - {"credentialtype", "accesstokenexpiresutc", *wanted}:
        raise InvalidSubscription("is not known", f"sinkcredential.{min(unknown)}")
    if kind == "PLAIN":
        pair = f"{found['identifier']}:{found['secret']}".encode()
        return [("Authorization", f"Basic {base64.b64encode(pair).decode()}")]
    if found["accesstokentype"].lower() != "bearer":
        raise InvalidSubscription("is Bearer", "sinkcredential.accesstokentype")
    _check_header(found["accesstoken"], "sinkcredential.accesstoken")
    return [("Authorization", f"Bearer {found['accesstoken']}")]


_CREDENTIALS = {
    "PLAIN": ("identifier", "secret"),
    "ACCESSTOKEN": ("accesstoken", "accesstokentype"),
}


class UnknownSubscription(InvalidValue):
    """There is no such subscription, or it is somebody else's."""


class TooManySubscriptions(InvalidValue):
    """An identity has as many as it may have."""


class EventSubscriptions:
    """The subscriptions of a broker by identity: what `read` gives is added, retrieved, replaced, deleted.

    The service that has it starts, changes and ends deliveries, and stores `EventSubscription.stored()`
    under the identity and the id. `new_id` draws an id that cannot be guessed.
    """

    def __init__(
        self, rules: SinkRules, new_id: Callable[[], str], identity_max: int = 100
    ) -> None:
        self._rules = rules
        self._new_id = new_id
        self._identity_max = identity_max
        self._by_identity: dict[str, dict[str, EventSubscription]] = {}

    def check_room(self, identity: str) -> None:
        """Raise TooManySubscriptions if the identity has as many as it may have."""
        own = self._by_identity.get(identity, {})
        if len(own) >= self._identity_max:
            raise TooManySubscriptions(
                f"there are {len(own)} subscriptions, and no more are allowed"
            )

    def read(self, document: bytes | Mapping[str, Any], id: str = "") -> EventSubscription:
        """The subscription of a document, also of a stored one; a new one without an id. It may take
        a second, and another thread may do it. Raises InvalidSubscription."""
        return read_subscription(document, id or self._new_id(), self._rules)

    def add(self, identity: str, made: EventSubscription) -> None:
        """It takes the place of one with its id."""
        self._by_identity.setdefault(identity, {})[made.id] = made

    def retrieve(self, identity: str, id: str) -> EventSubscription:
        found = self._by_identity.get(identity, {}).get(id)
        if found is None:
            raise UnknownSubscription(f"there is no subscription {shortened(id)}")
        return found

    def query(self, identity: str) -> list[EventSubscription]:
        return list(self._by_identity.get(identity, {}).values())

    def delete(self, identity: str, id: str) -> EventSubscription:
        found = self.retrieve(identity, id)
        del self._by_identity[identity][id]
        if not self._by_identity[identity]:
            del self._by_identity[identity]
        return found
