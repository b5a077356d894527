"""The durable subscriptions whose home is this broker.

    open ───▶ store ──(commit)──▶ created: flood it, and answer who asked             Subscribed
    forget ─▶ store ──(commit)──▶ ended: answer who asked, and tell who consumed it   Unsubscribed
    move ───▶ store ──(commit)──▶ finish_move: from now on it has another owner

A durable subscription belongs to an identity, which chooses its name and perhaps a group. Clients of the
identity consume it while they are connected: one of them, or all members of the group, who share its queue.
Another group of the same name is another subscription. `name` in this module is the key of durable_names.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from palio.errors import PalioError
from palio.model.expression_costs import computed_names
from palio.model.predicate import Predicate
from palio.protocol.broker.access import Identity
from palio.protocol.broker.durable_names import DurableName, DurableNames
from palio.protocol.broker.groups import another_predicate, shown_predicate
from palio.protocol.broker.interests import Interests
from palio.protocol.broker.queue_options import QueueOptions
from palio.protocol.broker.replay_matching import matching
from palio.protocol.broker.text_budget import TextBudget, predicate_bytes
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.durability.outgoing import QueueEnded
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.policies.broker_record import filters_of
from palio.protocol.policies.link_state import LinkStateDatabase
from palio.protocol.wire.codes import EndCode, Full, RefusalCode
from palio.protocol.wire.control import Durable, Subscribed, SubscribeRequest
from palio.protocol.wire.parts import text_bytes
from palio.protocol.wire.refusals import HomeElsewhere, RequestRefused

DURABLE_NAME_BYTES_MAX = 255


class Consumer(NamedTuple):
    """A client's use of a durable subscription."""

    link: int
    id: int


