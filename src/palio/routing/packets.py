"""Packets between peers, events of a router, effects of a step.

    event                                effect
    ─────                                ──────
    Joined(peer, role)     ┐
    Received(peer, packet) ├──▶ Router.step ──▶ Send(peer, packet), Send(peer, packet), ...
    Left(peer)             │
    Tick(now)              │
    TopologyChanged(net)   ┘

A peer is an application or another router. Packets carry no addresses: the router knows the sender
by the link on which a packet arrives. Links deliver the packets of one peer in order and at most
once; a link that has lost its state starts with a `Restate` from both sides. The packets of patterns
are in patterns/packets.py.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.predicate import Filter
from palio.routing.patterns.packets import Assembled, Sieved, Unwatch, Watch
from palio.routing.publication import Peer as Peer
from palio.routing.publication import Publish as Publish
from palio.routing.topology import Topology


class Role(StrEnum):
    """What a peer is to a router; it decides what is forwarded there."""

    CLIENT = "client"
    """An application: gets only what it subscribed to."""
    NEIGHBOUR = "neighbour"
    """A router of the same overlay: subscriptions and advertisements go there too."""
    MASTER = "master"
    """The router above in a hierarchy: gets all subscriptions and all messages from below."""
    SLAVE = "slave"
    """A router below in a hierarchy: gets only what it subscribed to, as a client does."""


class Subscribe(msgspec.Struct, frozen=True, tag=True):
    """The sender subscribes to the messages that this filter selects.

    `origin`, here and below, names the branch of a graph that it belongs to (overlay.py).
    """

    filter: Filter
    origin: str | None = None


class Unsubscribe(msgspec.Struct, frozen=True, tag=True):
    """Remove the sender's subscriptions that this filter covers, and add `instead` in the same step.

    `instead` are the filters that the removed one covered: with a packet of their own, messages
    between the two packets would be lost.
    """

    filter: Filter
    instead: tuple[Filter, ...] = ()
    origin: str | None = None


class Advertise(msgspec.Struct, frozen=True, tag=True):
    """The sender may publish messages that this allows."""

    advertisement: Advertisement
    origin: str | None = None


class Unadvertise(msgspec.Struct, frozen=True, tag=True):
    """Remove the sender's advertisements that this covers, and add `instead` in the same step."""

    advertisement: Advertisement
    instead: tuple[Advertisement, ...] = ()
    origin: str | None = None


class Restate(msgspec.Struct, frozen=True, tag=True):
    """All subscriptions, advertisements and watches of the sender; they replace those before. With an
    origin: all subscriptions and advertisements of that branch, and the others stay."""

    subscriptions: tuple[Filter, ...] = ()
    advertisements: tuple[Advertisement, ...] = ()
    watches: tuple[Watch, ...] = ()
    origin: str | None = None


Packet: TypeAlias = (
    Subscribe
    | Unsubscribe
    | Advertise
    | Unadvertise
    | Publish
    | Restate
    | Watch
    | Unwatch
    | Assembled
    | Sieved
)


class Joined(msgspec.Struct, frozen=True):
    """A peer is connected. A neighbour or a master gets a `Restate` in reply."""

    peer: Peer
    role: Role = Role.CLIENT


class Left(msgspec.Struct, frozen=True):
    """A peer is gone for good: its subscriptions and advertisements are removed."""

    peer: Peer


class Received(msgspec.Struct, frozen=True):
    peer: Peer
    packet: Packet


class Tick(msgspec.Struct, frozen=True):
    """The time is `now`, in microseconds of the publishers' clock: patterns release held messages that
    are older than their lateness. Without ticks, time is the largest time of a message."""

    now: int


class TopologyChanged(msgspec.Struct, frozen=True):
    """The links of the graph are others. None: this router reaches no other one."""

    net: Topology | None


Event: TypeAlias = Joined | Left | Received | Tick | TopologyChanged


class Send(msgspec.Struct, frozen=True):
    """The one kind of effect: this packet to that peer."""

    peer: Peer
    packet: Packet
