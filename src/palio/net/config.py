"""broker.toml: what a broker is, whom it knows and what it allows.

`read` gives a frozen `Config`, or raises InvalidConfig with a sentence that names the file, the
key and the remedy. `Config.warnings` are sentences about what is allowed, but hardly meant.
`example` is a file with every key, its default and what it means; a test reads it.

Secrets and hashes of tokens are in no `repr`, so that they are in no log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from palio.errors import PalioError
from palio.model.language import parse
from palio.model.predicate import Predicate
from palio.net.sections import Endpoint, Section
from palio.protocol.frames import Limits

ROUTINGS = ("forwarding", "PSF", "iPS", "PIF", "DRP")
FULL = ("block", "drop", "end")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Neighbour:
    address: Endpoint | None
    """Where it is dialled; None: it dials this broker."""
    weight: float
    secret: bytes = field(repr=False)
    tls: bool
    tls_name: str | None
    """The name in its certificate; None: the host of its address."""


@dataclass(frozen=True, slots=True)
class Tls:
    certificate: Path
    key: Path
    authority: Path | None
    """Who signs the certificates of others; None: the authorities of the system."""
    require_client_certificate: bool


@dataclass(frozen=True, slots=True)
class Grant:
    """What somebody may do; None: nothing of the kind."""

    subscribe: Predicate | None
    publish: Predicate | None
    admin: bool = False
    token_sha256: str | None = field(default=None, repr=False)
    certificate: str | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """Who may do what. This alone can change while the broker runs."""

    anonymous: Grant | None
    identities: dict[str, Grant]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of anything there may be."""

    frames: Limits
    connections: int
    subscriptions: int
    """Of one client."""
    link_bytes: int
    """What may wait to be sent on a connection before its messages wait, or are dropped."""
    stuck_bytes: int
    """A connection for which this much waits is closed."""
    uncommitted_bytes: int
    """What may wait for the disk before nothing more is read."""


@dataclass(frozen=True, slots=True)
class Queues:
    bound: int
    """Messages that wait for one durable subscription."""
    full: str
    """block, drop or end."""
    backlog: int
    """Messages that wait for one broker."""
    window: int
    """Of these, how many are under way."""


@dataclass(frozen=True, slots=True)
class Log:
    keep_us: int
    """How long a message can be replayed after all have it."""
    keep_bytes: int


@dataclass(frozen=True, slots=True)
class Times:
    ping_us: int
    dead_us: int
    """Who was not heard for this long is gone."""
    handshake_us: int
    refresh_us: int
    age_us: int
    """What a broker said longer ago no longer counts."""
    redial_us_min: int
    redial_us_max: int
    stop_us_max: int
    """The most that a stop waits for others to read their last bytes."""


@dataclass(frozen=True, slots=True)
class Config:
    path: Path
    name: str
    listen: Endpoint
    data: Path
    routing: str
    advertisements: bool
    neighbours: dict[str, Neighbour]
    tls: Tls | None
    access: Access
    bounds: Bounds
    queues: Queues
    log: Log
    times: Times
    metrics: Endpoint | None

    def warnings(self) -> Iterator[str]:
        """Sentences for whoever starts it."""
        if not self.listen.is_loopback:
            if self.tls is None:
                yield (
                    f"{self.path}: it listens on {self.listen} without TLS: tokens and messages can "
                    f"be read and changed on the way; add [tls], or listen on 127.0.0.1"
                )
            if self.access.anonymous is not None:
                yield (
                    f"{self.path}: it listens on {self.listen} and lets anybody in; add "
                    f"[identities.NAME] and set anonymous = false in [access]"
                )
        if self.access.anonymous is None and not self.access.identities:
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
    listen = broker.address("listen", Endpoint("127.0.0.1", 7400))
    data = broker.file("data", path.parent / name)
    routing = broker.choice("routing", ROUTINGS, "forwarding")
    advertisements = broker.truth("advertisements", False)
    shared = broker.secret(None)
    broker.finish()
    tls = _tls(top)
    config = Config(
        path=path,
        name=name,
        listen=listen,
        data=data,
        routing=routing,
        advertisements=advertisements,
        neighbours=_neighbours(top, name, shared, tls is not None),
        tls=tls,
        access=_access(top, listen, tls),
        bounds=_bounds(top),
        queues=_queues(top),
        log=_log(top),
        times=_times(top),
        metrics=_metrics(top, listen),
    )
    top.finish()
    return config


def _neighbours(
    top: Section, own: str, shared: bytes | None, has_tls: bool
) -> dict[str, Neighbour]:
    found = {}
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
        found[name] = Neighbour(
            address=section.address("address", None),
            weight=section.number("weight", 1.0),
            secret=secret,
            tls=section.truth("tls", has_tls),
            tls_name=section.text("tls_name", None),
        )
        section.finish()
    return found


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
    identities: dict[str, Grant] = {}
    for name, section in top.sections("identities"):
        identities[name] = _identity(name, section, identities, tls)
    section = top.section("access")
    # Without a word about it, a broker that only this machine reaches is open, for a first try.
    is_open = section.truth("anonymous", listen.is_loopback and not identities)
    grant = Grant(_predicate(section, "subscribe", "TRUE"), _predicate(section, "publish", "TRUE"))
    section.finish()
    return Access(grant if is_open else None, identities)


