"""Publishers that wait until the broker has stored their durable messages, or has rejected them.

A rejected message belongs to the batch that published it, or to the task that waits for its
number; if there is neither, it is counted and logged.
"""

from __future__ import annotations

import asyncio
import logging

from palio.errors import NetworkError, RefusedByBroker, Unreachable

log = logging.getLogger("palio.client")


class PublishBatch:
    """Messages that one publisher waits for together. Most numbers are consecutive: ranges are few."""

    __slots__ = ("_ranges", "reason", "rejected", "sent")

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        self.sent = 0
        self.rejected = 0
        self.reason = ""
        """Why the broker rejected the first of them."""

    @property
    def last(self) -> int:
        """The last number; 0: the batch is empty."""
        return self._ranges[-1][1] if self._ranges else 0

    def add(self, first: int, last: int) -> None:
        """Add the messages with the numbers from `first` to `last`."""
        self.sent += last + 1 - first
        if self._ranges and self._ranges[-1][1] + 1 == first:
            first, _ = self._ranges.pop()
        self._ranges.append((first, last))

    def __contains__(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self._ranges)


class Acknowledgements:
    """Waits in the order of their numbers, which is the order of their deadlines too."""

    def __init__(self, max_wait: float) -> None:
        self.rejected = 0
        """Messages that the broker rejected while nobody waited for them."""
        self._max_wait = max_wait
        self._waits: dict[int, tuple[asyncio.Future[None], float]] = {}
        self._batches: list[PublishBatch] = []

    async def wait(self, number: int) -> None:
        """Wait until a message is stored; raises if it is rejected, or after `max_wait` seconds."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waits[number] = future, loop.time() + self._max_wait
        try:
            await future
        finally:
            self._waits.pop(number, None)

    def begin(self) -> PublishBatch:
        """Start a batch. It collects the rejections of its messages until `finish`."""
        batch = PublishBatch()
        self._batches.append(batch)
        return batch

    def finish(self, batch: PublishBatch) -> None:
        self._batches.remove(batch)

    def store(self, number: int) -> None:
        """All messages up to this number are stored."""
        stored = []
        for waited in self._waits:
            if waited > number:
                break
            stored.append(waited)
        for waited in stored:
            future, _deadline = self._waits.pop(waited)
            if not future.done():
                future.set_result(None)

    def reject(self, number: int, reason: str) -> None:
        """The broker will never store this message."""
        for batch in self._batches:
            if number in batch:
                batch.rejected += 1
                batch.reason = batch.reason or reason
                return
        future, _deadline = self._waits.pop(number, (None, 0.0))
        if future is not None and not future.done():
            future.set_exception(RefusedByBroker(f"the broker rejects the message: {reason}"))
        else:
            self.rejected += 1
            log.warning("the broker rejects message %d: %s", number, reason)

    def expire(self, now: float, trouble: str) -> None:
        """End the waits whose deadline has passed."""
        late = []
        for number, (_future, deadline) in self._waits.items():
            if deadline > now:
                break
            late.append(number)
        for number in late:
            future, _deadline = self._waits.pop(number)
            if not future.done():
                future.set_exception(
                    Unreachable(
                        f"message {number} was not acknowledged within {self._max_wait:g} s: "
                        f"{trouble}. The client keeps sending it while it is open, "
                        "so it may still be stored"
                    )
                )

    def fail(self, failure: NetworkError) -> None:
        """Nothing will be stored any more."""
        for future, _deadline in self._waits.values():
            if not future.done():
                future.set_exception(failure)
