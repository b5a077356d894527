"""The network as a broker sees it: applies changes of the link-state database to routing.

own interests ─▶ database ─▶ other brokers
                 database ─▶ topology ──▶ policy, unicast, reachable brokers of the store
                          ─▶ filters of others ─▶ interests, in slices if they are many
"""

from __future__ import annotations

from palio.model.predicate import Filter
from palio.protocol.broker.flooding import Flooding
from palio.protocol.broker.interests import Interests
from palio.protocol.broker.last_value_exchange import LastValueExchange
from palio.protocol.broker.remote_interests import Work
from palio.protocol.broker.scheduler import Slices, WorkList
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.policies.link_state import LinkStateDatabase
from palio.protocol.policies.policy import RoutingPolicy
from palio.protocol.policies.unicast import Unicast
from palio.protocol.wire.routing_memory import RoutingMemory
from palio.routing.topology import Topology

FILTERS_AT_ONCE = 128
"""Filters of a broker that are taken from its changes at once."""
SLICE_COST = 6000
"""Of one slice, about 2 ms."""


class NetworkView:
    def __init__(
        self,
        database: LinkStateDatabase,
        flooding: Flooding,
        policy: RoutingPolicy,
        unicast: Unicast,
        interests: Interests,
        store: MessageStore,
        work: WorkList,
        scheme: str,
        last_values: LastValueExchange,
    ) -> None:
        self.database, self.last_values = database, last_values
        database.own.memory_now = self.memory
        self._scheme = scheme
        self.policy = policy
        self._flooding = flooding
        self._unicast = unicast
        self._interests = interests
        self._store = store
        self._work = work
        self._is_following = False
        """Whether there is work that applies the rest of the changes."""
        self._changes = database.follow()
        self.version = -1
        """Of the database at the last `follow`."""
        self._net: Topology | None = None
        self._texts: dict[Filter, str] = {}
        """Of the filters that this broker announces: a long one takes long to print."""

    def memory(self) -> RoutingMemory:
        """What this broker holds to route messages."""
        remote = self._interests.remote
        held, (constraints, bits) = remote.held, remote.formula()
        return RoutingMemory(
            *(self._scheme, remote.predicates, held.filters, held.constraints),
            *((held.predicate_bits + 7) // 8, constraints, (bits + 7) // 8),
            database_bytes=self.database.text_bytes(),
        )

    def follow(self, now_us: int) -> None:
        """Apply what has changed in the database."""
        self.version = self.database.version
        if not self.policy.routes_by_link_state:
            self._changes.clear()
        net = self.database.topology()
        if net is not self._net:
            self._net = net
            self._interests.reroute(net)
            self._unicast.on_topology(net)
            self._store.reachable([] if net is None else sorted(net.nodes), now_us)
        if not self._is_following and (self._changes or self._interests.remote.is_outdated):
            self._is_following = True
            following = self._in_slices()
            if next(following, self) is None:
                self._work.add(following)

    def _in_slices(self) -> Slices:
        """Apply all changes, and those that come meanwhile."""
        done = 0
        for cost in self._apply():
            done += cost
            if done >= SLICE_COST:
                done = 0
                yield None
        self._is_following = False

    def _apply(self) -> Work:
        """Apply changes of filters and topologies, one after the other."""
        remote = self._interests.remote
        while self._changes or remote.is_outdated:
            if remote.is_outdated:
                yield from remote.regroup()
                continue
            broker, changes = next(iter(self._changes.items()))
            news = changes
            if len(changes) > FILTERS_AT_ONCE:
                news = dict([changes.popitem() for _ in range(FILTERS_AT_ONCE)])
            else:
                del self._changes[broker]
            yield from remote.change(broker, news)

    def announce(self, now_us: int) -> None:
        """Flood what has changed at this broker."""
        wanted = self.policy.interests
        if wanted:
            new, gone = {}, []
            for found, is_wanted in wanted.items():
                text = self._texts.pop(found, "") or str(found)
                if is_wanted:
                    self._texts[found] = text
                    new[text] = (found,)
                else:
                    gone.append(text)
            wanted.clear()
            self.database.want(sorted(new), sorted(set(gone) - new.keys()), new)
        self._flooding.announce(now_us)
