"""Reading broker.toml, section by section."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import msgspec

from palio.errors import PalioError
from palio.model.language import parse
from palio.model.predicate import Predicate
from palio.net.config.http import read_http
from palio.net.config.limits import read_limits
from palio.net.config.mqtt import read_mqtt
from palio.net.config.schemas import read_schemas
from palio.net.config.sections import InvalidConfig, Section
from palio.net.config.sinks import read_sinks
from palio.net.config.values import (
    Config,
    NeighbourAddress,
    PostgresSettings,
    Times,
    Tls,
)
from palio.net.endpoint import Endpoint
from palio.protocol.broker.access import Access, Identity
from palio.protocol.broker.disclosure import Disclosure
from palio.protocol.broker.settings import (
    ROUTINGS,
    Neighbour,
    Settings,
)
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.queues import Full
from palio.protocol.policies.broker_record import WEIGHT_MAX, WEIGHT_MIN
from palio.protocol.wire.codes import NeighbourRole

ANONYMOUS = "anonymous"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SECOND = 1_000_000
_LEASE_US_MIN = _SECOND // 2
_ORPHANS_US = 7 * 86_400 * _SECOND
_USUAL = Settings("broker", Access())
_ROLES = [role.value for role in NeighbourRole]


def read(path: Path) -> Config:
    """Read a configuration; raises InvalidConfig."""
    top = Section.read(path)
    broker = top.section("broker")
    name = broker.name("name")
    listen = broker.endpoint("listen", Endpoint("127.0.0.1", 7400))
    address = broker.text("address", "")
    data = broker.file("data", path.parent / name)
    routing = broker.choice("routing", ROUTINGS, _USUAL.routing)
    advertisements = broker.truth("advertisements", _USUAL.advertisements)
    shared = broker.secret(None)
    broker.finish()
    tls = _tls(top)
    known, addresses = _neighbours(top, name, shared, tls is not None)
    limits = read_limits(top)
    full, deliveries_max, orphans_us, bounds = _durability(top)
    keepalive_us, skew_us, handshake_us, frame_us, times = _times(top)
    access, quench = _access(top, listen, tls)
    schemas = read_schemas(top)
    try:
        settings = Settings(
            name=name,
            address=address or _address(listen, tls is not None),
            access=access,
            quench=quench,
            neighbours=known,
            routing=routing,
            advertisements=advertisements,
            limits=limits.frames,
            keepalive_us=keepalive_us,
            skew_us=skew_us,
            waiting_max=limits.waiting_max,
            waiting=limits.waiting,
            connections=msgspec.structs.replace(
                limits.connections, handshake_us=handshake_us, frame_us=frame_us
            ),
            subscriptions=limits.subscriptions,
            full=full,
            deliveries_max=deliveries_max,
            orphans_us=orphans_us,
            bounds=msgspec.structs.replace(bounds, delays=limits.delays),
            last_values=limits.last_values,
            schemas=schemas,
        )
    except PalioError as error:  # of several sections together
        raise InvalidConfig(str(error), path=path) from None
    metrics, storage = _metrics(top, listen), _storage(top)
    mqtt = read_mqtt(top, limits.frames, tls is not None)
    http = read_http(top, [listen, metrics], tls is not None)
    sinks = read_sinks(top, name)
    top.finish()
    return Config(
        path,
        listen,
        data,
        settings,
        addresses,
        tls,
        limits.host,
        times,
        metrics,
        storage,
        mqtt,
        http,
        sinks,
    )


def _neighbours(
    top: Section, own: str, shared: bytes | None, has_tls: bool
) -> tuple[dict[str, Neighbour], dict[str, NeighbourAddress]]:
    known, addresses = {}, {}
    for name, section in top.sections("neighbours"):
        if name == own:
            top.wrong(
                f"[neighbours.{name}]",
                "this is the broker itself; a broker is not its own neighbour",
            )
        secret = section.secret(shared)
        if secret is None:
            section.wrong(
                "secret",
                "brokers prove who they are by a secret that both know: give secret, secret_file "
                "or secret_env here, or in [broker] for all",
            )
        known[name] = Neighbour(
            secret,
            section.number("weight", 1.0, WEIGHT_MIN, WEIGHT_MAX),
            NeighbourRole(section.choice("role", _ROLES, NeighbourRole.PEER)),
        )
        addresses[name] = NeighbourAddress(
            endpoints=section.endpoints("address"),
            tls=section.truth("tls", has_tls),
            tls_name=section.text("tls_name", None),
        )
        section.finish()
    return known, addresses


def _tls(top: Section) -> Tls | None:
    if not top.has("tls"):
        return None
    section = top.section("tls")
    pair: dict[str, Path] = {}
    for key in ("certificate", "key"):
        file = section.file(key, None)
        if file is None:
            section.wrong(key, "TLS needs a certificate and its key: two PEM files")
        pair[key] = file
    authority = section.file("authority", None)
    required = section.truth("require_client_certificate", False)
    if required and authority is None:
        section.wrong(
            "authority",
            "require_client_certificate needs it: the PEM file of the authority that signs them",
        )
    section.finish()
    for key, file in [*pair.items(), ("authority", authority)]:
        if file is not None and not file.is_file():
            section.wrong(key, f"there is no file {file}")
    return Tls(pair["certificate"], pair["key"], authority, required)


def _access(top: Section, listen: Endpoint, tls: Tls | None) -> tuple[Access, Disclosure]:
    tokens: dict[str, Identity] = {}
    certificates: dict[str, Identity] = {}
    for name, section in top.sections("identities"):
        _add_identity(name, section, tls, tokens, certificates)
    section = top.section("access")
    # By default a broker that only this machine reaches lets anybody in, for a first try.
    is_known = bool(tokens or certificates)
    is_open = section.truth("anonymous", listen.is_loopback and not is_known)
    anonymous = Identity(
        ANONYMOUS,
        subscribe=_predicate(section, "subscribe", "TRUE"),
        publish=_predicate(section, "publish", "TRUE"),
        admin=section.truth("admin", listen.is_loopback and not is_known),
    )
    quench = section.choice("quench", [level.value for level in Disclosure], _USUAL.quench)
    section.finish()
    return Access(tokens, certificates, anonymous if is_open else None), Disclosure(quench)


def _add_identity(
    name: str,
    section: Section,
    tls: Tls | None,
    tokens: dict[str, Identity],
    certificates: dict[str, Identity],
) -> None:
    token = section.text("token_sha256", None)
    certificate = section.text("certificate", None)
    if name == ANONYMOUS:
        section.wrong(
            "name", f"{ANONYMOUS!r} is whoever has no token and no certificate: see [access]"
        )
    if token is None and certificate is None:
        section.wrong(
            "token_sha256",
            "it needs a token or a certificate: give the SHA-256 of its token "
            "(`printf %s TOKEN | sha256sum`) or the common name of its certificate",
        )
    identity = Identity(
        name,
        subscribe=_predicate(section, "subscribe", None),
        publish=_predicate(section, "publish", None),
        admin=section.truth("admin", False),
    )
    section.finish()
    if token is not None:
        if not _SHA256.fullmatch(token):
            section.wrong(
                "token_sha256",
                "it is the SHA-256 of the token, 64 small hex digits: `printf %s TOKEN | sha256sum`",
            )
        if tokens.setdefault(token, identity) is not identity:
            section.wrong(
                "token_sha256",
                f"{tokens[token].name} has the same one; each identity needs its own",
            )
    if certificate is not None:
        if tls is None or tls.authority is None:
            section.wrong("certificate", "certificates are checked by TLS: set authority in [tls]")
        if certificates.setdefault(certificate, identity) is not identity:
            other = certificates[certificate].name
            section.wrong("certificate", f"{other} has the same one; each identity needs its own")


def _address(listen: Endpoint, is_secure: bool) -> str:
    """At which clients reach the broker, if that is clear from where it listens."""
    is_anywhere = listen.host in ("0.0.0.0", "::") or not listen.port
    return "" if is_anywhere else f"palio{'s' * is_secure}://{listen}"


def _predicate(section: Section, key: str, default: str | None) -> Predicate | None:
    text = section.text(key, default)
    try:
        return None if text is None else parse(text)
    except PalioError as error:
        section.wrong(key, f"{error}")


def _durability(top: Section) -> tuple[Full, int, int | None, Bounds]:
    queues, log, usual = top.section("queues"), top.section("log"), Bounds()
    full = queues.choice("full", [policy.value for policy in Full], Full.BLOCK.value)
    deliveries_max = queues.count("deliveries", 0, 0)
    # 0 is "never" too: whoever means that with it must not delete everything at once
    orphans_us = queues.duration_us("orphans", _ORPHANS_US, never=True) or None
    bounds = Bounds(
        retention_us=log.duration_us("keep", usual.retention_us),
        retention_bytes=log.size("keep_bytes", usual.retention_bytes),
        journal_bytes=log.size("bytes", usual.journal_bytes),
        cache_bytes=log.size("memory", usual.cache_bytes),
        backlog=queues.count("backlog", usual.backlog),
        window=queues.count("window", usual.window),
        window_bytes=queues.size("window_bytes", usual.window_bytes),
        queue=queues.count("bound", usual.queue),
        queue_bytes=queues.size("bound_bytes", usual.queue_bytes),
        publisher_us=log.duration_us("publishers", usual.publisher_us),
    )
    queues.finish()
    log.finish()
    if bounds.journal_bytes < bounds.retention_bytes:
        log.wrong("bytes", "it must not be smaller than keep_bytes")
    return Full(full), deliveries_max, orphans_us, bounds


def _times(top: Section) -> tuple[int, int, int, int, Times]:
    section, usual = top.section("times"), _USUAL.connections
    keepalive_us = section.duration_us("keepalive", _USUAL.keepalive_us)
    skew_us = section.duration_us("skew", _USUAL.skew_us)
    handshake_us = section.duration_us("handshake", usual.handshake_us)
    frame_us = section.duration_us("frame", usual.frame_us)
    found = Times(
        dial_us_max=section.duration_us("dial", 5 * _SECOND),
        redial_us_min=section.duration_us("redial", _SECOND // 5),
        redial_us_max=section.duration_us("redial_max", 5 * _SECOND),
        stop_us_max=section.duration_us("stop", 5 * _SECOND),
        loop_warning_us=section.duration_us("loop_warning", _SECOND // 20),
    )
    section.finish()
    if keepalive_us < _SECOND // 100:
        section.wrong("keepalive", "it must be at least 10 ms")
    if not 0 < found.redial_us_min <= found.redial_us_max:
        section.wrong("redial_max", "it must not be shorter than redial, and redial not zero")
    for key, time_us in (("handshake", handshake_us), ("frame", frame_us)):
        if time_us < _SECOND // 10:
            section.wrong(key, "it must be at least 100 ms")
    return keepalive_us, skew_us, handshake_us, frame_us, found


def _metrics(top: Section, listen: Endpoint) -> Endpoint | None:
    section = top.section("metrics")
    found = section.endpoint("listen", None)
    section.finish()
    if found is not None and found == listen and found.port:
        section.wrong("listen", f"{found} is where the broker listens; choose another port")
    return found


def _storage(top: Section) -> PostgresSettings | None:
    if not top.has("storage"):
        return None
    section = top.section("storage")
    url = section.text("url", None)
    lease_us = section.duration_us("lease_s", 3 * _SECOND)
    section.finish()
    if url is None:
        section.wrong(
            "url",
            'it is missing; for example url = "postgresql://palio@db-1,db-2/palio"; without '
            "[storage] the broker's data is in the directory `data`, in [broker]",
        )
    if not url.startswith(("postgresql://", "postgres://")):
        section.wrong("url", "it begins with postgresql://; that is the only kind of database")
    if lease_us < _LEASE_US_MIN:
        section.wrong(
            "lease_s", "it must be at least 500 ms: a busy holder must be able to renew it"
        )
    return PostgresSettings(url, lease_us / _SECOND)


def example() -> str:
    """A file with every key, its default and what it means."""
    return (files("palio.net.config") / "example.toml").read_text("utf-8")
