"""broker.toml: what a broker is, whom it knows and what it allows.

`read` gives a frozen `Config`: the settings of the core (`protocol.settings`), and what its host
needs. Or it raises InvalidConfig with a sentence that names the file, the key and the remedy.
`Config.warnings` are sentences about what is allowed, but hardly meant. `example` is a file with
every key, its default and what it means; a test reads it.

Secrets and hashes of tokens are in no `repr`, so that they are in no log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from palio.errors import PalioError
from palio.model.language import parse
from palio.model.predicate import Predicate
from palio.net.sections import Endpoint, Section
from palio.protocol.access import Access, Identity
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.queues import Full
from palio.protocol.frames import Limits
from palio.protocol.settings import ROUTINGS, Neighbour, Settings

ANONYMOUS = "anonymous"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SECOND = 1_000_000
_USUAL = Settings("broker", Access())


@dataclass(frozen=True, slots=True)
class Way:
    """How a neighbour is reached."""

    endpoint: Endpoint | None
    """Where it is dialled; None: it dials this broker."""
    tls: bool
    tls_name: str | None
    """The name in its certificate; None: the host of its endpoint."""


@dataclass(frozen=True, slots=True)
class Tls:
    certificate: Path
    key: Path
    authority: Path | None
    """Who signs the certificates of others; None: the authorities of the system."""
    require_client_certificate: bool


@dataclass(frozen=True, slots=True)
class Room:
    """What connections and the host may take of memory."""

    connections: int
    link_bytes: int
    """What may wait to be sent on a connection before it is pressed."""
    stuck_bytes: int
    """A connection for which this much waits is closed."""
    uncommitted_bytes: int
    """What may wait for the disk before nothing more is read."""


@dataclass(frozen=True, slots=True)
class Times:
    dial_us_max: int
    redial_us_min: int
    redial_us_max: int
    stop_us_max: int
    """The most that a stop waits for others to read their last bytes."""


@dataclass(frozen=True, slots=True)
class Config:
    path: Path
    listen: Endpoint
    data: Path
    settings: Settings
    """Of the core; its access alone can change while the broker runs."""
    neighbours: dict[str, Way]
    tls: Tls | None
    room: Room
    times: Times
    metrics: Endpoint | None

    @property
    def name(self) -> str:
        return self.settings.name

    def warnings(self) -> Iterator[str]:
        """Sentences for whoever starts it."""
        access = self.settings.access
        if not self.listen.is_loopback:
            if self.tls is None:
                yield (
                    f"{self.path}: it listens on {self.listen} without TLS: tokens and messages can "
                    f"be read and changed on the way; add [tls], or listen on 127.0.0.1"
                )
            if access.anonymous is not None:
                yield (
                    f"{self.path}: it listens on {self.listen} and lets anybody in; add "
                    f"[identities.NAME] and set anonymous = false in [access]"
                )
        if access.anonymous is None and not access.tokens and not access.certificates:
            yield (
                f"{self.path}: nobody can connect: there is no [identities.NAME], and anonymous is "
                f"false in [access]"
            )
        if self.metrics is not None and not self.metrics.is_loopback:
            yield f"{self.path}: metrics are shown to anybody who reaches {self.metrics}"


def read(path: Path) -> Config:
    """The configuration in a file."""
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
    known, ways = _neighbours(top, name, shared, tls is not None)
    limits, room, subscriptions, waiting = _limits(top)
    full, bounds = _durability(top)
    keepalive_us, times = _times(top)
    settings = Settings(
        name=name,
        access=_access(top, listen, tls),
        neighbours=known,
        routing=routing,
        advertisements=advertisements,
        limits=limits,
        keepalive_us=keepalive_us,
        waiting_max=waiting,
        subscriptions_max=subscriptions,
        full=full,
        bounds=bounds,
    )
    metrics = _metrics(top, listen)
    top.finish()
    return Config(path, listen, data, settings, ways, tls, room, times, metrics)


def _neighbours(
    top: Section, own: str, shared: bytes | None, has_tls: bool
) -> tuple[dict[str, Neighbour], dict[str, Way]]:
    known, ways = {}, {}
    for name, section in top.sections("neighbours"):
        if name == own:
            top.wrong(f"[neighbours.{name}]", "this is the broker itself; it is no neighbour")
        secret = section.secret(shared)
        if secret is None:
            section.wrong(
                "secret",
                "brokers prove who they are by a secret that both know: give secret, secret_file "
                "or secret_env here, or in [broker] for all",
            )
        known[name] = Neighbour(secret, section.number("weight", 1.0))
        ways[name] = Way(
            endpoint=section.endpoint("address", None),
            tls=section.truth("tls", has_tls),
            tls_name=section.text("tls_name", None),
        )
        section.finish()
    return known, ways


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
        section.wrong("authority", "whose certificates are required? Give the authority's PEM file")
    section.finish()
    for key, file in [*pair.items(), ("authority", authority)]:
        if file is not None and not file.is_file():
            section.wrong(key, f"there is no file {file}")
    return Tls(pair["certificate"], pair["key"], authority, required)


def _access(top: Section, listen: Endpoint, tls: Tls | None) -> Access:
    tokens: dict[str, Identity] = {}
    certificates: dict[str, Identity] = {}
    for name, section in top.sections("identities"):
        _add_identity(name, section, tls, tokens, certificates)
    section = top.section("access")
    # Without a word about it, a broker that only this machine reaches is open, for a first try.
    is_known = bool(tokens or certificates)
    is_open = section.truth("anonymous", listen.is_loopback and not is_known)
    anonymous = Identity(
        ANONYMOUS,
        subscribe=_predicate(section, "subscribe", "TRUE"),
        publish=_predicate(section, "publish", "TRUE"),
        admin=section.truth("admin", listen.is_loopback and not is_known),
    )
    section.finish()
    return Access(tokens, certificates, anonymous if is_open else None)


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
        section.wrong("name", "whoever comes without token and certificate is in [access]")
    if token is None and certificate is None:
        section.wrong(
            "token_sha256",
            "how is it known? Give the SHA-256 of its token (`printf %s TOKEN | sha256sum`) or the "
            "common name of its certificate",
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
            section.wrong("token_sha256", f"{tokens[token].name} has the same; each has its own")
    if certificate is not None:
        if tls is None or tls.authority is None:
            section.wrong("certificate", "certificates are checked by TLS: set authority in [tls]")
        if certificates.setdefault(certificate, identity) is not identity:
            other = certificates[certificate].name
            section.wrong("certificate", f"{other} has the same; each has its own")


def _predicate(section: Section, key: str, default: str | None) -> Predicate | None:
    text = section.text(key, default)
    try:
        return None if text is None else parse(text)
    except PalioError as error:
        section.wrong(key, f"{error}")


def _limits(top: Section) -> tuple[Limits, Room, int, int]:
    section, usual = top.section("limits"), _USUAL.limits
    frames = Limits(
        word=section.size("word", usual.word),
        header=section.size("header", usual.header),
        attributes=section.size("attributes", usual.attributes),
        body=section.size("body", usual.body),
    )
    room = Room(
        connections=section.count("connections", 10_000),
        link_bytes=section.size("link", 1 << 20),
        stuck_bytes=section.size("stuck", 64 << 20),
        uncommitted_bytes=section.size("uncommitted", 64 << 20),
    )
    subscriptions = section.count("subscriptions", _USUAL.subscriptions_max)
    waiting = section.count("waiting", _USUAL.waiting_max)
    section.finish()
    if frames.frame >= 1 << 32:
        section.wrong("body", "a frame is smaller than 4 GiB in all")
    if room.stuck_bytes < room.link_bytes + frames.frame:
        section.wrong("stuck", "it must hold `link` and a whole frame, or the largest never pass")
    return frames, room, subscriptions, waiting


def _durability(top: Section) -> tuple[Full, Bounds]:
    queues, log, usual = top.section("queues"), top.section("log"), Bounds()
    full = queues.choice("full", [way.value for way in Full], Full.BLOCK.value)
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


def _times(top: Section) -> tuple[int, Times]:
    section = top.section("times")
    keepalive_us = section.duration_us("keepalive", _USUAL.keepalive_us)
    found = Times(
        dial_us_max=section.duration_us("dial", 5 * _SECOND),
        redial_us_min=section.duration_us("redial", _SECOND // 5),
        redial_us_max=section.duration_us("redial_max", 5 * _SECOND),
        stop_us_max=section.duration_us("stop", 5 * _SECOND),
    )
    section.finish()
    if keepalive_us < _SECOND // 100:
        section.wrong("keepalive", "the least is 10 ms")
    if not 0 < found.redial_us_min <= found.redial_us_max:
        section.wrong("redial_max", "it must not be shorter than redial, and redial not zero")
    return keepalive_us, found


def _metrics(top: Section, listen: Endpoint) -> Endpoint | None:
    section = top.section("metrics")
    found = section.endpoint("listen", None)
    section.finish()
    if found is not None and found == listen and found.port:
        section.wrong("listen", f"{found} is where the broker listens; choose another port")
    return found


def changes_that_wait(running: Config, read: Config) -> list[str]:
    """Of a configuration that was read again: the parts that only a new start brings."""
    pairs = [
        *((part, running, read) for part in Config.__slots__ if part not in ("path", "settings")),
        *((part, running.settings, read.settings) for part in Settings.__struct_fields__),
    ]
    changed = [part for part, a, b in pairs if getattr(a, part) != getattr(b, part)]
    return [part for part in dict.fromkeys(changed) if part != "access"]


def example() -> str:
    """A file with every key, its default and what it means."""
    return (files("palio.net") / "example.toml").read_text("utf-8")
