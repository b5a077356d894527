"""Who waits for which durable message to be stored, and what happens to those that never are."""

from __future__ import annotations

import asyncio
import logging

from palio.errors import NetworkError, RefusedByBroker, Unreachable

log = logging.getLogger("palio.client")


class Batch:
    """Messages that are waited for together. Their numbers come in runs, so ranges are few."""

    __slots__ = ("_ranges", "reason", "rejected", "sent")

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        self.sent = 0
        self.rejected = 0
        self.reason = ""
        """Of the first that was rejected."""

    @property
    def last(self) -> int:
        """The last number; 0: there is none."""
        return self._ranges[-1][1] if self._ranges else 0

    def add(self, first: int, last: int) -> None:
        """These numbers, which follow each other, belong to it."""
        self.sent += last + 1 - first
        if self._ranges and self._ranges[-1][1] + 1 == first:
            first, _ = self._ranges.pop()
        self._ranges.append((first, last))

    def __contains__(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self._ranges)


class Acknowledgements:
    """Waits in the order of numbers, which is that of their deadlines too."""

    def __init__(self, max_wait: float) -> None:
        self.rejected = 0
        """Messages that the broker did not take while nobody waited for them."""
        self._max_wait = max_wait
        self._waits: dict[int, tuple[asyncio.Future[None], float]] = {}
        self._batches: list[Batch] = []

    async def wait(self, number: int) -> None:
        """Until this message is stored; raises when it is rejected, or after `max_wait`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waits[number] = future, loop.time() + self._max_wait
        try:
            await future
        finally:
            self._waits.pop(number, None)

    def begin(self) -> Batch:
        """Rejections of a batch are gathered, from now until `finish`."""
        batch = Batch()
        self._batches.append(batch)
        return batch

    def finish(self, batch: Batch) -> None:
        self._batches.remove(batch)

    def store(self, number: int) -> None:
        """All up to this number are stored."""
        done = []
        for waited in self._waits:
            if waited > number:
                break
            done.append(waited)
        for waited in done:
            future, _deadline = self._waits.pop(waited)
            if not future.done():
                future.set_result(None)

    def reject(self, number: int, reason: str) -> None:
        """This message was not taken, and never will be."""
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
        """End the waits that took too long."""
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
                        f"{trouble}. It is sent again while this client lives, "
                        "so it may still be stored"
                    )
                )

    def fail(self, failure: NetworkError) -> None:
        """Nothing will be stored any more."""
        for future, _deadline in self._waits.values():
            if not future.done():
                future.set_exception(failure)
