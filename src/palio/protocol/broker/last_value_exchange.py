"""How the last values of keys get to all brokers.

    the first value, or announcement ──▶ a broker announces the durable subscription LAST_VALUES, which
                                         selects nothing: all others know it
    a value that is published here ──▶ the streams to all of them, as to any durable subscription
    a broker that is new, or was away for too long ──▶ all values that it may lack, before the next ones

So a value reaches a broker that was down, once, in the commit that acknowledges it (durability/streams.py).
While more than BACKLOG_MAX messages wait for a broker, nothing is added for it: of each key it needs only the
newest, so it gets all values anew when it is back. What it gets twice it recognises (wire/last_values.py).

A broker gives the values that were published there, those of the receiver itself, which may have lost its
disk, and those of brokers that it does not reach.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from palio.protocol.broker.retaining import Retaining
from palio.protocol.broker.scheduler import Slices, WorkList
from palio.protocol.durability.last_values import PREFIX, LastValue
from palio.protocol.durability.republishing import Republishing
from palio.protocol.durability.storage import Store
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.policies.broker_record import DurableFact
from palio.protocol.policies.link_state import LinkStateDatabase
from palio.protocol.policies.unicast import Unicast
from palio.protocol.wire.batch import MessageBatch
from palio.protocol.wire.control import Durable
from palio.protocol.wire.last_values import LAST_VALUES

BACKLOG_MAX: Final = 20_000
_NOTHING = "FALSE"
_VERSION = f"{PREFIX}version"
_GIVEN = f"{PREFIX}given/"
_GIVEN_AT_ONCE = 32


class _Transfer:
    """Values that a broker has not been given; None: it has not begun."""

    __slots__ = ("is_running", "left", "version")

    def __init__(self, version: int) -> None:
        self.version = version
        self.left: deque[LastValue] | None = None
        self.is_running = False


class LastValueExchange:
    def __init__(
        self, retaining: Retaining, store: Republishing, database: LinkStateDatabase, disk: Store,
        work: WorkList, unicast: Unicast, now_us: Callable[[], int],
    ) -> None:  # fmt: skip
        self._retaining, self._store, self._database = retaining, store, database
        self._disk, self._work = disk, work
        self._unicast, self._now_us = unicast, now_us
        self._versions: dict[str, int] = {}
        """Of the other brokers that hold last values."""
        self.transfers: dict[str, _Transfer] = {}
        """By broker: those that lack values."""
        retaining.begin = self.begin

    def restore(self) -> None:
        """After a restart, announce what was announced before."""
        stored = self._disk.get(_VERSION)
        if stored is not None and stored.isdigit():
            self._announce(int(stored))

    def begin(self) -> None:
        """There is a last value in the network."""
        values = self._retaining.values
        if values.is_on and not values.label:
            version = self._now_us()
            self._disk.put(_VERSION, str(version).encode())
            self._announce(version)

    def _announce(self, version: int) -> None:
        values = self._retaining.values
        if values.is_on:
            values.label = f"{version}@{LAST_VALUES}"
            self._database.set_durable(LAST_VALUES, Durable(_NOTHING, version, version), ())

    def learn(self, fact: DurableFact) -> None:
        """A broker has announced a durable subscription."""
        if fact.name != LAST_VALUES or fact.broker == self._database.me:
            return
        self.begin()
        broker, version = fact.broker, fact.durable.version
        self._versions[broker] = version
        if self._disk.get(_GIVEN + broker) != str(version).encode():
            self.transfers[broker] = _Transfer(version)
        self._follow()
        self._go_on()

    def forget(self, fact: DurableFact) -> None:
        """A durable subscription of another broker is gone."""
        if fact.name == LAST_VALUES and self._versions.pop(fact.broker, None) is not None:
            self.transfers.pop(fact.broker, None)
            self._disk.delete(_GIVEN + fact.broker)
            self._follow()

    def _follow(self) -> None:
        """Messages go to those that have been given all values, and those that are being given them."""
        self._retaining.others = tuple(
            [
                DurableSubscription(broker, LAST_VALUES)
                for broker in sorted(self._versions)
                if broker not in self.transfers or self.transfers[broker].left is not None
            ]
        )

    def wake(self) -> None:
        """Give values to those that have room again, and nothing to those for which too much waits."""
        for broker, version in self._versions.items():
            if broker not in self.transfers and self._store.backlog(broker) > BACKLOG_MAX:
                self.transfers[broker] = _Transfer(version)
                self._disk.delete(_GIVEN + broker)
                self._follow()
        self._go_on()

    def _go_on(self) -> None:
        for broker, transfer in self.transfers.items():
            to = DurableSubscription(broker, LAST_VALUES)
            is_ready = self._store.is_followed(to) and self._has_room(broker)
            if is_ready and not transfer.is_running:
                transfer.is_running = True
                self._work.add(self._transfer(broker, transfer))

    def _has_room(self, broker: str) -> bool:
        return self._store.backlog(broker) <= BACKLOG_MAX // 2

    def _transfer(self, broker: str, transfer: _Transfer) -> Slices:
        """Give values to a broker as far as there is room; `wake` goes on."""
        try:
            # values that are stored from now on go to the stream: it follows (`_go_on`)
            if transfer.left is None and self.transfers.get(broker) is transfer:
                transfer.left = deque(self._retaining.values.values())
                self._follow()
            at_once = 0
            while self.transfers.get(broker) is transfer and self._has_room(broker):
                assert transfer.left is not None
                if not transfer.left:
                    del self.transfers[broker]
                    self._disk.put(_GIVEN + broker, str(transfer.version).encode())
                    return
                value = transfer.left[0]
                if self._may_lack(broker, value) and not self._give(broker, value):
                    return
                transfer.left.popleft()
                at_once += 1
                if at_once == _GIVEN_AT_ONCE:
                    at_once = 0
                    yield None
        finally:
            transfer.is_running = False

    def _may_lack(self, broker: str, value: LastValue) -> bool:
        origin = value.origin
        return origin in (self._database.me, broker) or origin not in self._unicast.hop_of

    def _give(self, broker: str, value: LastValue) -> bool:
        message = MessageBatch.of([value.entry()], durable=True)
        to = DurableSubscription(broker, LAST_VALUES)
        return self._store.hand_over(message, to, self._now_us())
