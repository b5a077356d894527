"""Builds the parts of a broker, each after the parts that it uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from palio.errors import PalioError
from palio.protocol.broker.carrying import Carrier
from palio.protocol.broker.clients import Clients
from palio.protocol.broker.data_path import DataPath
from palio.protocol.broker.dead_letters import DeadLetters
from palio.protocol.broker.durable import HomeSubscriptions
from palio.protocol.broker.effects import Output
from palio.protocol.broker.explain import Explaining
from palio.protocol.broker.flooding import Flooding
from palio.protocol.broker.held import HeldMessages
from palio.protocol.broker.interests import Interests
from palio.protocol.broker.last_value_exchange import LastValueExchange
from palio.protocol.broker.last_value_feeds import LastValueFeeds
from palio.protocol.broker.links import Links
from palio.protocol.broker.local import LocalDelivery
from palio.protocol.broker.neighbour_messages import NeighbourMessages
from palio.protocol.broker.neighbours import NeighbourLinks
from palio.protocol.broker.network_view import NetworkView
from palio.protocol.broker.operations import Operations
from palio.protocol.broker.orphans import Orphans
from palio.protocol.broker.pattern_queue import PatternQueue
from palio.protocol.broker.quench import Quenching
from palio.protocol.broker.queue_acts import QueueActs
from palio.protocol.broker.queue_lists import QueueLists
from palio.protocol.broker.queue_options import QueueOptions
from palio.protocol.broker.remote_durable import RemoteSubscriptions
from palio.protocol.broker.retaining import Retaining
from palio.protocol.broker.router_port import RouterPort
from palio.protocol.broker.scheduler import WorkList
from palio.protocol.broker.schemas import SchemaChecks
from palio.protocol.broker.settings import Settings
from palio.protocol.broker.snapshot import (
    QUEUES_MAX,
    DurableCounters,
    LastValuesSnapshot,
    LiveCounters,
    MemoryGauges,
    QueueGauges,
    QueuesSnapshot,
    RepublishedSnapshot,
    Snapshot,
    StoreGauges,
    TableGauges,
)
from palio.protocol.broker.stored_facts import StoredFacts
from palio.protocol.broker.subscriptions import ClientSubscriptions
from palio.protocol.broker.text_budget import TextBudget
from palio.protocol.broker.waiting import Overflow, WaitingMessages
from palio.protocol.durability.last_values import LastValues
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.durability.outgoing import Outgoing
from palio.protocol.durability.storage import DamagedStore, Store
from palio.protocol.interfaces import RemoteBroker, kind_of
from palio.protocol.policies.link_state import LinkStateDatabase
from palio.protocol.policies.registry import POLICIES
from palio.protocol.policies.unicast import Unicast
from palio.routing.interest_table import InterestTable
from palio.routing.patterns.watching import PatternSettings
from palio.routing.router import Router

EPOCH_KEY = "broker/epoch"
_NAME = "broker/name"


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that the broker dispatches to."""

    output: Output
    links: Links
    table: InterestTable
    port: RouterPort
    local: LocalDelivery
    messages: MessageStore
    data_path: DataPath
    carrying: Carrier
    interests: Interests
    view: NetworkView
    subscriptions: ClientSubscriptions
    operations: Operations
    clients: Clients
    neighbours: NeighbourMessages
    work: WorkList

    def _queue_gauges(self, now_us: int) -> dict[str, QueueGauges]:
        found = self.messages.administration.largest(QUEUES_MAX)
        return {
            self.subscriptions.home.names.shown(one.name): QueueGauges(
                one.messages,
                one.bytes,
                0 if one.stored_us is None else max(0, now_us - one.stored_us),
                len(one.consumers),
                one.is_paused,
            )
            for one in found
        }

    def answer(self, ready: Outgoing, now_us: int) -> None:
        """Tell clients and operators what is committed now, and publish dead letters."""
        if ready.is_republishing:
            self.carrying.dead_letters.publish(now_us)
            ready.has_more = True
        for name in ready.created:
            self.subscriptions.created(name)
        for ended in ready.ended:
            self.subscriptions.ended(ended)
        for act in ready.acts:
            self.operations.acted(act)

    def committed(self, ticket: int) -> None:
        """Last values of this commit may be given to subscribers."""
        self.subscriptions.last_values.committed(self.data_path.retaining.values.committed(ticket))

    def wake(self, now_us: int) -> None:
        """Do what is due."""
        self.operations.wake(now_us)
        self.data_path.retaining.wake(now_us)
        self.view.last_values.wake()

    def end_turn(self) -> None:
        if self.local.sent:
            self.local.end_turn()
        self.data_path.patterns.end_turn()

    @property
    def deadlines_us(self) -> list[int]:
        """When the parts have something to do."""
        times = (self.interests.due_us, self.view.database.deadline_us,
                 self.messages.deadline_us, self.operations.deadline_us,
                 self.data_path.retaining.deadline_us)  # fmt: skip
        return [at for at in times if at is not None]

    def snapshot(self, now_us: int, strangers: int, unfinished_bytes: int) -> Snapshot:
        """Counters and gauges for operators."""
        traffic, delivery = self.data_path.counts, self.local.counts
        stored, last_values = self.messages.statistics(), self.data_path.retaining.values
        names = DurableCounters.__struct_fields__
        return Snapshot(
            live=LiveCounters(
                published=traffic.published,
                received=traffic.received,
                rejected=traffic.rejected,
                forwarded=traffic.forwarded,
                duplicates=self.data_path.dedup.duplicates,
                dropped=traffic.dropped,
                misread=traffic.misread + self.data_path.patterns.misread,
                carry_refused=self.neighbours.links.refused,
                delivered=delivery.delivered,
                expired=traffic.expired + self.local.counts.expired,
                delivery_dropped=self.local.waiting.dropped.total(),
                subscriptions_ended=delivery.ended,
                expression_failures=self.table.expression_failures,
                pattern_dropped=self.data_path.patterns.dropped,
                pattern_keys_dropped=self.port.router.watches.keys_dropped,
            ),
            durable=DurableCounters(**{name: getattr(stored.counters, name) for name in names}),
            links=len(self.links),
            clients=len(self.clients),
            strangers=strangers,
            memory=MemoryGauges(
                unfinished_bytes,
                self.local.waiting.bytes,
                self.neighbours.links.waiting_bytes,
                self.data_path.held.bytes,
                self.data_path.patterns.bytes,
                self.port.router.watches.bytes,
            ),
            roles=self.neighbours.links.roles,
            subscriptions=len(list(self.subscriptions)),
            topology_version=self.view.database.version,
            store=StoreGauges(stored.publishers, stored.messages, stored.bytes),
            queues=QueuesSnapshot(
                len(stored.queues),
                self._queue_gauges(now_us),
                RepublishedSnapshot(*msgspec.structs.astuple(self.messages.republishing.counters)),
                len(self.messages.republishing.delayed),
                LastValuesSnapshot(
                    len(last_values),
                    last_values.bytes,
                    last_values.refused,
                    self.subscriptions.last_values.given,
                ),
            ),
            streams=stored.backlogs,
            overflows={bound.value: self.local.waiting.dropped[bound] for bound in Overflow},
            misrouted=dict(self.view.policy.dropped),
            table=TableGauges(
                *(len(self.table), self.table.version, self.data_path.schemas.snapshot()),
                *msgspec.structs.astuple(self.view.memory())[1:],  # all but the name of the scheme
            ),
        )


