"""The durable subscriptions whose home is this broker.

    open ───▶ store ──(commit)──▶ created: flood it, and answer who asked             Subscribed
    forget ─▶ store ──(commit)──▶ ended: answer who asked, and tell who consumed it   Unsubscribed

A durable subscription belongs to an identity, which chooses its name. Clients of the identity
consume it while they are connected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from palio.errors import PalioError
from palio.model.message import Message
from palio.model.predicate import Predicate
from palio.protocol.broker.access import Identity
from palio.protocol.broker.interests import Interests
from palio.protocol.broker.text_budget import TextBudget, predicate_bytes
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.durability.outgoing import QueueEnded
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.policies.broker_record import filters_of
from palio.protocol.policies.link_state import LinkStateDatabase
from palio.protocol.wire.codes import Full, RefusalCode, parse_full
from palio.protocol.wire.control import Durable, Subscribed, SubscribeRequest
from palio.protocol.wire.parts import text_bytes
from palio.protocol.wire.refusals import RequestRefused

DURABLE_NAME_BYTES_MAX = 255


class Consumer(NamedTuple):
    """A client's use of a durable subscription."""

    link: int
    id: int


class HomeSubscriptions:
    def __init__(
        self, me: str, store: MessageStore, interests: Interests, database: LinkStateDatabase,
        full: Full, budget: TextBudget,
    ) -> None:  # fmt: skip
        """`full`: the default of what happens when a queue is full."""
        self._me = me
        self._store = store
        self._interests = interests
        self._database = database
        self._full = full
        self._budget = budget
        self._durables: dict[str, Durable] = {}
        self._predicates: dict[str, Predicate] = {}
        self._uncommitted: dict[str, list[Consumer]] = {}
        """By uncommitted subscription: consumers waiting for Subscribed."""
        self._leaving: dict[tuple[str, int], list[Consumer]] = {}
        """By name and version of an uncommitted end: consumers waiting for Unsubscribed."""
        self._version = 0

    def restore(self, now_us: int) -> None:
        """Re-register stored subscriptions."""
        for stored in self._store.subscriptions():
            if stored.broker == self._me:
                predicate = Predicate(filters_of(stored.durable.predicate))
                self._create(stored.name, stored.durable, stored.full, predicate, now_us)
                self._version = max(self._version, stored.durable.version)
                self._database.set_durable(stored.name, stored.durable, predicate.filters)

    def __iter__(self) -> Iterator[tuple[str, Predicate]]:
        return iter([(name, self._predicates[name]) for name in self._durables])

    def __len__(self) -> int:
        return len(self._durables)

    # ---- requests of clients

    def name(self, identity: Identity, durable: str) -> str:
        """The full name of a subscription that a client calls so."""
        check_subscription_name("durable subscription", durable)
        return f"{identity.name}/{durable}"

    def is_ending(self, name: str) -> bool:
        """Whether a subscription has ended, and its end is not committed yet."""
        return name in self._durables and not self._store.has(name)

    def open(self, name: str, request: SubscribeRequest, predicate: Predicate, now_us: int) -> int:
        """Open a subscription, creating it if it does not exist. Returns its version."""
        full = parse_full(request.full) or self._full
        if self.is_ending(name):
            self._drop(name)  # its end is not committed yet; this is a successor
        known = self._durables.get(name)
        if known is not None and self._predicates[name] != predicate:
            raise RequestRefused(
                RefusalCode.CONFLICT,
                f"the durable subscription {request.durable!r} has the predicate "
                f"{known.predicate}; unsubscribe it with forget first, or choose another name",
            )
        if known is None:
            self._budget.check(_owner(name), _size(name, predicate))
            since = now_us if request.since is None else request.since
            self._version = max(self._version + 1, now_us)
            durable = Durable(str(predicate), since, self._version)
            self._create(name, durable, full, predicate, now_us)
            if not self._store.has(name):
                self._drop(name)
                reason = "more messages waited for it from the past than its bound allows"
                raise RequestRefused(RefusalCode.FULL, reason)
            self._uncommitted[name] = []
        return self._durables[name].version

    def attach(self, name: str, consumer: Consumer, credit: int) -> Subscribed | None:
        """Add a consumer. Returns the answer, or None: it follows the commit (`created`)."""
        position = self._store.attach(name, consumer, credit)
        if name in self._uncommitted:
            self._uncommitted[name].append(consumer)
            return None
        return self._subscribed(name, consumer, position)

    def forget(self, name: str, consumer: Consumer, now_us: int) -> bool:
        """End a subscription for good. False: it does not exist."""
        if name not in self._durables or not self._store.has(name):
            return False
        self._leaving.setdefault((name, self._durables[name].version), []).append(consumer)
        self._store.remove(name, now_us)
        self._drop(name)
        return True

    # ---- after the commit

    def created(self, name: str) -> list[tuple[Consumer, Subscribed]]:
        """A subscription is committed: announce it. Returns the answers to its waiting consumers."""
        durable = self._durables.get(name)
        if durable is None:
            return []
        self._database.set_durable(name, durable, self._predicates[name].filters)
        waiting = self._uncommitted.pop(name, [])
        return [(consumer, self._subscribed(name, consumer, 0)) for consumer in waiting]

    def ended(self, ended: QueueEnded) -> list[Consumer]:
        """The end of a subscription is committed. Returns the consumers that wait to hear it."""
        name, version = ended.name, ended.version
        known = self._durables.get(name)
        if known is not None and known.version == version:
            self._drop(name)
        if name not in self._durables:  # a successor's announcement replaces this one
            self._database.set_durable(name, None)
        return self._leaving.pop((name, version), [])

    def _subscribed(self, name: str, consumer: Consumer, position: int) -> Subscribed:
        last, version = self._store.last_position(name), self._durables[name].version
        return Subscribed(consumer.id, position, last, version)

    def _create(
        self, name: str, durable: Durable, full: Full, predicate: Predicate, now_us: int
    ) -> None:
        interface = DurableSubscription(self._me, name)
        self._interests.add_durable(interface, predicate)
        try:
            self._store.create(name, durable, full, matching(predicate), now_us)
        except PalioError:
            self._interests.remove_durable(interface)
            raise
        self._durables[name] = durable
        self._predicates[name] = predicate
        self._budget.add(_owner(name), _size(name, predicate))

    def _drop(self, name: str) -> None:
        """Stop matching messages for a subscription."""
        if self._durables.pop(name, None) is not None:
            self._budget.remove(_owner(name), _size(name, self._predicates.pop(name)))
            self._uncommitted.pop(name, None)
            self._interests.remove_durable(DurableSubscription(self._me, name))


def _owner(name: str) -> str:
    """The identity of a durable subscription; there is no / in its name."""
    return name.partition("/")[0]


def _size(name: str, predicate: Predicate) -> int:
    return predicate_bytes(predicate) + text_bytes(name)


def check_subscription_name(what: str, name: str) -> None:
    """Raise for a name that is too long: it travels with every message for the subscription."""
    size = text_bytes(name)
    if size > DURABLE_NAME_BYTES_MAX:
        raise RequestRefused(
            RefusalCode.LIMIT,
            f"the name of the {what} has {size} bytes; at most {DURABLE_NAME_BYTES_MAX} are allowed",
            remedy="choose a shorter one",
        )


def matching(predicate: Predicate) -> Callable[[list[bytes]], list[bool]]:
    """A function that says which attributes (JSON) a predicate selects; for replays."""

    def matches(texts: list[bytes]) -> list[bool]:
        return [predicate.matches(Message.from_json(text)) for text in texts]

    return matches
