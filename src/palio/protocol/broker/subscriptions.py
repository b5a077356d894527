"""The subscriptions of clients: live, shared, durable, and patterns.

    SubscribeRequest ─▶ checked by the grants ─┬─ live, shared ─▶ interests, local delivery
                                               ├─ pattern ──────▶ interests
                                               └─ durable ──────▶ home subscriptions, and live for
                                                                  messages that are not durable
A client gets the answer at once; for a new durable subscription, after the commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import cast

from msgspec.structs import replace

from palio.errors import PalioError
from palio.protocol.broker.access import Identity
from palio.protocol.broker.client_subscription import ClientSubscription
from palio.protocol.broker.durable import Consumer, HomeSubscriptions, check_subscription_name
from palio.protocol.broker.durable_names import DurableName
from palio.protocol.broker.effects import BackgroundJob, CommittedAct, Output
from palio.protocol.broker.expression_budget import check_alone
from palio.protocol.broker.groups import LiveGroups
from palio.protocol.broker.interests import Interests
from palio.protocol.broker.last_value_feeds import LastValueFeeds
from palio.protocol.broker.leaving_clients import LeavingClients, SharedName
from palio.protocol.broker.local import LocalDelivery
from palio.protocol.broker.numbered_rows import NumberedRows
from palio.protocol.broker.scheduler import SLICE_UNITS, Slices, in_slices
from palio.protocol.broker.settings import SubscriptionBounds
from palio.protocol.broker.subscription_checks import (
    check_predicate,
    denied,
    live_full,
    positive,
    watchable,
)
from palio.protocol.broker.text_budget import TextBudget
from palio.protocol.broker.withheld_credit import WithheldCredit
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.durability.outgoing import QueueEnded
from palio.protocol.interfaces import (
    DurableConsumers,
    LiveSubscription,
    LocalInterface,
    SharedSubscription,
    Watcher,
)
from palio.protocol.wire.codes import EndCode, Full, RefusalCode
from palio.protocol.wire.control import (
    Done,
    Subscribed,
    SubscribeRequest,
    SubscriptionEnded,
    Unsubscribed,
    UnsubscribeRequest,
)
from palio.protocol.wire.parts import cut
from palio.protocol.wire.queue_control import ForgetDurable
from palio.protocol.wire.refusals import RequestRefused

_REMOVED_AT_ONCE = 4
"""Subscriptions: a slice of a departure."""
_CHECKED_AT_ONCE = 64
"""Subscriptions whose grants are checked by one job."""


class ClientSubscriptions:
    def __init__(
        self,
        interests: Interests,
        local: LocalDelivery,
        store: MessageStore,
        home: HomeSubscriptions,
        output: Output,
        bounds: SubscriptionBounds,
        budget: TextBudget,
        last_values: LastValueFeeds,
    ) -> None:
        self._interests, self._local, self._store = interests, local, store
        self.last_values = last_values
        self.home, self._output = home, output
        self.withheld = WithheldCredit(local, store, last_values)
        self._bounds, self.budget = bounds, budget
        self._groups = LiveGroups()
        self._clients: dict[int, dict[int, ClientSubscription]] = {}  # by link and id
        self._watching: dict[int, int] = {}  # by link: how many patterns
        self._rows: NumberedRows[ClientSubscription] = NumberedRows()
        self._number = 0
        self._grants: dict[int, Identity] = {}
        """By link: the grants that were set since its client came."""
        self._leaving = LeavingClients()

    def __iter__(self) -> Iterator[ClientSubscription]:
        return iter([one for own in self._clients.values() for one in own.values()])

    def after(self, number: int) -> Iterator[tuple[int, ClientSubscription]]:
        """Numbers and subscriptions after a number."""
        for found, one in self._rows.after(number):
            if self._clients.get(one.link, {}).get(one.id) is one:  # else it is being removed
                yield found, one

    def join(self, link: int) -> None:
        """A client has connected."""
        self._clients[link] = {}

    def leave(self, link: int) -> Slices | None:
        """The client of a link has left: its subscriptions get nothing any more. Returns the slices that
        remove them."""
        self._grants.pop(link, None)
        self.withheld.leave(link)
        own = self._clients.pop(link)
        if not own:
            self._local.forget_link(link)
            return None
        self._leaving.leave(link, own)
        return self._remove_in_slices(link)

    def _remove_in_slices(self, link: int) -> Slices:
        at_once = 0
        for one in self._leaving.of(link):
            self._remove(one)
            at_once += 1
            if (units := self._interests.units_spent()) > SLICE_UNITS:
                yield units
            if at_once == _REMOVED_AT_ONCE or one.pattern is not None:
                at_once = 0
                yield None
        self._local.forget_link(link)

    def _let_go(self, shared: SharedName) -> Slices:
        """Remove the members of a group, or consumers of a durable subscription, that have left."""
        while left := self._leaving.members(shared, _REMOVED_AT_ONCE):
            for one in left:
                self._remove(one)
            if len(left) == _REMOVED_AT_ONCE:
                yield None

    # ---- requests

    def subscribe(
        self, link: int, identity: Identity, request: SubscribeRequest, now_us: int
    ) -> Slices:
        own = self._clients[link]
        if request.id in own:
            reason = f"subscription {request.id} is there already; choose another id"
            raise RequestRefused(RefusalCode.CONFLICT, reason)
        if len(own) >= self._bounds.subscriptions_max:
            reason = f"a client may have {self._bounds.subscriptions_max} subscriptions here"
            raise RequestRefused(RefusalCode.LIMIT, reason)
        if bool(request.pattern) == bool(request.predicate):
            raise PalioError("a subscription has a predicate or a pattern, and not both")
        if request.last and (request.pattern or request.durable or request.group):
            raise PalioError(
                "last values are for live subscriptions without a group",
                remedy="subscribe a second time, without a durable name, group or pattern",
            )
        one = ClientSubscription(link, request.id, identity)
        check_subscription_name("group", request.group)
        one.group = request.group
        if request.pattern:
            yield from self._watch(one, request)
            return
        self._bounds.check_text(request.predicate)
        checked = yield from check_predicate(request.predicate, identity, self._bounds)
        one.predicate, one.bytes, one.computed = checked
        if request.durable:
            if request.since is not None:
                check_alone(one.computed, "a subscription that begins in the past")
            one.bytes, one.computed = 0, ()
            yield from self._subscribe_durably(one, request, now_us)
        else:
            self.budget.check(link, one.bytes)
            self.budget.expressions.check(link, one.computed)
            yield from self._subscribe_live(one, request)

    def _watch(self, one: ClientSubscription, request: SubscribeRequest) -> Slices:
        if request.durable or request.group or request.since is not None:
            raise PalioError("a pattern is watched while the client is there: no durable, no group")
        if self._watching.get(one.link, 0) >= self._bounds.watches_max:
            reason = f"a client may watch {self._bounds.watches_max} patterns here"
            raise RequestRefused(RefusalCode.LIMIT, reason)
        credit, ends = positive(request.credit), live_full(request.full) is Full.END
        self._bounds.check_text(request.pattern, "the pattern")
        job = BackgroundJob(lambda: watchable(request.pattern, one.identity, self._bounds))
        yield job
        one.pattern, one.bytes, one.computed = job.result()
        self.budget.check(one.link, one.bytes)
        self.budget.expressions.check(one.link, one.computed)
        self.budget.expressions.check_watched(one.computed)
        self._interests.watch(Watcher(one.link, one.id), one.pattern)
        self._local.add_watcher(one.link, one.id, credit, ends=ends)
        self._add(one)
        self._output.say(one.link, Subscribed(one.id))

    def _subscribe_live(self, one: ClientSubscription, request: SubscribeRequest) -> Slices:
        assert one.predicate is not None
        if request.since is not None:
            raise PalioError("only a durable subscription starts in the past; give it a name")
        credit, ends = positive(request.credit), live_full(request.full) is Full.END
        interface: LocalInterface = LiveSubscription(one.link, one.id)
        if request.group:
            yield from self._let_go(SharedSubscription(one.identity.name, request.group))
            interface = one.shared = self._groups.join(
                one.identity.name, request.group, one.predicate
            )
        try:
            yield from self._interests.enter(interface, one.predicate.filters)
        except BaseException:  # GeneratorExit too: the client is gone
            if one.shared is not None:
                self._groups.leave(one.shared)
            raise
        self._interests.subscribe(interface, (one.link, one.id), credit, ends=ends)
        self._add(one)
        self._output.say(one.link, Subscribed(one.id))
        if request.last:
            self.last_values.begin(one.link, one.id, one.predicate)
        if units := self._interests.units_spent():
            yield units

    def _subscribe_durably(
        self, one: ClientSubscription, request: SubscribeRequest, now_us: int
    ) -> Slices:
        assert one.predicate is not None
        self.home.check_home(request.home)
        credit, consumer = positive(request.credit), Consumer(one.link, one.id)
        self._interests.flush()  # what has arrived may end the one that is asked for
        one.durable = name = self.home.name(one.identity, request.durable, request.group)
        self.home.decide_group(name, request.group, one.predicate)
        yield from self._let_go(name)
        if self.home.is_ending(name):  # this is a successor: nobody takes part in both
            for other in self._consuming(name):
                self.end(other.link, other.id, *self.home.end_reason(name))
        interface = DurableConsumers(name)
        yield from self._interests.enter(interface, one.predicate.filters)
        self._interests.flush()
        try:
            one.version = self.home.open(name, one.identity, request, one.predicate, now_us)
            answer = self.home.attach(name, consumer, credit)  # from here on nothing is refused
        except PalioError:
            self._interests.leave(interface)
            raise
        others = [] if request.group else self._consuming(name)
        self._interests.subscribe(interface, consumer, credit)  # before the last of the others goes
        self._add(one)
        for other in others:
            self.end(other.link, other.id, EndCode.TAKEN_OVER, "another client has taken it over")
        if answer is not None:
            self._output.say(one.link, replace(answer, took_over=bool(others)))

    def unsubscribe(self, link: int, request: UnsubscribeRequest, now_us: int) -> None:
        one = self._clients[link].get(request.id)
        if one is None:
            reason = f"there is no subscription {request.id}"
            raise RequestRefused(RefusalCode.UNKNOWN, reason)
        self._remove(self._clients[link].pop(request.id))
        if one.durable and request.forget:
            for other in self._consuming(one.durable):
                self.end(other.link, other.id, EndCode.FORGOTTEN, "another client has forgotten it")
            if self.home.forget(one.durable, Consumer(link, request.id), now_us):
                return  # the answer follows the commit
        self._output.say(link, Unsubscribed(request.id))

    def forget(self, link: int, identity: Identity, request: ForgetDurable, now_us: int) -> None:
        """End a durable subscription of an identity by its name; raises if there is none."""
        self._interests.flush()
        name = self.home.name(identity, request.durable, request.group)
        if not self.home.version(name):
            raise self.home.unknown(str(DurableName(identity.name, request.durable, request.group)))
        for other in self._consuming(name):
            self.end(other.link, other.id, EndCode.FORGOTTEN, "another client has forgotten it")
        self.home.forget(name, None, now_us)
        self._store.administration.note_act(CommittedAct(link, Done(request.id), None))

    def grant_credit(self, link: int, id: int, count: int) -> None:
        self._local.grant_credit(link, id, positive(count))
        self.last_values.credited(link, id)

    # ---- changes

    def set_grants(self, identities: Mapping[int, Identity]) -> Slices:
        """Set new grants of clients, by link. They get no messages until the slices, which are returned,
        have compared their subscriptions; those that the grants do not cover end."""
        self._grants.update(identities)
        self.withheld.withhold(identities)
        return self._check(identities)

    def _check(self, identities: Mapping[int, Identity]) -> Slices:
        links: list[int] = []
        found: list[tuple[Identity, ClientSubscription]] = []
        for link, identity in identities.items():
            links.append(link)
            own = self._clients.get(link, {}).values()
            found += [(identity, one) for one in own if one.identity is not identity]
            if len(found) >= _CHECKED_AT_ONCE:
                yield from self._compare(found)
                self.withheld.release(links)
                links, found = [], []
        yield from self._compare(found)
        self.withheld.release(links)

    def _compare(self, found: list[tuple[Identity, ClientSubscription]]) -> Slices:
        """Compare subscriptions with grants, and end those that they do not cover."""
        for part in in_slices(found, _CHECKED_AT_ONCE):
            job = BackgroundJob(partial(denied, part))
            if any(not identity.subscribes_anything for identity, _ in part):
                yield job
            else:
                job.run()
                yield None
            for (identity, one), reason in zip(part, job.result(), strict=True):
                if self._grants.get(one.link) is not identity:  # they have changed again
                    continue
                one.identity = identity
                if reason and self._clients[one.link].get(one.id) is one:
                    self.end(one.link, one.id, EndCode.DENIED, reason)

    def end(self, link: int, id: int, code: EndCode, reason: str) -> None:
        """End a subscription and tell its client why."""
        if id in self._clients.get(link, {}):
            self._output.say(link, SubscriptionEnded(id, cut(reason), code))
            self._remove(self._clients[link].pop(id))

    def created(self, name: str) -> None:
        """A durable subscription is committed: answer its consumers."""
        for consumer, answer in self.home.created(name):
            if self._consumed(consumer, name) is not None:
                self._output.say(consumer.link, answer)

    def ended(self, ended: QueueEnded) -> None:
        """The end of a durable subscription is committed: tell its consumers."""
        for consumer in self.home.ended(ended):
            if consumer.link in self._clients:
                self._output.say(consumer.link, Unsubscribed(consumer.id))
        for consumer in cast(list[Consumer], ended.consumers):
            one = self._consumed(consumer, ended.name)
            if one is not None and one.version == ended.version:
                self.end(consumer.link, consumer.id, ended.code, ended.reason)

    def consumers(self, name: str) -> list[Consumer]:
        """The consumers of a durable subscription."""
        return cast(list[Consumer], self._store.administration.consumers(name))

    def _consumed(self, consumer: Consumer, name: str) -> ClientSubscription | None:
        """The subscription of a consumer, if it is the durable one of this name."""
        one = self._clients.get(consumer.link, {}).get(consumer.id)
        return one if one is not None and one.durable == name else None

    def _consuming(self, name: str) -> list[ClientSubscription]:
        members = self._local.members(DurableConsumers(name))
        found = [self._clients.get(link, {}).get(id) for link, id in members]
        return [one for one in found if one is not None]

    def _add(self, one: ClientSubscription) -> None:
        self._clients[one.link][one.id] = one
        self.budget.add(one.link, one.bytes)
        self.budget.expressions.add(one.link, one.computed)
        self._number = one.number = self._number + 1
        self._rows.add(one.number, one)
        self._leaving.add(one)
        if one.pattern is not None:
            self._watching[one.link] = self._watching.get(one.link, 0) + 1
            self.budget.expressions.watch(one.computed)
        if one.durable:
            self.withheld.add(Consumer(one.link, one.id))

    def _remove(self, one: ClientSubscription) -> None:
        self.budget.remove(one.link, one.bytes)
        self.budget.expressions.remove(one.link, one.computed)
        self._rows.remove(one.number)
        self._leaving.remove(one)
        if one.pattern is not None:
            self._watching[one.link] -= 1
            self.budget.expressions.unwatch(one.computed)
            if not self._watching[one.link]:
                del self._watching[one.link]
            self._interests.unwatch(Watcher(one.link, one.id))
            self._local.remove(one.link, one.id)
            return
        self.last_values.end(one.link, one.id)
        self._interests.unsubscribe((one.link, one.id))
        if one.shared is not None:
            self._groups.leave(one.shared)
        if one.durable:
            consumer = Consumer(one.link, one.id)
            self.withheld.remove(consumer)
            self._store.detach(consumer)


def end_overflowed(local: LocalDelivery, subscriptions: ClientSubscriptions) -> None:
    """Subscriptions for which too much waited are over."""
    while local.overflowed:
        one, reason = local.overflowed.pop()
        subscriptions.end(one.link, one.id, EndCode.FULL, reason)