def assemble(
    settings: Settings, store: Store, now_us: int, random: Callable[[int], bytes], defers: bool
) -> Parts:
    name, output, links = settings.name, Output(), Links()
    epoch = _epoch(name, store, random)
    # routing
    table = InterestTable(kind_of, defers=defers)

    def now() -> int:
        return data_path.now_us

    router = _router(settings, table, now)
    port = RouterPort(router)
    policy = POLICIES[settings.routing](name, router)
    unicast = Unicast(name)
    database = LinkStateDatabase(name, epoch, now_us)
    database.own.record.address = settings.address
    # messages
    last_values = LastValues(store, settings.last_values)
    messages = MessageStore(
        store, name, epoch, now_us, settings.bounds, settings.full, settings.deliveries_max,
        last_values,
    )  # fmt: skip
    retaining = Retaining(name, last_values, messages, settings.limits)
    waiting = WaitingMessages(settings.waiting_max, settings.waiting)
    local = LocalDelivery(table, output, links, waiting)
    neighbour_links = NeighbourLinks(settings, links, output)
    work = WorkList()
    queue = PatternQueue(port, output, work, defers=defers)
    schemas = SchemaChecks(table)
    data_path = DataPath(
        table, local, messages, policy, neighbour_links, queue, links, output,
        HeldMessages(settings.held_max, settings.waiting), settings.skew_us, settings.limits,
        schemas, retaining,
    )  # fmt: skip
    # interests
    interests = Interests(table, port, policy, local, data_path.flush, queue, work)
    budget = TextBudget(settings.subscriptions)
    home = HomeSubscriptions(
        name, messages, interests, database,
        QueueOptions(settings.full, settings.deliveries_max), budget,
    )  # fmt: skip
    dead_letters = DeadLetters(name, messages.republishing, data_path, home.names, settings.limits)
    carrying = Carrier(name, messages, unicast, neighbour_links, links, output, dead_letters)
    republishing, known = messages.republishing, StoredFacts(store)
    exchange = LastValueExchange(retaining, republishing, database, store, work, unicast, now)
    remote = RemoteSubscriptions(messages, interests, database, known, exchange, work, now)
    flooding = Flooding(database, neighbour_links, remote, output, work, now)
    view = NetworkView(
        database, flooding, policy, unicast, interests, messages, work, settings.routing, exchange
    )
    # clients and neighbours
    feeds = LastValueFeeds(name, last_values, table, local, work, now)
    subscriptions = ClientSubscriptions(
        interests, local, messages, home, output, settings.subscriptions, budget, feeds
    )
    explaining = Explaining(
        (table, policy, unicast), database, subscriptions, home, neighbour_links, links, output, work,
    )  # fmt: skip
    quenching = Quenching(router, table, database, output, settings.quench)
    schemas.follow(settings.schemas, interests)
    administration = messages.administration
    queues = (
        QueueLists(home, subscriptions, local, administration, links, output),
        QueueActs(
            home, subscriptions, administration, data_path.flush, links, output, settings.access
        ),
        Orphans(store, home, administration, settings.orphans_us, work),
    )
    operations = Operations(explaining, quenching, database, flooding, queues, output, work)
    clients = Clients(
        settings.access, settings.connections, links, interests, subscriptions, messages, operations,
        output, work, settings.subscriptions,
    )  # fmt: skip
    neighbours = NeighbourMessages(neighbour_links, flooding, interests, explaining)
    return Parts(
        output, links, table, port, local, messages, data_path, carrying, interests, view,
        subscriptions, operations, clients, neighbours, work,
    )  # fmt: skip


