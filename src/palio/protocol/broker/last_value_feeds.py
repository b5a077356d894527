"""Gives last values to new subscriptions, as they have credit.

    subscribe, last ─▶ the keys there are now ─▶ which does the predicate select? ─▶ DELIVER, `retained`
                       ├─ no credit: goes on with the next
                       └─ its newest value is not committed: it follows that commit

The subscription is in the interest table before its keys are listed, so what is published afterwards comes
live. A key that changes meanwhile is given with its value of then, and may come live as well. Values that
other brokers carry here are given to all subscriptions that began with last values, since their live copies
may have been lost. Whoever receives a value twice drops what is not newer (client/last_value_filter.py).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final, cast

from palio.errors import InvalidValue
from palio.model.predicate import Predicate
from palio.protocol.broker.effects import BackgroundJob
from palio.protocol.broker.local import LocalDelivery
from palio.protocol.broker.replay_matching import matching
from palio.protocol.broker.scheduler import Slices, WorkList, in_slices
from palio.protocol.durability.last_values import LastValue, LastValues
from palio.protocol.durability.subscriptions import Matching
from palio.protocol.interfaces import LiveSubscription
from palio.protocol.wire.batch import MessageBatch
from palio.protocol.wire.encode import deliver_pieces
from palio.protocol.wire.last_values import ValueOrder, marked
from palio.protocol.wire.message_headers import expiry
from palio.routing.interest_table import InterestTable

SLICE_STEPS: Final = 1000
"""Of about a microsecond: what is spent before others have their turn."""
_VALUE_STEPS: Final = 30
_KEY_STEPS: Final = 1
_CARRIED_AT_ONCE: Final = 16
_BYTES_PER_STEP: Final = 256
"""So that the host sees between slices whether the other end reads."""
Decision = Generator[None, None, bool]


class _Feed:
    """The keys that one subscription has not been given; of some, the order of the value that it waits
    for."""

    __slots__ = ("id", "is_running", "keys", "link", "matching", "spent", "uncommitted")

    def __init__(self, link: int, id: int, matching: Matching, keys: list[bytes]) -> None:
        self.link, self.id = link, id
        self.matching = matching
        self.keys = keys
        self.uncommitted: dict[bytes, ValueOrder] = {}
        self.is_running = False
        self.spent = 0

    def selects(self, value: LastValue) -> Decision:
        """Whether the predicate selects a value; it yields where others may have their turn."""
        self.spent += _VALUE_STEPS
        verdict = self.matching(value.attributes)
        while True:
            try:
                self.spent += next(verdict)
            except StopIteration as end:
                return bool(end.value)
            except InvalidValue:  # another broker took what this one cannot read
                return False
            if self.spent >= SLICE_STEPS:
                self.spent = 0
                yield


class LastValueFeeds:
    def __init__(
        self, me: str, values: LastValues, table: InterestTable, local: LocalDelivery, work: WorkList,
        now_us: Callable[[], int],
    ) -> None:  # fmt: skip
        self._me = me
        self._values, self._table, self._local, self._work = values, table, local, work
        self._now_us = now_us
        self._feeds: dict[tuple[int, int], _Feed] = {}
        self._subscribed: set[LiveSubscription] = set()
        """All that began with last values, while they are there."""
        self.given = 0
        """Since start: values that were given to new subscriptions."""

    def __len__(self) -> int:
        return len(self._feeds)

    def begin(self, link: int, id: int, predicate: Predicate) -> None:
        """Give a subscription that has just begun the last values that it selects."""
        self._subscribed.add(LiveSubscription(link, id))
        feed = _Feed(link, id, matching(predicate), self._values.keys())
        self._feeds[link, id] = feed
        self._go_on(feed)

    def end(self, link: int, id: int) -> None:
        """A subscription is over."""
        self._subscribed.discard(LiveSubscription(link, id))
        self._feeds.pop((link, id), None)

    def credited(self, link: int, id: int) -> None:
        """A subscription may have credit again."""
        feed = self._feeds.get((link, id))
        if feed is not None:
            self._go_on(feed)

    def released(self, links: list[int]) -> None:
        """The subscriptions of these links get messages again."""
        for feed in [one for one in self._feeds.values() if one.link in links]:
            self._go_on(feed)

    def committed(self, new: list[LastValue]) -> None:
        """A commit has made these values safe."""
        carried = [value for value in new if value.origin != self._me]
        if carried and self._subscribed:
            self._work.add(self._pass_on(carried))
        for feed in list(self._feeds.values()):
            safe = [
                key for key, order in feed.uncommitted.items() if self._values.is_safe(key, order)
            ]
            for key in safe:
                del feed.uncommitted[key]
            feed.keys += safe
            if safe:
                self._go_on(feed)

    def _go_on(self, feed: _Feed) -> None:
        if not feed.is_running:
            feed.is_running = True
            self._work.add(self._slices(feed))

    def _slices(self, feed: _Feed) -> Slices:
        try:
            while self._may_give(feed):
                if not feed.keys:
                    if not feed.uncommitted:
                        del self._feeds[feed.link, feed.id]
                    return
                yield from self._next(feed, feed.keys.pop())
                feed.spent += _KEY_STEPS
                if feed.spent >= SLICE_STEPS:
                    feed.spent = 0
                    yield None
        finally:
            feed.is_running = False

    def _may_give(self, feed: _Feed) -> bool:
        """Whether a subscription is still there, and has credit."""
        if self._feeds.get((feed.link, feed.id)) is not feed:
            return False
        waiting, credit = self._local.waiting_and_credit(feed.link, feed.id)
        return credit > 0 and not waiting

    def _next(self, feed: _Feed, key: bytes) -> Slices:
        awaited = self._values.awaited(key)
        if awaited is not None:
            feed.uncommitted[key] = awaited
            return
        value = self._values.find(key, self._now_us())
        if value is None:
            return
        is_selected = yield from feed.selects(value)
        if not is_selected:
            return
        if not self._may_give(feed) or self._values.find(key, self._now_us()) is not value:
            feed.keys.append(key)  # it has changed, or has to wait
            return
        entry = value.entry()._replace(payload=marked(value.payload))
        self.given += 1
        feed.spent += value.size // _BYTES_PER_STEP
        frame = b"".join(deliver_pieces(entry, (feed.id,)))
        self._local.occur(feed.link, feed.id, frame, value.expires_us)

    # ---- values of other brokers

    def _pass_on(self, values: list[LastValue]) -> Slices:
        """Give values that were carried here to the subscriptions that want them: the live copies may have
        been lost, or have passed before a subscription came."""
        for part in in_slices(values, _CARRIED_AT_ONCE):
            batch = MessageBatch.of([value.entry() for value in part], durable=True)
            lookup = self._table.look_up_ahead(batch) if self._table.expressions.has_any else None
            try:
                for compute in () if lookup is None else lookup.rounds():
                    job = BackgroundJob(compute)
                    yield job
                    lookup.note(job.result())  # type: ignore[union-attr]
                if lookup is not None:
                    self._table.note_ahead(lookup)
                self._deliver(batch)
            finally:
                if lookup is not None:
                    self._table.forget_ahead(lookup)
            yield None

    def _deliver(self, batch: MessageBatch) -> None:
        try:
            matches = self._table.lookup(batch)
        except InvalidValue:
            if batch.count > 1:  # what one broker takes, another may not read
                for row in range(batch.count):
                    self._deliver(batch.slice(row, row + 1))
            return
        for row in range(batch.count):
            for slot in matches.slots(row):
                interface = self._table.interfaces[slot]
                if interface in self._subscribed:
                    place = cast(LiveSubscription, interface)
                    entry = batch.entry(row)
                    frame = b"".join(deliver_pieces(entry, (place.id,)))
                    self._local.occur(place.link, place.id, frame, expiry(entry.payload))