def _identity(name: str, section: Section, others: dict[str, Grant], tls: Tls | None) -> Grant:
    token = section.text("token_sha256", None)
    certificate = section.text("certificate", None)
    if token is None and certificate is None:
        section.wrong(
            "token_sha256",
            "how is it known? Give the SHA-256 of its token (`printf %s TOKEN | sha256sum`) or the "
            "common name of its certificate",
        )
    if token is not None and not _SHA256.fullmatch(token):
        section.wrong(
            "token_sha256",
            "it is the SHA-256 of the token, 64 small hex digits: `printf %s TOKEN | sha256sum`",
        )
    if certificate is not None and (tls is None or tls.authority is None):
        section.wrong("certificate", "certificates are checked by TLS: set authority in [tls]")
    for other, grant in others.items():
        if token is not None and token == grant.token_sha256:
            section.wrong("token_sha256", f"{other} has the same token; each has its own")
        if certificate is not None and certificate == grant.certificate:
            section.wrong("certificate", f"{other} has the same one; each has its own")
    made = Grant(
        subscribe=_predicate(section, "subscribe", None),
        publish=_predicate(section, "publish", None),
        admin=section.truth("admin", False),
        token_sha256=token,
        certificate=certificate,
    )
    section.finish()
    return made


def _predicate(section: Section, key: str, default: str | None) -> Predicate | None:
    text = section.text(key, default)
    try:
        return None if text is None else parse(text)
    except PalioError as error:
        section.wrong(key, f"{error}")


def _bounds(top: Section) -> Bounds:
    section, usual = top.section("limits"), Limits()
    found = Bounds(
        frames=Limits(
            word=section.size("word", usual.word),
            header=section.size("header", usual.header),
            attributes=section.size("attributes", usual.attributes),
            body=section.size("body", usual.body),
        ),
        connections=section.count("connections", 10_000),
        subscriptions=section.count("subscriptions", 10_000),
        link_bytes=section.size("link", 1 << 20),
        stuck_bytes=section.size("stuck", 64 << 20),
        uncommitted_bytes=section.size("uncommitted", 64 << 20),
    )
    section.finish()
    if found.frames.frame >= 1 << 32:
        section.wrong("body", "a frame is smaller than 4 GiB in all")
    if found.stuck_bytes < found.link_bytes + found.frames.frame:
        section.wrong("stuck", "it must hold `link` and a whole frame, or the largest never pass")
    return found


def _queues(top: Section) -> Queues:
    section = top.section("queues")
    found = Queues(
        bound=section.count("bound", 1_000_000),
        full=section.choice("full", FULL, "block"),
        backlog=section.count("backlog", 1_000_000),
        window=section.count("window", 1000),
    )
    section.finish()
    return found


def _log(top: Section) -> Log:
    section = top.section("log")
    found = Log(
        keep_us=section.duration_us("keep", 3600 * _SECOND),
        keep_bytes=section.size("keep_bytes", 1 << 30),
    )
    section.finish()
    return found


def _times(top: Section) -> Times:
    section = top.section("times")
    found = Times(
        ping_us=section.duration_us("ping", _SECOND),
        dead_us=section.duration_us("dead", 3 * _SECOND),
        handshake_us=section.duration_us("handshake", 5 * _SECOND),
        refresh_us=section.duration_us("refresh", 20 * _SECOND),
        age_us=section.duration_us("age", 60 * _SECOND),
        redial_us_min=section.duration_us("redial", _SECOND // 5),
        redial_us_max=section.duration_us("redial_max", 5 * _SECOND),
        stop_us_max=section.duration_us("stop", 5 * _SECOND),
    )
    section.finish()
    for short, long in (("ping", "dead"), ("refresh", "age"), ("redial", "redial_max")):
        low = {"ping": found.ping_us, "refresh": found.refresh_us, "redial": found.redial_us_min}
        high = {"dead": found.dead_us, "age": found.age_us, "redial_max": found.redial_us_max}
        if not 0 < low[short] <= high[long]:
            section.wrong(long, f"it must not be shorter than {short}, and {short} not zero")
    return found


def _metrics(top: Section, listen: Endpoint) -> Endpoint | None:
    section = top.section("metrics")
    found = section.address("listen", None)
    section.finish()
    if found is not None and found == listen and found.port:
        section.wrong("listen", f"{found} is where the broker listens; choose another port")
    return found


def changes_that_wait(running: Config, read: Config) -> list[str]:
    """Of a configuration that was read again: the parts that only a new start brings."""
    parts = [name for name in Config.__slots__ if name not in ("path", "access")]
    return [name for name in parts if getattr(running, name) != getattr(read, name)]


def example() -> str:
    """A file with every key, its default and what it means."""
    return (files("palio.net") / "example.toml").read_text("utf-8")
