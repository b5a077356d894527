"""A certificate authority and certificates that it signs, to try TLS on one machine.

The program `openssl` makes them, for this machine's loopback names. They are valid for a year.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from palio.errors import MissingSoftware, PalioError

_DAYS = "365"
_NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:0:0:0:0:0:0:0:1"


class Certificates(NamedTuple):
    """Three PEM files."""

    authority: Path
    certificate: Path
    key: Path


def make_certificates(folder: Path) -> Certificates:
    """Make certificates in a folder, or use those that are there."""
    made = Certificates(folder / "authority.pem", folder / "broker.pem", folder / "broker.key")
    if all(path.exists() for path in made):
        return made
    authority_key, request, extensions = (
        folder / name for name in ("authority.key", "broker.csr", "broker.ext")
    )
    extensions.write_text(_NAMES + "\n")
    _openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-sha256", "-days", _DAYS),
        *("-subj", "/CN=palio local authority", "-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        *("-keyout", authority_key, "-out", made.authority),
    )
    _openssl(
        *("req", "-newkey", "rsa:2048", "-nodes", "-sha256", "-subj", "/CN=palio local broker"),
        *("-keyout", made.key, "-out", request),
    )
    _openssl(
        *("x509", "-req", "-sha256", "-days", _DAYS, "-in", request, "-CA", made.authority),
        *("-CAkey", authority_key, "-CAcreateserial", "-extfile", extensions),
        *("-out", made.certificate),
    )
    for path in (authority_key, made.key):
        path.chmod(0o600)
    return made


def _openssl(*arguments: str | Path) -> None:
    try:
        done = subprocess.run(
            ["openssl", *map(str, arguments)], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise MissingSoftware(
            f"certificates are made by the program openssl, which does not start: {error.strerror}; "
            f"install it, or do without TLS"
        ) from None
    if done.returncode:
        reason = done.stderr.strip().splitlines() or ["no reason"]
        raise PalioError(f"openssl {arguments[0]} made no certificate: {reason[-1]}")