def _router(settings: Settings, table: InterestTable, now: Callable[[], int]) -> Router:
    """It follows the graph of the brokers, unless interests come by link state."""
    waiting = settings.waiting
    return Router(
        settings.name,
        advertisements=settings.advertisements,
        patterns=PatternSettings(
            watch_bytes=waiting.watch_bytes, watches_bytes=waiting.watches_bytes
        ),
        table=table,
        graph=None if POLICIES[settings.routing].routes_by_link_state else RemoteBroker,
        clock=now,
    )


def _epoch(name: str, store: Store, random: Callable[[int], bytes]) -> str:
    """The epoch of this store, created with it. Raises if the store is another broker's."""
    known, owner = store.get(EPOCH_KEY), store.get(_NAME)
    if known is None or owner is None:
        known = random(8).hex().encode()
        store.put(EPOCH_KEY, known)
        store.put(_NAME, name.encode())
        return known.decode()
    try:
        owner_name, epoch = owner.decode(), known.decode()
    except UnicodeDecodeError as error:
        raise DamagedStore(f"the name or the epoch of the broker is not UTF-8: {error}") from None
    if owner_name != name:
        raise PalioError(
            f"the store belongs to broker {owner_name!r}, not to {name!r}; "
            "give each broker a folder of its own"
        )
    return epoch
