"""Reading broker.toml, section by section."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import msgspec

from palio.errors import PalioError
from palio.model.language import parse
from palio.model.predicate import Predicate
from palio.net.config.sections import Section
from palio.net.config.values import (
    Config,
    HostLimits,
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
    WAITING_OVERHEAD,
    ConnectionBounds,
    Neighbour,
    Settings,
    SubscriptionBounds,
    WaitingBounds,
)
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.queues import Full
from palio.protocol.policies.broker_record import FILTERS_MAX, WEIGHT_MAX, WEIGHT_MIN
from palio.protocol.wire.frames import Limits
from palio.protocol.wire.parts import CONTROL_BYTES_MIN, TEXT_BYTES_MAX

ANONYMOUS = "anonymous"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SECOND = 1_000_000
_LEASE_US_MIN = _SECOND // 2
_USUAL = Settings("broker", Access())
_FRAMES_MIN = 4
"""So many of the largest frames may be unfinished by default."""


def read(path: Path) -> Config:
    """Read a configuration; raises InvalidConfig."""
    top = Section.read(path)
    broker = top.section("broker")
    name = broker.name("name")
    listen = broker.endpoint("listen", Endpoint("127.0.0.1", 7400))
    data = broker.file("data", path.parent / name)
    routing = broker.choice("routing", ROUTINGS, _USUAL.routing)
    advertisements = broker.truth("advertisements", _USUAL.advertisements)
    shared = broker.secret(None)
    broker.finish()
    tls = _tls(top)
    known, addresses = _neighbours(top, name, shared, tls is not None)
    limits = _limits(top)
    full, bounds = _durability(top)
    keepalive_us, skew_us, handshake_us, frame_us, times = _times(top)
    access, quench = _access(top, listen, tls)
    settings = Settings(
        name=name,
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
        bounds=bounds,
    )
    metrics, storage = _metrics(top, listen), _storage(top)
    top.finish()
    return Config(
        path, listen, data, settings, addresses, tls, limits.host, times, metrics, storage
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
        known[name] = Neighbour(secret, section.number("weight", 1.0, WEIGHT_MIN, WEIGHT_MAX))
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


def _predicate(section: Section, key: str, default: str | None) -> Predicate | None:
    text = section.text(key, default)
    try:
        return None if text is None else parse(text)
    except PalioError as error:
        section.wrong(key, f"{error}")


class _Limits(NamedTuple):
    """What [limits] says, for whom it concerns."""

    frames: Limits
    host: HostLimits
    connections: ConnectionBounds
    subscriptions: SubscriptionBounds
    waiting_max: int
    waiting: WaitingBounds


def _limits(top: Section) -> _Limits:
    section, usual = top.section("limits"), _USUAL.limits
    section.renamed("word", "control")
    frames = Limits(
        control=section.size("control", usual.control),
        header=section.size("header", usual.header),
        attributes=section.size("attributes", usual.attributes),
        body=section.size("body", usual.body),
    )
    connections = _connection_bounds(section, frames)
    host = HostLimits(
        closing=connections.strangers_max,
        congested_bytes=section.size("link", 1 << 20),
        stuck_bytes=section.size("stuck", 64 << 20),
        uncommitted_bytes=section.size("uncommitted", 64 << 20),
        unsent_bytes=section.size("unsent", 1 << 30),
    )
    subscriptions = SubscriptionBounds(
        subscriptions_max=section.count("subscriptions", _USUAL.subscriptions.subscriptions_max),
        text_bytes_max=section.size("predicate", _USUAL.subscriptions.text_bytes_max),
        filters_max=section.count("filters", _USUAL.subscriptions.filters_max),
        predicates_bytes_max=section.size("predicates", _USUAL.subscriptions.predicates_bytes_max),
        advertisements_max=section.count("advertisements", _USUAL.subscriptions.advertisements_max),
    )
    waiting_max = section.count("waiting", _USUAL.waiting_max)
    waiting = _waiting_bounds(section, frames)
    section.finish()
    if frames.header < usual.header:
        section.wrong(
            "header",
            f"brokers send headers of up to {usual.header >> 10} KiB: it must be that at least",
        )
    if frames.control < CONTROL_BYTES_MIN:
        section.wrong(
            "control",
            f"brokers and clients send up to {CONTROL_BYTES_MIN >> 20} MiB: it must be that at least",
        )
    if subscriptions.text_bytes_max > TEXT_BYTES_MAX:
        section.wrong("predicate", f"other brokers take {TEXT_BYTES_MAX >> 10} KiB at most")
    if subscriptions.filters_max > FILTERS_MAX:
        section.wrong("filters", f"other brokers take {FILTERS_MAX:,} at most")
    if frames.frame >= 1 << 32:
        section.wrong("body", "all parts together must be smaller than 4 GiB")
    if host.stuck_bytes < host.congested_bytes + frames.frame:
        section.wrong(
            "stuck",
            "it must be at least `link` and a whole frame together, or the largest frames never pass",
        )
    if host.unsent_bytes < host.stuck_bytes:
        section.wrong("unsent", "it is for all connections, so it must not be smaller than stuck")
    return _Limits(frames, host, connections, subscriptions, waiting_max, waiting)


def _connection_bounds(section: Section, frames: Limits) -> ConnectionBounds:
    usual = _USUAL.connections
    clients_max = section.count("connections", usual.clients_max)
    found = ConnectionBounds(
        clients_max=clients_max,
        identity_max=section.count("identity_connections", -(-clients_max * 4 // 5)),
        strangers_max=section.count("strangers", usual.strangers_max),
        unfinished_bytes=section.size(
            "unfinished", max(usual.unfinished_bytes, _FRAMES_MIN * frames.frame)
        ),
    )
    if found.unfinished_bytes < frames.frame:
        section.wrong("unfinished", "it must be at least a whole frame, or none ever arrives")
    return found


def _waiting_bounds(section: Section, frames: Limits) -> WaitingBounds:
    usual, message = _USUAL.waiting, frames.message + WAITING_OVERHEAD
    queue_bytes = section.size("waiting_bytes", max(usual.queue_bytes, message))
    identity_bytes = section.size("waiting_identity", max(usual.identity_bytes, queue_bytes))
    held_bytes = section.size("held", usual.held_bytes + max(0, frames.body - _USUAL.limits.body))
    found = WaitingBounds(
        queue_bytes=queue_bytes,
        identity_bytes=identity_bytes,
        total_bytes=section.size("waiting_total", max(usual.total_bytes, identity_bytes)),
        held_bytes=held_bytes,
        held_total_bytes=section.size("held_total", max(usual.held_total_bytes, held_bytes)),
    )
    for key, size in (("waiting_bytes", found.queue_bytes), ("held", found.held_bytes)):
        if size < message:
            section.wrong(key, "it must be at least a whole message, or the largest never wait")
    for key, size, of_one, smaller in (
        ("waiting_identity", found.identity_bytes, found.queue_bytes, "waiting_bytes"),
        ("waiting_total", found.total_bytes, found.identity_bytes, "waiting_identity"),
        ("held_total", found.held_total_bytes, found.held_bytes, "held"),
    ):
        if size < of_one:
            section.wrong(key, f"it must not be smaller than {smaller}")
    return found


def _durability(top: Section) -> tuple[Full, Bounds]:
    queues, log, usual = top.section("queues"), top.section("log"), Bounds()
    full = queues.choice("full", [policy.value for policy in Full], Full.BLOCK.value)
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
    return Full(full), bounds


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
