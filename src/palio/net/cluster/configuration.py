"""The files of a cluster: a configuration for each broker, the shared secret, certificates.

<folder>/b1.toml   a configuration for each broker            b1/     its data
         b1.log    its log                                    secret  that all brokers share
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from palio.errors import PalioError
from palio.net.cluster.certificates import Certificates, make_certificates
from palio.net.cluster.ports import HOST
from palio.protocol.wire.codes import NeighbourRole

Toml: TypeAlias = Mapping[str, Mapping[str, object]]
_USUAL: dict[str, dict[str, object]] = {"times": {"redial_max": "1 s"}}


class ClusterConfiguration:
    """`addresses` says where the first broker of each link dials the second; `masters` has the links
    whose first broker is the master of the second; `own` has more of broker.toml for single brokers, over
    what all have."""

    def __init__(
        self,
        ports: dict[str, int],
        links: list[tuple[str, str]],
        routing: str,
        has_tls: bool,
        settings: Toml,
    ) -> None:
        self.ports, self.links = ports, links
        self.addresses: dict[tuple[str, str], str | list[str]] = {
            pair: f"{HOST}:{ports[pair[1]]}" for pair in links
        }
        self.masters: list[tuple[str, str]] = []
        self.own: dict[str, Toml] = {}
        self.has_tls = has_tls
        self._routing, self._settings = routing, settings
        self._secret = ""
        self._certificates: Certificates | None = None

    @property
    def authority(self) -> Path | None:
        return None if self._certificates is None else self._certificates.authority

    def prepare(self, folder: Path) -> None:
        """Make the folder, and what all brokers share."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PalioError(f"{folder} cannot be used: {error.strerror}") from None
        self._secret = _secret(folder / "secret")
        if self.has_tls:
            self._certificates = make_certificates(folder)

    def toml(self, name: str) -> str:
        """The configuration of one broker."""
        sections: dict[str, dict[str, object]] = {
            "broker": {
                "name": name,
                "listen": f"{HOST}:{self.ports[name]}",
                "data": name,
                "routing": self._routing,
                "secret": self._secret,
            }
        }
        for a, b in self.links:
            if a == name:
                sections[f"neighbours.{b}"] = {"address": self.addresses[a, b]}
            elif b == name:
                sections[f"neighbours.{a}"] = {}
        for master, slave in self.masters:
            if slave == name:
                sections[f"neighbours.{master}"]["role"] = NeighbourRole.MASTER
            elif master == name:
                sections[f"neighbours.{slave}"]["role"] = NeighbourRole.SLAVE
        if self._certificates is not None:
            sections["tls"] = {
                key: str(getattr(self._certificates, key)) for key in self._certificates._fields
            }
        own = self.own.get(name, {})
        for key, values in [*_USUAL.items(), *self._settings.items(), *own.items()]:
            sections.setdefault(key, {}).update(values)
        return "\n".join(_lines(sections))

    def write(self, name: str, path: Path) -> Path:
        """Write the configuration of one broker to a file."""
        path.touch(0o600)  # it has the secret
        path.write_text(self.toml(name))
        return path

    def expected_links(self, running: set[str]) -> dict[str, set[str]]:
        """The neighbours of each broker that runs, if only these run."""
        expected: dict[str, set[str]] = {name: set() for name in running}
        for a, b in self.links:
            if a in running and b in running:
                expected[a].add(b)
                expected[b].add(a)
        return expected


def _lines(sections: Toml) -> Iterator[str]:
    for title, values in sections.items():
        yield f"[{title}]"
        for key, value in values.items():
            yield f"{key} = {json.dumps(value)}"
        yield ""


def _secret(path: Path) -> str:
    """The secret by which the brokers of this folder know each other; made if it does not exist."""
    if not path.exists():
        path.touch(0o600)
        path.write_text(secrets.token_hex(32))
    return path.read_text().strip()
