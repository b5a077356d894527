"""What a configuration says, as frozen values: the settings of the core, and what its host needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from palio.net.config.mqtt import MqttConfig
from palio.net.config.sinks import SinkSettings
from palio.net.endpoint import Endpoint
from palio.protocol.broker.settings import Settings


@dataclass(frozen=True, slots=True)
class NeighbourAddress:
    """How this broker reaches a neighbour."""

    endpoints: tuple[Endpoint, ...]
    """Where it is dialled, in turn until one answers; none: the neighbour dials this broker."""
    tls: bool
    tls_name: str | None
    """The name in its certificate; None: the host that is dialled."""


@dataclass(frozen=True, slots=True)
class Tls:
    certificate: Path
    key: Path
    authority: Path | None
    """Signs the certificates of neighbours and clients; None: the authorities of the system."""
    require_client_certificate: bool


@dataclass(frozen=True, slots=True)
class HostLimits:
    """Bounds on sockets and on memory."""

    closing: int
    """The most sockets that are closed and still send their last bytes; others are closed at once."""
    congested_bytes: int
    """A connection on which more bytes wait to be sent is congested."""
    stuck_bytes: int
    """A congested connection on which more bytes wait to be sent is closed."""
    uncommitted_bytes: int
    """While more bytes wait for their commit, the host reads from no connection."""
    unsent_bytes: int
    """When more bytes wait to be sent on all congested connections, the largest are closed."""


@dataclass(frozen=True, slots=True)
class Times:
    dial_us_max: int
    redial_us_min: int
    redial_us_max: int
    stop_us_max: int
    """How long a stop waits for others to read their last bytes."""
    loop_warning_us: int = 50_000
    """A hold of the event loop that is longer is logged."""


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """The database that holds the broker's data, and the lease on its name there."""

    url: str = field(repr=False)  # it may hold a password
    lease_s: float


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The HTTP listener, and its bounds."""

    listen: Endpoint
    tls: bool
    origins: tuple[str, ...]
    """Other origins whose pages may use it from a browser."""
    hosts: tuple[str, ...]
    """Names under which it is reached; empty: any, on loopback only names and addresses of loopback."""
    connections_max: int
    head_bytes_max: int
    """Of the request line and the header fields."""
    body_bytes_max: int
    bodies_bytes_max: int
    """Of all requests that are being read or served."""
    head_us_max: int
    """How long a head, each 64 KiB of a body, and a TLS handshake may take."""
    idle_us_max: int
    """How long a connection may wait for its next request."""
    answer_us_max: int
    """How long a request waits for the broker."""
    stalled_us_max: int
    """How long the other end may read nothing."""
    heartbeat_us: int
    login_us: int
    """How long a cookie is good for."""
    requests_max: int
    """Of one identity, that wait for their replies."""


@dataclass(frozen=True, slots=True)
class Config:
    path: Path
    listen: Endpoint
    data: Path
    settings: Settings
    """For the core. Only its access and its schemas can change while the broker runs."""
    neighbours: dict[str, NeighbourAddress]
    tls: Tls | None
    limits: HostLimits
    times: Times
    metrics: Endpoint | None
    storage: PostgresSettings | None = None
    """None: SQLite, in the directory `data`."""
    mqtt: MqttConfig | None = None
    http: HttpSettings | None = None
    sinks: SinkSettings | None = None

    @property
    def name(self) -> str:
        return self.settings.name

    def warnings(self) -> Iterator[str]:
        """Sentences about what is allowed and probably a mistake."""
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
        if self.http is not None and not self.http.tls and not self.http.listen.is_loopback:
            yield (
                f"{self.path}: HTTP on {self.http.listen} is without TLS: tokens and messages can be "
                f"read and changed on the way; add [tls], or put a proxy with TLS before it and "
                f"listen on 127.0.0.1"
            )
        if self.metrics is not None and not self.metrics.is_loopback:
            yield f"{self.path}: metrics are shown to anybody who reaches {self.metrics}"


def changes_that_wait(running: Config, new: Config) -> list[str]:
    """The parts of a new configuration that take effect only after a restart."""
    pairs = [
        *((part, running, new) for part in Config.__slots__ if part not in ("path", "settings")),
        *((part, running.settings, new.settings) for part in Settings.__struct_fields__),
    ]
    changed = [part for part, a, b in pairs if getattr(a, part) != getattr(b, part)]
    return [part for part in dict.fromkeys(changed) if part not in ("access", "schemas")]