class HomeSubscriptions:
    def __init__(
        self, me: str, store: MessageStore, interests: Interests, database: LinkStateDatabase,
        ceiling: QueueOptions, budget: TextBudget,
    ) -> None:  # fmt: skip
        """`ceiling`: the options of queues, unless a client asks for less (queue_options.py)."""
        self._me = me
        self._store = store
        self._interests = interests
        self._database = database
        self._ceiling = ceiling
        self._budget = budget
        self._durables: dict[str, Durable] = {}
        self._predicates: dict[str, Predicate] = {}
        self._uncommitted: dict[str, list[Consumer]] = {}
        """By uncommitted subscription: consumers waiting for Subscribed."""
        self._leaving: dict[tuple[str, int], list[Consumer]] = {}
        """By name and version of an uncommitted end: consumers waiting for Unsubscribed."""
        self._ending: dict[str, tuple[EndCode, str]] = {}
        """Ends that are not committed: why."""
        self._moving: dict[str, str] = {}
        """Subscriptions on their way to other identities: their new names."""
        self._version = 0
        self.names = DurableNames()

    def restore(self, now_us: int) -> None:
        """Re-register stored subscriptions."""
        known = sorted(self._store.subscriptions(), key=lambda stored: stored.durable.version)
        for stored in known:
            if stored.broker == self._me:
                predicate = Predicate(filters_of(stored.durable.predicate))
                owner, _, called = stored.name.partition("/")  # as older versions stored it
                title = DurableName(stored.owner or owner, stored.called or called, stored.group)
                options = QueueOptions(stored.full, stored.deliveries_max)
                self._create(stored.name, title, stored.durable, options, predicate, now_us)
                self._version = max(self._version, stored.durable.version)
                self._database.set_durable(stored.name, stored.durable, predicate.filters)

    def __iter__(self) -> Iterator[tuple[str, Predicate]]:
        return iter([(name, self._predicates[name]) for name in self._durables])

    def __len__(self) -> int:
        return len(self._durables)

    # ---- requests of clients

    def name(self, identity: Identity, durable: str, group: str) -> str:
        """The key of the subscription that a client calls so, or of a new one."""
        check_subscription_name("durable subscription", durable)
        check_subscription_name("group", group)
        title = DurableName(identity.name, durable, group)
        shown = str(title)
        if shown in self._moving.values():
            raise RequestRefused(
                RefusalCode.CONFLICT,
                f"an operator is giving {identity.name!r} a durable subscription {durable!r}",
                remedy="try again in a moment",
            )
        name = self.names.key_of(title)
        if self.names.key(shown) not in (None, name):
            raise RequestRefused(
                RefusalCode.CONFLICT,
                f"operators would see two queues {shown!r}: the group of one is in the name of the other",
                remedy="choose another name, or another group",
            )
        return name or self.names.new_key(shown)

    def check_home(self, home: str) -> None:
        """Raise if a subscription that is to live at this broker does not live here."""
        if home in ("", self._me):
            return
        for place in self._database.places():
            if place.broker == home:
                raise HomeElsewhere(self._me, home, place.address)
        raise RequestRefused(
            RefusalCode.UNKNOWN,
            f"there is no broker {home!r} in this network",
            remedy="durable='NAME@BROKER' says where a durable subscription lives; `palio topology` lists "
            "the brokers",
        )

    def decide_group(self, name: str, group: str, predicate: Predicate) -> None:
        """Give the group of a client to a subscription of an older version, which has none yet."""
        is_open = self.names.is_open(name) and self._store.has(name) and name not in self._moving
        if is_open and self._predicates[name] == predicate:
            self._store.administration.assign_group(name, group)
            self.names.rename(name, self.names.name(name)._replace(group=group))

    def is_ending(self, name: str) -> bool:
        """Whether a subscription has ended, and its end is not committed yet."""
        return name in self._durables and not self._store.has(name)

    def end_reason(self, name: str) -> tuple[EndCode, str]:
        """Why a subscription is ending."""
        return self._ending.get(name, (EndCode.FULL, "too many messages waited for it"))

    def open(
        self, name: str, identity: Identity, request: SubscribeRequest, predicate: Predicate,
        now_us: int,
    ) -> int:  # fmt: skip
        """Open a subscription, creating it if it does not exist. Returns its version."""
        if name != self.name(identity, request.durable, request.group):
            raise RequestRefused(
                RefusalCode.CONFLICT,
                f"the durable subscription {request.durable!r} has another owner or group now",
                remedy="subscribe again",
            )
        asked = self._ceiling.asked(request)
        if self.is_ending(name):
            self._drop(name)  # its end is not committed yet; this is a successor
        known = self._durables.get(name)
        if known is not None and self._predicates[name] != predicate:
            raise _conflict(request, known.predicate, self.names.is_open(name))
        if known is not None:
            status = self._store.administration.status(name)
            assert status is not None
            asked.check(request.durable, status)
            if asked.full is not None:
                self._store.administration.confirm_full(name, asked.full)
        if known is None:
            self._budget.check(_owner(name), _size(name, predicate))
            self._budget.expressions.check(_owner(name), computed_names(predicate))
            since = now_us if request.since is None else request.since
            self._version = max(self._version + 1, now_us)
            durable = Durable(str(predicate), since, self._version)
            title = DurableName(identity.name, request.durable, request.group)
            options = asked.within(self._ceiling)
            self._create(name, title, durable, options, predicate, now_us)
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

    def forget(self, name: str, consumer: Consumer | None, now_us: int) -> bool:
        """End a subscription for good. False: it does not exist. `consumer` waits for Unsubscribed."""
        if name not in self._durables or not self._store.has(name):
            return False
        if consumer is not None:
            self._leaving.setdefault((name, self._durables[name].version), []).append(consumer)
        self._store.remove(name, now_us)
        self._drop(name)
        return True

    # ---- acts of operators

    def find(self, shown: str) -> str:
        """The key of a subscription by its name, IDENTITY/NAME[:GROUP]. Raises if there is none."""
        name = self.names.key(shown)
        if name is None or not self._store.has(name):
            raise self.unknown(shown)
        return name

    def unknown(self, shown: str) -> RequestRefused:
        """The error for a name that does not exist."""
        text = repr(shown) if len(shown) <= 300 else repr(shown[:297]) + "..."
        return RequestRefused(
            RefusalCode.UNKNOWN,
            f"broker {self._me!r} has no durable subscription {text}",
            remedy="its name is IDENTITY/NAME, or IDENTITY/NAME:GROUP, and `palio queues` lists those "
            "of a broker",
        )

    def version(self, name: str) -> int:
        """The version of a subscription; 0: it does not exist any more."""
        durable = self._durables.get(name)
        return durable.version if durable is not None and self._store.has(name) else 0

    def predicate(self, name: str) -> Predicate:
        return self._predicates[name]

    def text(self, name: str) -> str:
        """The predicate of a subscription, as text."""
        return self._durables[name].predicate

    def end(self, name: str, code: EndCode, reason: str, now_us: int) -> int:
        """End a subscription for good; its consumers are told after the commit. Returns how many
        messages were in its queue."""
        count = self._store.administration.waiting(name)
        self._ending[name] = code, reason
        self._store.remove(name, now_us, reason, code)
        return count

    def begin_move(self, name: str, owner: str) -> None:
        """Give a subscription to another identity, once that is committed."""
        moved = str(self.names.name(name)._replace(owner=owner))
        if self.names.key(moved) is not None or moved in self._moving.values():
            raise RequestRefused(
                RefusalCode.CONFLICT,
                f"there is a durable subscription {moved!r} already",
                remedy="end or move that one first",
            )
        if name in self._moving:
            raise RequestRefused(RefusalCode.CONFLICT, f"{name!r} is moving already")
        self._moving[name] = moved
        self._store.administration.assign(name, owner)

    def finish_move(self, name: str, version: int, owner: str) -> bool:
        """A move is committed. False: the subscription has ended meanwhile."""
        self._moving.pop(name, None)
        if self.version(name) != version:
            return False
        self.names.rename(name, self.names.name(name)._replace(owner=owner))
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
        self._ending.pop(name, None)
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
        self, name: str, title: DurableName, durable: Durable, options: QueueOptions,
        predicate: Predicate, now_us: int,
    ) -> None:  # fmt: skip
        interface = DurableSubscription(self._me, name)
        self._interests.add_durable(interface, predicate)
        try:
            self._store.create(
                name, durable, options.full or Full.BLOCK, matching(predicate), now_us, *title,
                options.deliveries_max,
            )  # fmt: skip
        except PalioError:
            self._interests.remove_durable(interface)
            raise
        self._durables[name] = durable
        self._predicates[name] = predicate
        self._budget.add(_owner(name), _size(name, predicate))
        self._budget.expressions.add(_owner(name), computed_names(predicate))
        self.names.add(name, title, durable.version)

    def _drop(self, name: str) -> None:
        """Stop matching messages for a subscription."""
        if self._durables.pop(name, None) is not None:
            predicate = self._predicates.pop(name)
            self._budget.remove(_owner(name), _size(name, predicate))
            self._budget.expressions.remove(_owner(name), computed_names(predicate))
            self.names.remove(name)
            self._uncommitted.pop(name, None)
            self._interests.remove_durable(DurableSubscription(self._me, name))


