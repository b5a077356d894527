"""Addresses of a broker, and TLS contexts for them.

`palio://host:port`, with TLS `palios://host:port`. A broker that has a standby is at one of several
addresses: `palio://a:7400,b:7400`.
"""

from __future__ import annotations

import os
import ssl
from typing import TypeAlias
from urllib.parse import urlsplit

import msgspec

from palio.errors import InvalidValue

PORT = 7400

Trust: TypeAlias = ssl.SSLContext | str | os.PathLike[str] | None
"""A context, or a file with the certificates of authorities; None: the authorities of the system."""


class Address(msgspec.Struct, frozen=True):
    host: str
    port: int
    is_secure: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"palio{'s' * self.is_secure}://{host}:{self.port}"


def parse_addresses(url: str) -> tuple[Address, ...]:
    """
    >>> [str(address) for address in parse_addresses("palio://a,[::1]:7401")]
    ['palio://a:7400', 'palio://[::1]:7401']
    """
    scheme, _, rest = url.partition("://")
    if "," not in rest:
        return (parse_address(url),)
    try:
        found = [parse_address(f"{scheme}://{part}") for part in rest.split(",")]
    except InvalidValue as error:
        raise InvalidValue(
            f"{error}; several addresses of one broker are palio://host:port,host:port"
        ) from None
    return tuple(dict.fromkeys(found))


def parse_address(url: str) -> Address:
    """
    >>> parse_address("palio://[::1]:7401").host, str(parse_address("palios://broker"))
    ('::1', 'palios://broker:7400')
    """
    try:
        parts = urlsplit(url)
        port = parts.port or PORT
    except ValueError as error:
        raise InvalidValue(f"the address {url!r}: {error}") from None
    if parts.scheme not in ("palio", "palios") or not parts.hostname:
        raise InvalidValue(
            f"the address {url!r} is not of the form palio://host:port (or palios:// for TLS)"
        )
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username or parts.password:
        raise InvalidValue(
            f"the address of the broker at {parts.hostname}:{port} has more than host and port; "
            "give the token as an argument"
        )
    return Address(parts.hostname, port, parts.scheme == "palios")


def tls_context(
    address: Address, tls: Trust, certificate: tuple[str, str] | None
) -> ssl.SSLContext | None:
    """The TLS context for an address; None if it uses no TLS."""
    if not address.is_secure:
        if tls is not None or certificate is not None:
            raise InvalidValue(f"{address} has no TLS; write palios:// to use a certificate")
        return None
    try:
        if isinstance(tls, ssl.SSLContext):
            context = tls
        else:
            context = ssl.create_default_context(cafile=None if tls is None else os.fspath(tls))
        if certificate is not None:
            context.load_cert_chain(*certificate)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(map(str, ([] if tls is None else [tls]) + list(certificate or ())))
        raise InvalidValue(f"certificates for {address} from {files}: {error}") from None
    return context
