"""The records of all brokers, to be read: digests, complete states, the topology, what brokers want.

`LinkStateDatabase` derives from it and changes the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from palio.model.predicate import Filter, Predicate
from palio.protocol.policies.broker_record import BrokerRecord, DurableFact, RecordStatus
from palio.protocol.policies.topology_map import TopologyMap
from palio.protocol.wire.control import LinkState, Place
from palio.protocol.wire.last_values import LAST_VALUES
from palio.protocol.wire.routing_memory import RoutingMemory
from palio.routing.topology import Topology


class BrokerRecords:
    def __init__(self, me: str, records: dict[str, BrokerRecord]) -> None:
        self.me = me
        self._records = records
        self._map = TopologyMap(me, records)

    # ---- synchronization with a neighbour

    def digest(self) -> list[tuple[str, str, int]]:
        """The epochs and numbers of all records: what the control message Digest says, in parts.

        A record with status FACTS is listed under the number before its own, because the complete
        state of its number is wanted.
        """
        return [
            (broker, record.epoch, record.number - (record.status is RecordStatus.FACTS))
            for broker, record in self._records.items()
            if record.number
        ]

    def newer_than(self, known: Iterable[tuple[str, str, int]]) -> list[str]:
        """The brokers of which the sender of a digest has not got the state."""
        theirs = {broker: (number, epoch) for broker, epoch, number in known}
        return [
            broker
            for broker, record in self._records.items()
            if record.number and (record.number, record.epoch) > theirs.get(broker, (0, ""))
        ]

    def whole(self, broker: str) -> LinkState | None:
        """The complete state of a broker; None: there is none."""
        record = self._records.get(broker)
        return record.link_state(broker) if record is not None and record.number else None

    def facts(self, broker: str) -> LinkState:
        """The durable subscriptions of a broker, for the store; `restore` reads them."""
        return only_durable(self._records[broker].link_state(broker))

    # ---- queries

    def topology(self) -> Topology | None:
        """The topology, or None if this broker reaches no other one; the same object while the
        links are equal."""
        return self._map.topology()

    def reachable(self, broker: str) -> bool:
        return self._map.reachable(broker)

    def reachable_brokers(self) -> frozenset[str]:
        """All other brokers in the topology."""
        return self._map.reachable_brokers()

    def masters_of(self, broker: str) -> list[str]:
        """The master of a broker, the master of that one, and so on, over links that both ends report."""
        found: list[str] = []
        while (record := self._records.get(broker)) is not None and record.master not in found:
            above = self._records.get(record.master)
            if above is None or broker not in above.links:
                break
            found.append(record.master)
            broker = record.master
        return found

    def wanted(self, broker: str) -> Predicate:
        """What live subscriptions at a broker want; nothing if it is not known."""
        record = self._records.get(broker)
        return Predicate(tuple(record.filters) if record else ())

    def durables(self) -> Iterator[DurableFact]:
        """All durable subscriptions of the network, including those of this broker."""
        for broker, record in self._records.items():
            for name, durable in record.durable.items():
                yield DurableFact(broker, name, durable)

    def durable_filters(self, fact: DurableFact) -> tuple[Filter, ...]:
        """The filters of a durable subscription that `durables` has named."""
        return self._records[fact.broker].parsed[fact.name]

    def text_bytes(self) -> int:
        """Of all predicates of live subscriptions, as text."""
        return sum(record.text_bytes for record in self._records.values())

    def memories(self) -> dict[str, RoutingMemory | None]:
        """What each broker held to route messages when it sent its last state."""
        return {broker: record.memory for broker, record in self._records.items()}

    def places(self) -> tuple[Place, ...]:
        """All known brokers, for `palio topology`."""
        return tuple(
            Place(
                broker,
                tuple(sorted(record.links.items())),
                *(len(record.wanted), _durable(record), self.reachable(broker)),
                master=record.master,
                address=record.address,
            )
            for broker, record in sorted(self._records.items())
        )


def _durable(record: BrokerRecord) -> int:
    """How many durable subscriptions of clients live at a broker."""
    return len(record.durable) - (LAST_VALUES in record.durable)


def only_durable(state: LinkState) -> LinkState:
    """Its durable subscriptions alone."""
    return msgspec.structs.replace(
        state, links=(), master="", address="", wanted=(), is_faded=True, memory=None
    )