def _owner(name: str) -> str:
    """The identity that made a durable subscription; there is no / in its name."""
    return name.partition("/")[0]


def _size(name: str, predicate: Predicate) -> int:
    return predicate_bytes(predicate) + text_bytes(name)


def _conflict(request: SubscribeRequest, predicate: str, is_open: bool) -> RequestRefused:
    """The error for a subscription that exists with another predicate; `is_open`: its group is not known."""
    what = f"the durable subscription {request.durable!r}"
    if request.group and not is_open:
        return another_predicate(f"the group {request.group!r} of {what}", predicate)
    return RequestRefused(
        RefusalCode.CONFLICT,
        f"{what} has the predicate {shown_predicate(predicate)}",
        remedy="unsubscribe it with forget first, or choose another name",
    )


def check_subscription_name(what: str, name: str) -> None:
    """Raise for a name that is too long, since it travels with every message for the subscription, or
    has control characters, which a store or a terminal may not take."""
    if not name.isprintable():
        raise RequestRefused(
            RefusalCode.INVALID,
            f"the name of the {what}, {name[:80]!r}, has characters that cannot be printed",
            remedy="choose another one",
        )
    size = text_bytes(name)
    if size > DURABLE_NAME_BYTES_MAX:
        raise RequestRefused(
            RefusalCode.LIMIT,
            f"the name of the {what} has {size} bytes; at most {DURABLE_NAME_BYTES_MAX} are allowed",
            remedy="choose a shorter one",
        )


def forget_of(home: HomeSubscriptions, called: DurableName, now_us: int) -> None:
    """End a subscription for good by its owner and what that calls it, if it exists."""
    name = home.names.key(str(called))
    if name is not None:
        home.forget(name, None, now_us)
