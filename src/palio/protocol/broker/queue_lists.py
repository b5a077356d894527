"""Lists of queues and subscriptions for operators, in pages.

A page has a bounded number of rows and a bounded size, and takes a bounded time, however many there are and
however long their predicates. `next` of a page is where the next one begins.
"""

from __future__ import annotations

from palio.model.predicate import Predicate
from palio.protocol.broker.access import check_admin
from palio.protocol.broker.client_subscription import ClientSubscription
from palio.protocol.broker.durable import HomeSubscriptions
from palio.protocol.broker.effects import Output
from palio.protocol.broker.links import Link, Links
from palio.protocol.broker.local import LocalDelivery
from palio.protocol.broker.subscriptions import ClientSubscriptions
from palio.protocol.durability.administration import QueueAdministration
from palio.protocol.wire.codes import SubscriptionKind
from palio.protocol.wire.queue_control import (
    ListQueues,
    ListSubscriptions,
    QueueRow,
    QueuesListed,
    SubscriptionRow,
    SubscriptionsListed,
)

ROWS_MAX = 100
"""Of a page."""
TEXT_MAX = 10_000
"""Characters of a predicate or pattern that are shown."""
_PAGE_TEXT_MAX = 256 << 10
"""Characters of all predicates and patterns of a page, after which it ends."""
_FILTERS_MAX = 64
"""Filters of a predicate that are shown."""


class QueueLists:
    def __init__(
        self,
        home: HomeSubscriptions,
        subscriptions: ClientSubscriptions,
        local: LocalDelivery,
        administration: QueueAdministration,
        links: Links,
        output: Output,
    ) -> None:
        self._home = home
        self._subscriptions = subscriptions
        self._local = local
        self._administration = administration
        self._links = links
        self._output = output

    def answer(self, link: Link, request: ListQueues | ListSubscriptions, now_us: int) -> None:
        assert link.identity is not None
        check_admin(link.identity, "see queues and subscriptions of others")
        if isinstance(request, ListSubscriptions):
            self._output.say(link.number, self._subscription_page(request))
        elif request.name:
            row = self._queue_row(self._home.find(request.name), now_us)
            if row is None:
                raise self._home.unknown(request.name)
            self._output.say(link.number, QueuesListed(request.id, (row,)))
        else:
            self._output.say(link.number, self._queue_page(request, now_us))

    def _queue_page(self, request: ListQueues, now_us: int) -> QueuesListed:
        rows: list[QueueRow] = []
        size, last = 0, 0
        for version, key in self._home.names.after(request.after):
            if len(rows) >= ROWS_MAX or size >= _PAGE_TEXT_MAX:
                return QueuesListed(request.id, tuple(rows), last)
            last = version
            row = self._queue_row(key, now_us)
            if row is not None:
                rows.append(row)
                size += len(row.predicate)
        return QueuesListed(request.id, tuple(rows))

    def _queue_row(self, key: str, now_us: int) -> QueueRow | None:
        """None: it has just ended."""
        status = self._administration.status(key)
        if status is None:
            return None
        name, text = self._home.names.name(key), self._home.text(key)
        oldest_us = 0 if status.stored_us is None else max(1, now_us - status.stored_us)
        return QueueRow(
            str(name), name.owner, _cut(text), status.messages, status.bytes, oldest_us,
            len(status.consumers), status.full, status.is_paused, name.group or "",
        )  # fmt: skip

    def _subscription_page(self, request: ListSubscriptions) -> SubscriptionsListed:
        rows: list[SubscriptionRow] = []
        size, last = 0, 0
        for number, one in self._subscriptions.after(request.after):
            if len(rows) >= ROWS_MAX or size >= _PAGE_TEXT_MAX:
                return SubscriptionsListed(request.id, tuple(rows), last)
            last = number
            link = self._links.open.get(one.link)
            if link is not None:
                text = _text(one)
                size += len(text)
                rows.append(self._subscription_row(link, one, _cut(text)))
        return SubscriptionsListed(request.id, tuple(rows))

    def _subscription_row(self, link: Link, one: ClientSubscription, text: str) -> SubscriptionRow:
        if one.durable:
            kind, name = SubscriptionKind.DURABLE, self._home.names.shown(one.durable)
            waiting = self._administration.waiting(one.durable)
            credit = self._administration.credit(one.durable, (one.link, one.id))
        else:
            kind, name = SubscriptionKind.LIVE, ""
            if one.pattern is not None:
                kind = SubscriptionKind.PATTERN
            elif one.group:
                kind = SubscriptionKind.SHARED
            waiting, credit = self._local.waiting_and_credit(one.link, one.id)
        return SubscriptionRow(
            one.identity.name, link.client, one.id, kind, text, waiting,
            max(0, credit + self._subscriptions.withheld.of(one.link)), name, one.group, link.is_congested,
        )  # fmt: skip


def _text(one: ClientSubscription) -> str:
    """The predicate or pattern of a subscription; of a long predicate, the beginning."""
    predicate = one.predicate
    if predicate is None:
        return str(one.pattern)
    if len(predicate) <= _FILTERS_MAX:
        return str(predicate)
    return f"{Predicate(predicate.filters[:_FILTERS_MAX])} OR ..."


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 3] + "..."
