"""The router: subscription forwarding as a state machine (2000, 3.5). No IO, no clock.

    event ──▶ step ──▶ [Send, ...]

    Joined     sends a neighbour or a master a `Restate` of all that is forwarded to it
    Left       removes the subscriptions, advertisements and watches of the peer
    Received   Subscribe, Unsubscribe, Advertise, Unadvertise, Restate   change those of the peer
               Publish                                                   goes where it matches
               Watch, Unwatch, Assembled, Sieved                         patterns (patterns/watching)
    Tick       patterns release messages that they held
    TopologyChanged   on a graph: subscriptions and advertisements follow other trees

Two posets hold the filters and the advertisements of all peers (`subscriptions.py`). A step first
changes those of its peer and then computes what is forwarded, so other peers see only the result.

    role of Y    subscriptions go to Y                          advertisements   messages
    CLIENT       never                                          never            by match
    NEIGHBOUR    all, or those that Y's advertisements meet     always           by match
    MASTER       all                                            always           all, from below
    SLAVE        never                                          never            by match

For patterns, the router is a peer of itself: under its own name it subscribes to the parts that it
matches, so patterns use the same forwarding and covering as all subscriptions.

On a graph, subscriptions follow the trees of their origins (overlay.py). A message follows the tree of
its source: it comes from the parent there, and goes to the children that it matches.

In a hierarchy a router is a client of its master, which it takes to subscribe to everything
(hierarchy.py). Messages from above reach it by match, so the master need not advertise; the master
forwards the router's advertisements to its own neighbours.

The router is deterministic: it sends to peers in the order in which they joined, and items in the
order in which they arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import msgspec

from palio.errors import RoutingError
from palio.model.advertisement import Advertisement
from palio.model.message import Message
from palio.model.predicate import Filter
from palio.routing.graph_routes import GraphRoutes
from palio.routing.hierarchy import EVERYTHING, check_roles, from_master
from palio.routing.interest_table import InterestTable
from palio.routing.meeting import meeting
from palio.routing.overlay import Branch
from palio.routing.packets import (
    Advertise,
    Event,
    Joined,
    Left,
    Packet,
    Peer,
    Publish,
    Received,
    Restate,
    Role,
    Send,
    Subscribe,
    Tick,
    TopologyChanged,
    Unadvertise,
    Unsubscribe,
)
from palio.routing.patterns.packets import Assembled, Sieved, Unwatch, Watch
from palio.routing.patterns.watching import PatternSettings, Watches, WatchSteps
from palio.routing.poset import ADVERTISEMENTS, SUBSCRIPTIONS
from palio.routing.subscriptions import Subscriptions
from palio.routing.topology import Topology


class Router:
    """One node of an overlay: acyclic, hierarchical, or with `graph` any graph.

    With `advertisements`, a subscription is forwarded to a neighbour only when it intersects an
    advertisement that came from there; publishers must advertise what they publish. `patterns` has
    the settings for patterns. `graph` gives the peer for the name of a neighbour in the topology.

    >>> from palio.model.language import parse
    >>> router = Router("1")
    >>> router.step(Joined("2", Role.NEIGHBOUR))
    [Send(peer='2', packet=Restate(subscriptions=(), advertisements=(), watches=(), origin=None))]
    >>> router.step(Joined("ann"))
    []
    >>> (cheap,) = parse("price < 500")
    >>> router.step(Received("ann", Subscribe(cheap)))
    [Send(peer='2', packet=Subscribe(filter=Filter(price < 500), origin=None))]
    >>> router.destinations({"price": 450}, source="2")
    ['ann']
    """

    def __init__(
        self,
        name: str,
        *,
        advertisements: bool = False,
        patterns: PatternSettings | None = None,
        table: InterestTable | None = None,
        graph: Callable[[str], Peer] | None = None,
        clock: Callable[[], int] | None = None,
    ) -> None:
        """`table` may be shared: its other users add interfaces of their own. `clock`: the time of the
        publishers in microseconds, which says what was published before a pattern was watched."""
        self.name = name
        self._selective = advertisements
        self._peers: dict[Peer, Role] = {}
        self._joined: dict[Peer, int] = {}  # peer -> its position in the order of joining
        self._joins = 0
        self._master: Peer | None = None
        self._above: dict[Branch, None] = {}  # in which the master wants everything
        self._graph = None if graph is None else GraphRoutes(name, graph)
        ahead, back = (None, None) if self._graph is None else self._graph.overlays
        self._advertisements: Subscriptions[Advertisement] = Subscriptions(
            ADVERTISEMENTS, overlay=ahead
        )
        self._subscriptions: Subscriptions[Filter] = Subscriptions(
            SUBSCRIPTIONS, self._is_met, overlay=back
        )
        self._table = table if table is not None else InterestTable()
        self._watches = Watches(
            patterns or PatternSettings(),
            self.peers,
            self._advertisements.said if advertisements else None,
            clock,
        )

    # ---- queries

    @property
    def peers(self) -> Mapping[Peer, Role]:
        """The connected peers, in the order in which they joined."""
        return MappingProxyType(self._peers)

    @property
    def subscriptions(self) -> Subscriptions[Filter]:
        """The poset P_S with subscribers and forwards; to be read only."""
        return self._subscriptions

    @property
    def advertisements(self) -> Subscriptions[Advertisement]:
        """The poset P_A with those who advertised and forwards; to be read only."""
        return self._advertisements

    def subscribers(self, filter: Filter) -> frozenset[Peer]:
        """The peers that subscribed with this filter or an equal one."""
        return self._subscriptions.subscribers(filter)

    def forwards(self, filter: Filter) -> frozenset[Peer]:
        """The peers to which this filter was forwarded."""
        return self._subscriptions.forwards(filter)

    def destinations(
        self, message: Message | Mapping[str, object], source: Peer | None = None
    ) -> list[Peer]:
        """The peers that get a message that came from a peer, in the order of joining. On a graph, only
        some of its neighbours get it: that depends on where it was published (`GraphRoutes.children`)."""
        message = message if isinstance(message, Message) else Message(message)
        return self.next_hops(self._table.interfaces_of(message), source)

    def next_hops(self, matching: Iterable[Peer], source: Peer | None) -> list[Peer]:
        """Those of the matching interfaces that are peers and get a message that came from `source`,
        in the order of joining."""
        chosen = {peer for peer in matching if peer in self._peers and peer != source}
        return sorted(chosen, key=self._joined.__getitem__) if len(chosen) > 1 else list(chosen)

    @property
    def watches(self) -> Watches:
        """All watches of patterns and their plans; to be read only."""
        return self._watches

    @property
    def due(self) -> int | None:
        """The first time at which a `Tick` sends something; None: never."""
        return self._watches.due

    @property
    def late(self) -> int:
        """How many messages came too late for a pattern."""
        return self._watches.late

    # ---- events

    def step(self, event: Event) -> list[Send]:
        """Process an event; returns what is to be sent, in order."""
        if isinstance(event, Joined):
            return self._join(event.peer, event.role)
        if isinstance(event, Tick):
            return self._watches.tick(event.now)
        if isinstance(event, TopologyChanged):
            return self._reroute(event.net)
        self._require(event)
        if isinstance(event, Left):
            return self._leave(event.peer)
        packet = event.packet
        if isinstance(packet, Publish):
            return self._publish(event.peer, packet)
        if isinstance(packet, Assembled | Sieved):
            return self._watches.hear(event.peer, packet)
        self._hear(event.peer, packet)
        return self._settle(event.peer)

    def observe(self, source: Peer | None, packet: Publish) -> list[Send]:
        """Give a message that matches the router's own name to the patterns that wait for it."""
        return self._watches.publish(source, packet)

    def observing(self, source: Peer | None, packet: Publish, begun: int) -> WatchSteps:
        """The same in steps; `begun`: what `watches.begun` was when the message arrived."""
        return self._watches.publishing(source, packet, begun)

    def hearing(self, peer: Peer, packet: Assembled | Sieved, begun: int) -> WatchSteps:
        """Process the answer of a neighbour about a pattern, in steps."""
        return self._watches.hearing(peer, packet, begun)

    def _publish(self, source: Peer, packet: Publish) -> list[Send]:
        if self._graph is not None and packet.source is None:  # of a client
            packet = msgspec.structs.replace(packet, source=self.name)
        found = self._table.interfaces_of(packet.message)
        peers = self.next_hops(found, source)
        if self._graph is not None:
            children = self._graph.children(packet.source, source)
            peers = [p for p in peers if self._peers[p] is Role.CLIENT or p in children]
        sends = [Send(peer, packet) for peer in peers]
        return sends + self.observe(source, packet) if self.name in found else sends

    def _reroute(self, net: Topology | None) -> list[Send]:
        """Forward subscriptions and advertisements along the trees of another topology."""
        if self._graph is None:
            raise RoutingError(f"router {self.name} is on no graph: its overlay has no topology")
        self._graph.follow(net)
        changed = dict.fromkeys([*self._advertisements.relink(), *self._subscriptions.relink()])
        told = [self._restated(branch) for branch in changed if branch.peer in self._peers]
        # Additions first, so that no message is lost where an item only changes its branch.
        told.sort(key=lambda send: _is_empty(send.packet))
        self._subscribe_master()
        return told if self._master is None else [*told, *self._settle(self._master)]

    def _subscribe_master(self) -> None:
        """The master wants everything; on a graph, in the branches of all origins behind it."""
        above = [] if self._master is None else [Branch(self._master)]
        if self._graph is not None and self._master is not None:
            above = self._graph.branches_behind(self._master)
        known, self._above = self._above, dict.fromkeys(above)
        for branch in self._above | known:
            self._subscriptions.restate(branch, (EVERYTHING,) if branch in self._above else ())

    def _restated(self, branch: Branch) -> Send:
        told = self._subscriptions.forwarded_to(branch), self._advertisements.forwarded_to(branch)
        return Send(branch.peer, Restate(*told, origin=branch.origin))

    def _require(self, event: Left | Received) -> None:
        if event.peer not in self._peers:
            what = "left" if isinstance(event, Left) else f"sent {type(event.packet).__name__}"
            known = ", ".join(map(str, self._peers)) or "nobody"
            raise RoutingError(
                f"router {self.name}: {event.peer!r} {what} but has not joined; "
                f"known are {known}; step Joined({event.peer!r}, ...) first"
            )

    def _join(self, peer: Peer, role: Role) -> list[Send]:
        if peer == self.name:
            raise RoutingError(f"router {self.name}: a peer cannot have the router's own name")
        known, is_told = self._peers.get(peer), role in (Role.NEIGHBOUR, Role.MASTER)
        if is_told:
            check_roles(self.name, {**self._peers, peer: role}, self._selective)
        self._peers[peer] = role
        if known is None:
            self._joins += 1
            self._joined[peer] = self._joins
        sends: list[Send] = []
        if role is not known:
            if Role.MASTER in (role, known):
                self._master = None
                self._hear(peer, Restate())  # what it said in another role
                self._master = peer if role is Role.MASTER else None
                self._subscribe_master()
            self._subscriptions.unlink(peer)
            self._advertisements.unlink(peer)
            sends = self._settle(peer, replan=not {role, known} <= {Role.CLIENT, None})
            if is_told:
                selective = self._selective and role is Role.NEIGHBOUR
                self._advertisements.link(peer, selective=False)
                self._subscriptions.link(peer, selective=selective)
        if not is_told:
            return sends
        if role is Role.NEIGHBOUR:
            self._watches.mute(peer)
        whole = Branch(peer)
        told = Restate(
            self._subscriptions.forwarded_to(whole),
            self._advertisements.forwarded_to(whole),
            self._watches.available.told(peer),
        )
        own = [*self._subscriptions.branches(peer), *self._advertisements.branches(peer)]
        others = [self._restated(branch) for branch in dict.fromkeys(own) if branch != whole]
        return [*sends, Send(peer, told), *others]

    def _leave(self, peer: Peer) -> list[Send]:
        self._subscriptions.unlink(peer)
        self._advertisements.unlink(peer)
        role = self._peers.pop(peer)
        del self._joined[peer]
        if peer == self._master:
            self._master, self._above = None, {}
        self._hear(peer, Restate())
        return self._settle(peer, replan=role is not Role.CLIENT)

    def _hear(self, peer: Peer, packet: Packet) -> None:
        """Apply a packet to the subscriptions, advertisements or watches of a peer."""
        if isinstance(packet, Watch):
            self._watches.say(peer, packet)
        elif isinstance(packet, Unwatch):
            self._watches.cancel(peer, packet.id)
        elif isinstance(packet, Subscribe | Unsubscribe | Advertise | Unadvertise | Restate):
            self._change(Branch(peer, packet.origin), packet)

    def _change(
        self, branch: Branch, packet: Subscribe | Unsubscribe | Advertise | Unadvertise | Restate
    ) -> None:
        """Apply a packet to the subscriptions or advertisements of a peer in a branch."""
        if branch.peer == self._master:
            raise from_master(self.name, branch.peer, packet)
        subscriptions, advertisements = self._subscriptions, self._advertisements
        if isinstance(packet, Subscribe):
            subscriptions.say(branch, packet.filter)
        elif isinstance(packet, Unsubscribe):
            subscriptions.cancel(branch, packet.filter)
            for filter in packet.instead:
                subscriptions.say(branch, filter)
        elif isinstance(packet, Advertise):
            advertisements.say(branch, packet.advertisement)
        elif isinstance(packet, Unadvertise):
            advertisements.cancel(branch, packet.advertisement)
            for advertisement in packet.instead:
                advertisements.say(branch, advertisement)
        else:
            if packet.origin is None:
                subscriptions.forget_others(branch)
                advertisements.forget_others(branch)
                self._watches.restate(branch.peer, packet.watches)
            subscriptions.restate(branch, packet.subscriptions)
            advertisements.restate(branch, packet.advertisements)

    def _settle(self, peer: Peer, *, replan: bool = False) -> list[Send]:
        """The packets that follow from changes of a peer. `replan`: make new plans for all patterns."""
        self._table.change(peer, self._subscriptions.news(peer))
        offered = self._advertisements.news(peer)
        self._attract(peer, offered)
        watching = self._watches.settle(offered, replan=replan)
        self._want()
        sends = []
        said: Packet
        for (there, origin), offers in self._advertisements.settle():
            for item, instead in offers:
                said = Advertise(item, origin)
                if instead is not None:
                    said = Unadvertise(item, instead, origin)
                sends.append(Send(there, said))
        for (there, origin), wanted in self._subscriptions.settle():
            for found, rather in wanted:
                said = Subscribe(found, origin)
                if rather is not None:
                    said = Unsubscribe(found, rather, origin)
                sends.append(Send(there, said))
        return sends + watching

    def _want(self) -> None:
        """Subscribe, as a peer of itself, to the parts of patterns that are matched here."""
        news = self._watches.take_news()
        if news:
            self._subscriptions.change(Branch(self.name), news)
            self._table.change(self.name, self._subscriptions.news(self.name))

    # ---- subscriptions toward advertisements

    def _attract(self, peer: Peer, news: Mapping[Advertisement, bool]) -> None:
        """Forward subscriptions to a peer, or stop to, as its advertisements change."""
        if not news or not self._subscriptions.is_selective(peer):
            return
        new = [meeting(a) for a, is_said in news.items() if is_said]
        old = [meeting(a) for a, is_said in news.items() if not is_said]
        all_ = [meeting(a) for a in self._advertisements.said(peer)]

        def is_met(item: Filter, was: bool) -> bool:
            if not was:
                return any(meets(item) for meets in new)
            return not any(meets(item) for meets in old) or any(meets(item) for meets in all_)

        self._subscriptions.meet(peer, is_met)

    def _is_met(self, item: Filter, peer: Peer) -> bool:
        return any(meeting(a)(item) for a in self._advertisements.said(peer))


def _is_empty(packet: Packet) -> bool:
    return isinstance(packet, Restate) and not (packet.subscriptions or packet.advertisements)
