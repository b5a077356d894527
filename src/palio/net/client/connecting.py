"""`connect`: makes a client from a URL and options.

It does not connect yet: the client does so when it is opened.
"""

from __future__ import annotations

import ipaddress
import logging
import secrets

from palio.errors import InvalidValue
from palio.net.client.address import Address, Trust, parse_addresses, tls_context
from palio.net.client.broker_socket import dial_with
from palio.net.client.client import Client
from palio.net.client.connection import Connection
from palio.net.client.home_brokers import HomeBrokers
from palio.protocol.client.session import Session, SessionSettings

log = logging.getLogger("palio.client")


def connect(
    url: str = "palio://127.0.0.1:7400",
    *,
    token: str | None = None,
    name: str | None = None,
    tls: Trust = None,
    certificate: tuple[str, str] | None = None,
    wait: float = 0.0,
    max_wait: float = 60.0,
    settings: SessionSettings | None = None,
    first: int | None = None,
) -> Client:
    """A client of the broker at `url`; use it in `async with`, or `await` it and close it.

    url          palio://host:port, or palios:// with TLS; several addresses of one broker, which are
                 tried in turn: palio://host:port,host:port
    token        proves who the client is, where the broker asks for it
    name         how operators and receivers know the client: `note.publisher` has it; replicas of one
                 application may share it (default: a new name each time)
    tls          with palios://: an SSLContext, or the file of the authorities to trust
    certificate  with palios://: files of the client's own certificate and key
    wait         seconds to keep trying while no broker answers at first, or none takes clients
                 because it stops, has a full store or too many connections
    max_wait     seconds after which everything that waits for the broker raises Unreachable
    first        the number of the first message: for a program that, after a crash, publishes
                 the same messages in the same order under the same name, which no other client may
                 use meanwhile; messages that the broker has stored are not sent again
                 (default: numbers that were never used)
    """
    addresses = parse_addresses(url)
    for address in addresses:
        if token is not None and not address.is_secure and not _is_local(address):
            log.warning("the token for %s travels in the clear; use palios://", address)
    if first is not None and name is None:
        raise InvalidValue("`first` needs the name under which the numbers continue: name=...")
    session = Session(
        name or f"client-{secrets.token_hex(6)}",
        token or "",
        settings,
        first,
        secrets.token_hex(8) if first is None else "",
    )
    context = tls_context(addresses[0], tls, certificate)
    connection = Connection(addresses, session, dial_with(context), max_wait)

    def again(home: str) -> Client:
        return connect(
            home, token=token, name=name, tls=tls, certificate=certificate, max_wait=max_wait,
            settings=settings,
        )  # fmt: skip

    return Client(connection, wait, HomeBrokers(again, is_secure=addresses[0].is_secure))


def _is_local(address: Address) -> bool:
    try:
        return ipaddress.ip_address(address.host).is_loopback
    except ValueError:
        return address.host == "localhost"
