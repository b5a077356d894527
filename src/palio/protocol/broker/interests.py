"""The only module that changes the interest table, with remote_interests.py for other brokers.

    clients        subscribe, unsubscribe, watch, advertise ─┐
    durable ones   add_durable, remove_durable               ├─▶ flush, then router and table
    other brokers  remote, reroute, neighbour, packet         │
    access         examine: grants and schemas               ┘

A message is matched against the subscriptions at its arrival, so each method flushes first: the
data path processes the messages received so far. Callers need not do so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.predicate import Filter, Predicate
from palio.protocol.broker.local import LocalDelivery
from palio.protocol.broker.pattern_queue import PatternQueue
from palio.protocol.broker.remote_interests import RemoteInterests
from palio.protocol.broker.router_port import RouterPort
from palio.protocol.broker.scheduler import Slices, WorkList, in_slices
from palio.protocol.interfaces import (
    Advertiser,
    DurableSubscription,
    LocalInterface,
    PublishGrant,
    PublishSchema,
    RemoteBroker,
    Watcher,
)
from palio.protocol.policies.policy import RoutingPolicy
from palio.protocol.wire.codes import NeighbourRole
from palio.routing.interest_table import InterestTable
from palio.routing.packets import (
    Advertise,
    Joined,
    Left,
    Packet,
    Received,
    Restate,
    Subscribe,
    Tick,
    Unadvertise,
    Unsubscribe,
)
from palio.routing.patterns.packets import Assembled, Sieved, Watch
from palio.routing.patterns.pattern import Pattern
from palio.routing.topology import Topology

FILTERS_AT_ONCE = 4
"""Filters of an interface that are added in one slice."""
REMOVED_AT_ONCE = 8
"""Filters of an interface that are removed in one slice."""
_COMPARED_PER_UNIT = 6
"""Filters that are looked at again because another one changed."""
_VISITED_PER_UNIT = 100
"""Filters that cover a new one, or that it covers."""
_ADVERTISEMENTS_PER_UNIT = 5
ADVERTISEMENTS_AT_ONCE = 16
"""Advertisements of a client that are removed in one slice."""

_Replaced: TypeAlias = DurableSubscription | PublishGrant | PublishSchema


class Interests:
    def __init__(
        self,
        table: InterestTable,
        port: RouterPort,
        policy: RoutingPolicy,
        local: LocalDelivery,
        flush: Callable[[], None],
        patterns: PatternQueue,
        work: WorkList,
    ) -> None:
        self._table = table
        self._port = port
        self._policy = policy
        self._patterns = patterns
        self._local = local
        self.flush = self._flush = flush
        """Deal with the messages that have arrived; for those who ask before they change."""
        self._work = work
        self.remote = RemoteInterests(table, policy, flush)
        """The interests of other brokers, by their link states; it flushes, too."""
        self._changing: set[LocalInterface] = set()  # in slices
        self._removals: dict[LocalInterface, Slices] = {}
        self._compared = self._visited = 0
        self._filters: dict[_Replaced, tuple[Filter, ...]] = {}

    # ---- clients

    def enter(self, interface: LocalInterface, filters: Sequence[Filter]) -> Slices:
        """Add the filters of an interface, in slices if they are many. Nobody gets its messages before
        `subscribe`. Nothing happens if it is there already."""
        for units in self._removals.get(interface, ()):  # noqa: UP028 (`yield from` would close it)
            yield units
        while interface in self._changing:
            yield None
        if self._local.has(interface):
            return
        self._flush()
        self._port.step(Joined(interface))
        if len(filters) <= FILTERS_AT_ONCE:
            self._port.step(Received(interface, Restate(subscriptions=tuple(filters))))
            return
        self._changing.add(interface)
        is_complete = False
        try:
            for part in in_slices(list(filters), FILTERS_AT_ONCE):
                self._flush()
                for found in part:
                    self._port.step(Received(interface, Subscribe(found)))
                yield self.units_spent()
            is_complete = True
        finally:
            self._changing.discard(interface)
            if not is_complete:  # the client is gone
                self.leave(interface)

    def leave(self, interface: LocalInterface) -> None:
        """Take back `enter`, if nobody subscribed."""
        if not self._local.has(interface):
            self._flush()
            self._remove(interface)

    def _remove(self, interface: LocalInterface) -> None:
        """Remove an interface that nobody uses; in slices, if it has many filters."""
        filters = self._port.router.subscriptions.said(interface)
        if len(filters) <= REMOVED_AT_ONCE:
            self._port.step(Left(interface))
        else:
            self._changing.add(interface)
            self._removals[interface] = self._remove_in_slices(interface, filters)
            self._work.add(self._removals[interface])

    def _remove_in_slices(self, interface: LocalInterface, filters: list[Filter]) -> Slices:
        for part in in_slices(filters, REMOVED_AT_ONCE):
            self._flush()
            for found in part:
                self._port.step(Received(interface, Unsubscribe(found)))
            yield self.units_spent()
        self._flush()
        self._port.step(Left(interface))
        self._changing.discard(interface)
        del self._removals[interface]

    def units_spent(self) -> int:
        """What changes have cost since the last call because filters cover each other: the units of the
        scheduler."""
        subscriptions = self._port.router.subscriptions
        compared, visited = subscriptions.compared, subscriptions.poset.visited
        by_change = (compared - self._compared) // _COMPARED_PER_UNIT
        by_insertion = (visited - self._visited) // _VISITED_PER_UNIT
        self._compared, self._visited = compared, visited
        return by_change + by_insertion

    def subscribe(
        self,
        interface: LocalInterface,
        subscriber: tuple[int, int],
        credit: int,
        *,
        ends: bool = False,
    ) -> None:
        """Add a subscriber (link and id) to an interface whose filters are there (`enter`). `ends`:
        end it when too much waits for it."""
        self._flush()
        self._local.add(interface, *subscriber, credit, ends=ends)

    def unsubscribe(self, subscriber: tuple[int, int]) -> None:
        self._flush()
        interface = self._local.remove(*subscriber)
        if interface is not None:  # it has no other subscriber
            self._remove(interface)

    def watch(self, watcher: Watcher, pattern: Pattern) -> None:
        self._flush()
        self._port.step(Joined(watcher))
        self._port.step(Received(watcher, Watch(watcher.id, pattern)))

    def unwatch(self, watcher: Watcher) -> None:
        self._flush()
        self._port.step(Left(watcher))

    def advertise(self, advertiser: Advertiser, advertisement: Advertisement) -> None:
        """Add an advertisement of a client."""
        self._flush()
        if advertiser not in self._port.router.peers:
            self._port.step(Joined(advertiser))
        self._port.step(Received(advertiser, Advertise(advertisement)))

    def advertising_units(self) -> int:
        """What a change of an advertisement costs, in units of the scheduler: it is compared with all."""
        return len(self._port.router.advertisements) // _ADVERTISEMENTS_PER_UNIT

    def unadvertise(self, advertiser: Advertiser, all_: Iterable[Advertisement]) -> None:
        """A client advertises only these from now on."""
        self._flush()
        left = tuple(all_)
        if left:
            self._port.step(Received(advertiser, Restate(advertisements=left)))
        elif advertiser in self._port.router.peers:
            self._port.step(Left(advertiser))

    def withdraw(self, advertiser: Advertiser, all_: list[Advertisement]) -> Slices:
        """A client that has left advertises nothing any more; these are removed in slices."""
        for part in in_slices(all_, ADVERTISEMENTS_AT_ONCE):
            self._flush()
            for one in part:
                self._port.step(Received(advertiser, Unadvertise(one)))
            yield self.advertising_units()
        self.unadvertise(advertiser, ())

    def tick(self, now_us: int) -> None:
        """Let patterns stop waiting for messages that are overdue."""
        due = self.due_us
        if due is not None and due <= now_us:
            self._flush()
            if not self._patterns.is_busy:
                self._port.step(Tick(now_us))

    @property
    def due_us(self) -> int | None:
        """When `tick` must be called next; None: no pattern waits, or all have messages to take."""
        return None if self._patterns.is_busy else self._port.router.due

    # ---- durable subscriptions, grants and schemas

    def add_durable(self, subscription: DurableSubscription, predicate: Predicate) -> None:
        """Add or replace a durable subscription, here or at another broker."""
        self._replace(subscription, predicate.filters)

    def extend_durable(self, subscription: DurableSubscription, filters: list[Filter]) -> None:
        """Add filters to a durable subscription that has none of them."""
        self._flush()
        self._filters[subscription] = self._filters.get(subscription, ()) + tuple(filters)
        self._table.change(subscription, dict.fromkeys(filters, True))

    def remove_durable(self, subscription: DurableSubscription) -> None:
        self._replace(subscription, ())

    def examine(self, examiner: PublishGrant | PublishSchema, which: Predicate | None) -> None:
        """Set what an identity may publish, or about which messages a schema is asked; None removes it."""
        self._replace(examiner, () if which is None else which.filters)

    def _replace(self, interface: _Replaced, filters: tuple[Filter, ...]) -> None:
        self._flush()
        before, after = self._filters.pop(interface, ()), dict.fromkeys(filters, True)
        news = dict.fromkeys(before, False) | after
        for found in before:
            if found in after:
                del news[found]
        self._table.change(interface, news)
        if filters:
            self._filters[interface] = filters

    # ---- other brokers

    def reroute(self, net: Topology | None) -> None:
        """The topology has changed; None: this broker reaches no other one."""
        self._flush()
        self._port.take(self._policy.on_topology(net))
        self.remote.reroute()

    def neighbour(self, name: str, role: NeighbourRole | None) -> None:
        """A neighbour of this role is linked; None: no longer."""
        self._flush()
        self._port.take(self._policy.on_neighbour(name, role))

    def packet(self, name: str, packet: Packet) -> None:
        """Process a packet from the router of a neighbour."""
        self._flush()
        if isinstance(packet, Assembled | Sieved) and RemoteBroker(name) in self._port.router.peers:
            self._patterns.hear(name, packet)
        else:
            self._port.take(self._policy.on_packet(name, packet))

    def large_packet(self, name: str, packet: Packet) -> Slices:
        """The same in slices, as far as it can be: a neighbour that has just joined states all."""
        router, peer = self._port.router, RemoteBroker(name)
        if not isinstance(packet, Restate) or router.subscriptions.said(peer):
            self.packet(name, packet)
            return
        self.packet(name, msgspec.structs.replace(packet, subscriptions=()))
        for part in in_slices(list(packet.subscriptions), FILTERS_AT_ONCE):
            yield None
            for found in part:
                self.packet(name, Subscribe(found, packet.origin))
