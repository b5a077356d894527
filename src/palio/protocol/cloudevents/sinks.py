"""Where events may be pushed to: URLs and addresses that a broker delivers to, and those it refuses.

Whoever may create a subscription chooses a URL that the broker will send requests to. So by default only public
addresses are allowed, over https. The URL is checked when a subscription is made, and every address that its name
resolves to before each connection, which then goes to a checked address: a name that changes its address afterwards gains nothing.
Redirects are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import urlsplit

from palio.errors import InvalidValue
from palio.model.values import shortened

Address: TypeAlias = IPv4Address | IPv6Address
URL_MAX = 2_000
"""Characters of a URL."""
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class SinkRules:
    """`hosts` are names or `*.example.com`; without any every name is allowed. `networks` are allowed
    although they are not public, as `10.1.0.0/16`. `ports` without any allows all."""

    hosts: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    allows_http: bool = False

    def __post_init__(self) -> None:
        for one in self.networks:
            try:
                ip_network(one)
            except ValueError as error:
                raise InvalidValue(f"{one!r} is no network: {error}") from None


@dataclass(frozen=True, slots=True)
class AllowedSink:
    """A URL that is allowed, in parts. `target` is path and query."""

    url: str
    scheme: str
    host: str
    port: int
    target: str


class RefusedSink(InvalidValue):
    """A URL or an address that the broker does not deliver to."""


def check_sink(url: object, rules: SinkRules) -> AllowedSink:
    """The parts of a URL that may be a sink; raises RefusedSink."""
    if not isinstance(url, str) or not url:
        raise RefusedSink(f"a sink is a URL, not {shortened(url)}")
    if (
        len(url) > URL_MAX
        or not url.isascii()
        or not url.isprintable()
        or " " in url
        or "\\" in url
    ):
        raise RefusedSink(f"a sink is a URL of up to {URL_MAX:,} printable ASCII characters")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise RefusedSink(f"{shortened(url)} is no URL: {error}") from None
    schemes = ("https", "http") if rules.allows_http else ("https",)
    if parts.scheme not in schemes:
        raise RefusedSink(f"a sink is a URL with {' or '.join(schemes)}, not {shortened(url)}")
    if not host or "%" in host:
        raise RefusedSink(f"{shortened(url)} has no host")
    if "@" in parts.netloc:
        raise RefusedSink("a sink has no user or password in its URL", remedy="use sinkcredential")
    if parts.fragment:
        raise RefusedSink("a sink has no fragment")
    port = _PORTS[parts.scheme] if port is None else port
    if port == 0 or (rules.ports and port not in rules.ports):
        raise RefusedSink(f"port {port} is not allowed for sinks")
    host = host.removesuffix(".").lower()
    literal = _literal(host)
    if literal is None and (len(host) > 253 or not _NAME.fullmatch(host)):
        raise RefusedSink(f"{shortened(host)} is neither a name of a host nor an address")
    if literal is not None:
        check_address(literal, rules)
    if rules.hosts and not any(_is_of(host, pattern.lower()) for pattern in rules.hosts):
        raise RefusedSink(f"{shortened(host)} is not among the hosts that are allowed for sinks")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return AllowedSink(url, parts.scheme, host, port, target)


_NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", re.ASCII)
"""Others make resolvers raise errors of their own, for each attempt."""


def _literal(host: str) -> Address | None:
    """An address in the place of a name. Forms that only some resolvers read (`127.1`, `0x7f000001`) are names here,
    and checked when they are resolved."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def _is_of(host: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) > len(pattern) - 1
    return host == pattern


def check_addresses(host: str, found: Iterable[str], rules: SinkRules) -> list[Address]:
    """The addresses of a name, if all of them are allowed; raises RefusedSink."""
    try:
        addresses = [ip_address(one.partition("%")[0]) for one in found]
    except ValueError as error:
        raise RefusedSink(f"{shortened(host)} has an address that is none: {error}") from None
    if not addresses:
        raise RefusedSink(f"{shortened(host)} has no address")
    for address in addresses:
        check_address(address, rules)
    return addresses


_TRANSLATED = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))
"""IPv6 addresses that gateways translate to the IPv4 address in their last bits."""
_TUNNELLED = (0x5EFE, 0x0200_5EFE)
"""The third quarter of an address of ISATAP: an IPv4 address follows, to which a tunnel leads."""
_LOCAL = (ip_network("fec0::/10"), ip_network("3fff::/20"), ip_network("192.88.99.0/24"))
"""Addresses of a site, of documents and of relays, which the standard library takes for public."""


def check_address(address: Address, rules: SinkRules) -> None:
    """Raise RefusedSink unless it is public or among the networks of the rules."""
    inner = _inner(address)
    if inner is not None:
        check_address(inner, rules)
        return
    if any(_contains(ip_network(network), address) for network in rules.networks):
        return
    is_local = any(_contains(network, address) for network in _LOCAL)
    if is_local or not address.is_global or address.is_multicast or address.is_reserved:
        raise RefusedSink(
            "the address of this sink is not public",
            remedy="the operator of the broker may allow its network",
        )


def _contains(network: IPv4Network | IPv6Network, address: Address) -> bool:
    return address.version == network.version and address in network


def _inner(address: Address) -> Address | None:
    """The IPv4 address that an IPv6 address leads to."""
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    is_compatible = int(address) >> 32 == 0 and int(address) > 1  # ::a.b.c.d
    is_translated = any(address in network for network in _TRANSLATED)
    if is_compatible or is_translated or int(address) >> 32 & 0xFFFF_FFFF in _TUNNELLED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None
