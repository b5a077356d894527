"""What routers hear and say: packets between peers, events of a router, effects of a step.

    event                                effect
    ─────                                ──────
    Joined(peer, role)     ┐
    Received(peer, packet) ├──▶ Router.step ──▶ Send(peer, packet), Send(peer, packet), ...
    Left(peer)             │
    Tick(now)              ┘

A peer is whoever is at the other end: an application, or another router. Packets carry no
addresses; who sent one is known from where it came in. Links deliver the packets of one peer in
order and at most once; a link that lost its state begins anew with a `Restate` from both sides.
What is said about patterns is in patterns/packets.py.
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


class Role(StrEnum):
    """What a peer is to a router; it decides what is forwarded there."""

    CLIENT = "client"
    """An application, or a router below this one in a hierarchy: gets what it asked for only."""
    NEIGHBOUR = "neighbour"
    """A router of the same acyclic overlay: subscriptions and advertisements go there too."""
    MASTER = "master"
    """The router above in a hierarchy: gets all subscriptions and all messages from below."""


class Subscribe(msgspec.Struct, frozen=True, tag=True):
    """Send me what this filter selects."""

    filter: Filter


class Unsubscribe(msgspec.Struct, frozen=True, tag=True):
    """I take back all that this filter covers; from now on I want `instead`, in the same instant.

    `instead` is what the filter had hidden: without it, messages would be lost between two packets.
    """

    filter: Filter
    instead: tuple[Filter, ...] = ()


class Advertise(msgspec.Struct, frozen=True, tag=True):
    """I may send messages that this allows."""

    advertisement: Advertisement


class Unadvertise(msgspec.Struct, frozen=True, tag=True):
    """I take back all advertisements that this covers; `instead` stand from now on."""

    advertisement: Advertisement
    instead: tuple[Advertisement, ...] = ()


class Restate(msgspec.Struct, frozen=True, tag=True):
    """All that I want and all that I may send; whatever I said before is void."""

    subscriptions: tuple[Filter, ...] = ()
    advertisements: tuple[Advertisement, ...] = ()
    watches: tuple[Watch, ...] = ()


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
    """A peer is there; a router is told by a `Restate` what it is to know."""

    peer: Peer
    role: Role = Role.CLIENT


class Left(msgspec.Struct, frozen=True):
    """A peer is gone for good: what it wanted and advertised is taken back."""

    peer: Peer


class Received(msgspec.Struct, frozen=True):
    peer: Peer
    packet: Packet


class Tick(msgspec.Struct, frozen=True):
    """It is `now`, in microseconds of the publishers' clock: patterns wait no longer for what is
    older than their lateness. Time is never guessed; without ticks it is what messages say."""

    now: int


Event: TypeAlias = Joined | Left | Received | Tick


class Send(msgspec.Struct, frozen=True):
    """The one kind of effect: this packet to that peer."""

    peer: Peer
    packet: Packet
