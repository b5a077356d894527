"""The broker's core as its host needs it: made of a configuration, with its measures for operators."""

from __future__ import annotations

import os
from collections.abc import Iterator

from palio.net.config import Config
from palio.net.core import Measure
from palio.protocol.access import Access
from palio.protocol.broker import Broker
from palio.protocol.store import Store


class HostedBroker(Broker):
    """A broker that a host asks for more than its effects."""

    def is_linked(self, neighbour: str) -> bool:
        return neighbour in self.neighbours.names

    def grant(self, access: Access, now_us: int) -> None:
        """Identities and grants are others from now on: what they do not allow ends."""
        self.now_us = now_us
        self.clients.reload(access)

    def measures(self) -> Iterator[Measure]:
        """Figures for metrics; names within palio_."""
        live, traffic, kept = self.live.counts, self.traffic.counts, self.deposit.statistics()
        for name, text, value in (
            ("published", "Messages of clients here that were taken", traffic.published),
            ("rejected", "Messages of clients here that were not taken", traffic.rejected),
            ("forwarded", "Live messages sent to neighbours", traffic.forwarded),
            ("doubled", "Messages that came again from neighbours", traffic.doubled),
            ("dropped", "Live messages that a neighbour had no room for", traffic.dropped),
            ("delivered", "Live messages to clients", live.delivered),
            ("delivered_dropped", "Live messages dropped: a client was too slow", live.dropped),
            ("subscriptions_ended", "Live subscriptions ended: a client was too slow", live.ended),
            ("durable_published", "Durable messages that were stored", kept.published),
            ("durable_duplicates", "Durable messages that were here before", kept.duplicates),
            ("durable_arrived", "Durable messages from other brokers", kept.arrived),
            ("durable_carried", "Durable messages sent to other brokers", kept.carried),
            ("durable_retries", "Durable messages sent to a broker again", kept.retries),
            ("durable_delivered", "Durable messages to clients", kept.delivered),
            ("durable_redelivered", "Durable messages to clients again", kept.redelivered),
            ("durable_acknowledged", "Durable messages that clients dealt with", kept.acknowledged),
            ("durable_dropped", "Durable messages dropped from full queues", kept.dropped),
            ("durable_ended", "Durable subscriptions ended: the queue was full", kept.ended),
        ):
            yield name, "counter", text, {}, value
        for name, text, value in (
            ("clients", "Clients that are connected", len(self.clients)),
            ("neighbours", "Neighbours that are linked", len(self.neighbours.names)),
            ("journal_messages", "Messages in the journal", kept.messages),
            ("journal_bytes", "Bytes of the journal", kept.bytes),
            ("publishers", "Publishers whose numbers are kept", kept.publishers),
        ):
            yield name, "gauge", text, {}, value
        for name, count in kept.queues.items():
            text = "Messages that wait for a durable subscription"
            yield "queue_messages", "gauge", text, {"subscription": name}, count
        for name, count in kept.backlogs.items():
            text = "Durable messages that wait for another broker"
            yield "backlog_messages", "gauge", text, {"destination": name}, count


def hosted(config: Config, store: Store, now_us: int) -> HostedBroker:
    """The core of a configuration."""
    return HostedBroker(config.settings, store, now_us, os.urandom)
