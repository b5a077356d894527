"""Interfaces: where a matching message goes, as typed values.

    LiveSubscription      a client's subscription, while it is connected
    SharedSubscription    a group of clients of one identity, of which one gets each message
    DurableConsumers      the clients of a durable subscription here, for messages that are not durable
    DurableSubscription   its queue, here or at another broker, for messages that are durable
    RemoteBroker          another broker that wants the message: a neighbour, or any by its link state
    NextHop               an entry of a routing scheme: brokers behind a neighbour want the message
    PublishGrant          an identity that may publish the message
    PublishSchema         a schema by which the message of a client must be valid

One table maps the filters of all of them to these values (routing/interest_table.py). The others are
peers of the router only, and get no messages:

    Watcher, Advertiser   a client that watches a pattern, or advertises
    Network               all other brokers together

The router itself is in the table too, under its name, for the parts of patterns.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec


class LiveSubscription(msgspec.Struct, frozen=True, gc=False):
    link: int
    id: int


class SharedSubscription(msgspec.Struct, frozen=True, gc=False):
    identity: str
    group: str


class DurableConsumers(msgspec.Struct, frozen=True, gc=False):
    name: str


class DurableSubscription(msgspec.Struct, frozen=True, gc=False):
    broker: str
    """Its home broker."""
    name: str


class RemoteBroker(msgspec.Struct, frozen=True, gc=False):
    name: str


class NextHop(msgspec.Struct, frozen=True, gc=False):
    name: str
    """Of the entry, as the routing policy calls it (policies/tree_policy.py)."""


class PublishGrant(msgspec.Struct, frozen=True, gc=False):
    identity: str


class PublishSchema(msgspec.Struct, frozen=True, gc=False):
    name: str


class Watcher(msgspec.Struct, frozen=True, gc=False):
    link: int
    id: int


class Advertiser(msgspec.Struct, frozen=True, gc=False):
    link: int


class Network(msgspec.Struct, frozen=True, gc=False):
    pass


LocalInterface: TypeAlias = LiveSubscription | SharedSubscription | DurableConsumers
Interface: TypeAlias = (
    LocalInterface | DurableSubscription | RemoteBroker | NextHop | PublishGrant | PublishSchema
)

# Kinds, by which a lookup result is split: bits, so several kinds combine into one number.
LIVE: Final = 1
CONSUMERS: Final = 2
DURABLE: Final = 4
BROKER: Final = 8
GRANT: Final = 16
PATTERN: Final = 32
SCHEMA: Final = 64

_KINDS: dict[type, int] = {
    LiveSubscription: LIVE,
    SharedSubscription: LIVE,
    DurableConsumers: CONSUMERS,
    DurableSubscription: DURABLE,
    RemoteBroker: BROKER,
    NextHop: BROKER,
    PublishGrant: GRANT,
    PublishSchema: SCHEMA,
    str: PATTERN,
}


def kind_of(interface: object) -> int:
    return _KINDS[type(interface)]
