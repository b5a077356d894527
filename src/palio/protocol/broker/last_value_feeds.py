"""Gives last values to new subscriptions, as they have credit.

    subscribe, last ─▶ the keys there are now ─▶ which does the predicate select? ─▶ DELIVER, `retained`
                       ├─ no credit: goes on with the next
                       └─ its newest value is not committed: it follows that commit

The subscription is in the interest table before its keys are listed, so what is published afterwards comes
live. A key that changes meanwhile is given with its value of then, and may come live as well; whoever
receives both drops the one that is not newer (client/last_value_filter.py).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final

from palio.errors import InvalidValue
from palio.model.predicate import Predicate
from palio.protocol.broker.local import LocalDelivery
from palio.protocol.broker.replay_matching import matching
from palio.protocol.broker.scheduler import Slices, WorkList
from palio.protocol.durability.last_values import LastValue, LastValues
from palio.protocol.durability.subscriptions import Matching
from palio.protocol.wire.encode import deliver_pieces
from palio.protocol.wire.last_values import ValueOrder, marked

SLICE_STEPS: Final = 1000
"""Of about a microsecond: what is spent before others have their turn."""
_VALUE_STEPS: Final = 30
_KEY_STEPS: Final = 1
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
        self, values: LastValues, local: LocalDelivery, work: WorkList, now_us: Callable[[], int]
    ) -> None:
        self._values, self._local, self._work = values, local, work
        self._now_us = now_us
        self._feeds: dict[tuple[int, int], _Feed] = {}
        self.given = 0
        """Since start: values that were given to new subscriptions."""

    def __len__(self) -> int:
        return len(self._feeds)

    def begin(self, link: int, id: int, predicate: Predicate) -> None:
        """Give a subscription that has just begun the last values that it selects."""
        feed = _Feed(link, id, matching(predicate), self._values.keys())
        self._feeds[link, id] = feed
        self._go_on(feed)

    def end(self, link: int, id: int) -> None:
        """A subscription is over."""
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

    def committed(self) -> None:
        """A commit has made values safe."""
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
        self._local.occur(feed.link, feed.id, b"".join(deliver_pieces(entry, (feed.id,))))
