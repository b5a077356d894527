"""Where a socket is: a host and a port."""

from __future__ import annotations

from typing import NamedTuple


class Endpoint(NamedTuple):
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_endpoint(text: str) -> Endpoint:
    """An endpoint such as 127.0.0.1:7400 or [::1]:7400; raises ValueError with the reason.

    >>> parse_endpoint("[::1]:7400")
    Endpoint(host='::1', port=7400)
    """
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not host or ("[" in text) != (":" in host):
        raise ValueError('an address is "HOST:PORT", for example "127.0.0.1:7400"')
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ValueError(f"{port!r} is no port; ports are 0 to 65535")
    return Endpoint(host, int(port))
