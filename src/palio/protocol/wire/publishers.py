"""The name of a publisher: whose numbers a message has.

    identity/name            as people know it
    identity/name/session    as brokers know it, and as it stands in headers

    /broker/session          of what a broker publishes itself: no identity has an empty name

Clients that share a name have sessions of their own, which number their messages independently. So a
message is named by its publisher, session and number. No part of the name has a / in it.
"""

from __future__ import annotations


def publisher_key(identity: str, name: str, session: str) -> str:
    """The publisher as brokers know it; without a session, the name alone numbers the messages."""
    return f"{identity}/{name}/{session}" if session else f"{identity}/{name}"


def split_key(key: str) -> tuple[str, str]:
    """The publisher as people know it, and the session.

    >>> split_key(publisher_key("ann", "shop", "5f"))
    ('ann/shop', '5f')
    >>> split_key(publisher_key("ann", "shop", ""))
    ('ann/shop', '')
    """
    identity, _, rest = key.partition("/")
    name, _, session = rest.partition("/")
    return f"{identity}/{name}" if rest else identity, session


def broker_key(broker: str, session: str) -> str:
    """The publisher of what a broker publishes itself.

    >>> split_key(broker_key("milan", "dead"))
    ('/milan', 'dead')
    """
    return f"/{broker}/{session}"


def is_broker(key: str) -> bool:
    """Whether the publisher is a broker: no client can be."""
    return key.startswith("/")


def identity_of(key: str) -> str:
    """The identity that a publisher belongs to."""
    return key.partition("/")[0]
