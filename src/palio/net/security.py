"""TLS: contexts for the three ends of a connection, and the name in a peer's certificate.

listening   shows the broker's certificate; asks clients for theirs when there is an authority
dialling    a broker to a neighbour: shows its own certificate and checks the other's and its name
connecting  a client to a broker: checks the broker's certificate, shows its own if it has one
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, NamedTuple

from palio.net.config.sections import InvalidConfig
from palio.net.config.values import Config, Tls


class TlsContexts(NamedTuple):
    """Of a broker; None: connections without TLS."""

    listening: ssl.SSLContext | None
    dialling: ssl.SSLContext | None


def contexts(config: Config) -> TlsContexts:
    """What a broker of this configuration needs; raises InvalidConfig for files that are wrong."""
    has_neighbours = any(address.tls for address in config.neighbours.values())
    return TlsContexts(
        None if config.tls is None else listening(config.tls),
        dialling(config.tls) if has_neighbours else None,
    )


def listening(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _show(context, tls.certificate, tls.key)
    if tls.authority is not None:
        _trust(context, tls.authority)
        context.verify_mode = (
            ssl.CERT_REQUIRED if tls.require_client_certificate else ssl.CERT_OPTIONAL
        )
    return context


def dialling(tls: Tls | None) -> ssl.SSLContext:
    if tls is None:
        return connecting()
    return connecting(tls.authority, tls.certificate, tls.key)


def connecting(
    authority: Path | None = None, certificate: Path | None = None, key: Path | None = None
) -> ssl.SSLContext:
    """Without an authority, trust those of the system. The name is always checked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if authority is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _trust(context, authority)
    if certificate is not None:
        _show(context, certificate, key or certificate)
    return context


def certificate_name(connection: ssl.SSLObject | ssl.SSLSocket | None) -> str:
    """The common name in the verified certificate of the other end.

    Without a common name: the alternative name, if there is exactly one. Empty: no TLS, no
    certificate, or no name.
    """
    certificate: Any = connection.getpeercert() if connection is not None else None
    if not certificate:
        return ""
    subject = certificate.get("subject", ())
    common = [value for part in subject for key, value in part if key == "commonName"]
    others = [value for _, value in certificate.get("subjectAltName", ())]
    names = common or others
    return str(names[0]) if len(names) == 1 else ""


def _show(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    try:
        # An empty password: a key that needs one is an error, not a question on a terminal.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ssl.SSLError, ValueError) as error:
        raise InvalidConfig(
            f"the certificate {certificate} with the key {key} cannot be used: "
            f"{_reason(error)}; both are PEM files, belong together, and the key has no password"
        ) from None


def _trust(context: ssl.SSLContext, authority: Path) -> None:
    try:
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        raise InvalidConfig(
            f"the authority {authority} cannot be used: {_reason(error)}; it is a PEM file of "
            f"certificates"
        ) from None


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return getattr(error, "strerror", None) or str(error)
