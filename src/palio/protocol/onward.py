"""Live messages on their way: to those here who want them, and on to neighbours.

    parcels, runs ─┬─▶ live.py: DELIVER to clients; with subscription forwarding, who else wants it
                   └─▶ routes.py: with a routing scheme, the next hops       ──▶ FORWARD

Runs (runs.py) and parcels, one by one, go the same ways; only the work for each differs.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec

from palio.errors import InvalidValue
from palio.protocol.answers import Matched
from palio.protocol.frames import BrokenFrame, Forward, letter_frame
from palio.protocol.live import Parcel
from palio.protocol.runs import Run, forward
from palio.routing.packets import Peer

if TYPE_CHECKING:
    from palio.protocol.broker import Broker

_NO_TRAIL = b"\xc0"


class Counts(msgspec.Struct):
    """Ever."""

    published: int = 0
    rejected: int = 0
    forwarded: int = 0
    carried: int = 0
    doubled: int = 0
    dropped: int = 0
    """Live messages for which a neighbour had no room, and those that nobody could read."""


class Onward:
    def __init__(self, broker: Broker) -> None:
        self.counts = Counts()
        self._broker = broker

    def deliver(self, parcels: list[Parcel]) -> None:
        """To live subscriptions here, and on to the brokers that want it."""
        broker = self._broker
        wanted = broker.live.deliver(parcels)
        self.counts.published += len(parcels)
        if broker.settings.is_forwarding:
            for parcel, peers in zip(parcels, wanted, strict=True):
                for peer in peers:
                    self._forward(name_of(peer), parcel, _NO_TRAIL)
        elif broker.neighbours.names:
            self._send_on(parcels)

    def _send_on(self, parcels: list[Parcel]) -> None:
        """By the routing scheme."""
        interested = self._broker.routes.interested([parcel.attributes for parcel in parcels])
        for parcel, wanting in zip(parcels, interested, strict=True):
            try:
                hops = self._hops(parcel.trail, wanting, parcel.source, 1)
            except BrokenFrame as error:
                self._broker.neighbours.hang_up(name_of(parcel.source), str(error))
                continue
            for name, trail in hops:
                self._forward(name, parcel, trail)

    def _forward(self, name: str, parcel: Parcel, trail: bytes) -> None:
        header = Forward(
            msgspec.Raw(trail), parcel.publisher, parcel.number, parcel.time, parcel.durable
        )
        frame = letter_frame(header, parcel.attributes, parcel.body)
        if self._broker.neighbours.send(name, frame):
            self.counts.forwarded += 1
        else:
            self.counts.dropped += 1

    def deliver_run(self, run: Run, source: Peer) -> bool:
        """False: it must be done one by one."""
        broker = self._broker
        is_scheme = not broker.settings.is_forwarding and bool(broker.neighbours.names)
        try:
            matched = broker.routes.interested_in(run) if is_scheme else None
            onward = broker.live.deliver_run(run, source)
        except InvalidValue:
            return False
        if onward is None:
            return False
        self.counts.published += len(run)
        for peer, places in onward.items():
            self._forward_run(name_of(peer), run, {_NO_TRAIL: places})
        if matched is not None:
            self._route_run(run, matched, source)
        return True

    def _route_run(self, run: Run, matched: Matched[str], source: Peer) -> None:
        """By the routing scheme."""
        onward: dict[str, dict[bytes, list[int]]] = {}
        for trail, rows in run.trails():
            for wanting, places in Matched(matched.answers, matched.codes[rows]).parts():
                try:
                    hops = self._hops(trail, wanting, source, len(places))
                except BrokenFrame as error:
                    self._broker.neighbours.hang_up(name_of(source), str(error))
                    return
                for name, own in hops:
                    chosen = onward.setdefault(name, {}).setdefault(own, [])
                    chosen += rows[places].tolist()
        for name, trails in onward.items():
            self._forward_run(name, run, trails)

    def _forward_run(self, name: str, run: Run, trails: dict[bytes, list[int]]) -> None:
        frames = forward(run, trails)
        sent = self._broker.neighbours.send_run(name, frames)
        self.counts.forwarded += sent
        self.counts.dropped += len(frames.ends) - sent

    def _hops(
        self, trail: bytes | msgspec.Raw | None, wanting: Collection[str], source: Peer, count: int
    ) -> list[tuple[str, bytes]]:
        routes = self._broker.routes
        if trail is None:
            return routes.start(wanting)
        return routes.onward(trail, wanting, name_of(source), count)


def peer_of(neighbour: str) -> Peer:
    """What the router calls a neighbour."""
    return f"n{neighbour}"


def name_of(peer: Peer) -> str:
    return peer[1:]
