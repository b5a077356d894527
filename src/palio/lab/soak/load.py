"""Clients that publish, subscribe, come and go, at a rate that is kept.

    publishers, two at each broker ──▶ b1 ══ b2 ──▶ readers, one for each lane, broker and kind
       live and durable messages                    a live and a durable subscription each
                       visitors: connect, subscribe, publish, unsubscribe, leave, all the time

A message belongs to a lane and has the next number of its publisher in that lane, so a reader of the
lane knows at once whether one is missing or came twice. Its body also says when it was sent.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from math import inf
from typing import NamedTuple

from palio.errors import PalioError
from palio.net.client import Client, Subscription, connect

LANES = 4
PUBLISHERS = 2
"""At each broker."""
_TICK_S = 0.02
_PADDING = bytes(80)
_BODY = struct.Struct("<dHHq")  # when it was sent, publisher, lane, number in the lane
_BURST = 200
_OUTSTANDING_MAX = 5_000
"""Durable messages of a publisher that wait for their acknowledgement; the rest waits at the source."""


class Ages(NamedTuple):
    """How old messages were when they arrived, in milliseconds."""

    messages: int
    p50: float
    p99: float
    p999: float

    @classmethod
    def of(cls, ages_s: list[float]) -> Ages:
        if not ages_s:
            return cls(0, 0.0, 0.0, 0.0)
        ordered = sorted(ages_s)
        last = len(ordered) - 1
        return cls(
            len(ordered),
            *(round(1000 * ordered[int(share * last)], 3) for share in (0.5, 0.99, 0.999)),
        )


class Reader:
    """What one subscription got."""

    def __init__(self, durable: bool) -> None:
        self.durable = durable
        self.ages_s: list[float] = []
        self.received = self.lost = self.doubled = 0
        self._last: dict[int, int] = {}

    async def run(self, subscription: Subscription) -> None:
        while notes := await subscription.many():
            now = time.perf_counter()
            for note in notes:
                sent, publisher, _, number = _BODY.unpack_from(note.body)
                self.ages_s.append(now - sent)
                last = self._last.get(publisher, number - 1)
                if number <= last:
                    self.doubled += 1
                else:
                    self.lost += number - last - 1
                    self._last[publisher] = number
                note.ack_soon()
            self.received += len(notes)


class Publisher:
    """Publishes at `rate` messages a second, half of them durable; None: as fast as it can."""

    def __init__(self, client: Client, number: int) -> None:
        self.rate: float | None = None
        self.sent = 0
        self._client, self._number = client, number
        self._storing: set[asyncio.Task[int]] = set()
        self._numbers = {(durable, lane): count(1) for durable in (False, True) for lane in range(LANES)}  # fmt: skip

    async def run(self) -> None:
        due = time.perf_counter()
        while True:
            if self.rate is None:
                await self._burst(_BURST)
                await asyncio.sleep(0)
                due = time.perf_counter()
                continue
            due += _TICK_S
            wait_s = due - time.perf_counter()
            if (
                wait_s < -1.0
            ):  # the machine was busy elsewhere: what was not sent is not made up for
                due = time.perf_counter()
            await asyncio.sleep(max(0.0, wait_s))
            await self._burst(max(2, round(self.rate * _TICK_S)))

    async def _burst(self, size: int) -> None:
        while self._client.unacknowledged > _OUTSTANDING_MAX:
            await asyncio.sleep(_TICK_S)
        await self._client.publish_many(self._drawn(False, size // 2), durable=False)
        storing = asyncio.create_task(
            self._client.publish_many(self._drawn(True, size - size // 2))
        )
        self.sent += size
        if self.rate is None:
            await storing
        else:  # the acknowledgement is not waited for: the rate is kept
            self._storing.add(storing)
            storing.add_done_callback(self._storing.discard)

    def _drawn(self, durable: bool, size: int) -> Sequence[tuple[dict[str, object], bytes]]:
        found: list[tuple[dict[str, object], bytes]] = []
        for i in range(size):
            lane = (self.sent + i) % LANES
            number = next(self._numbers[durable, lane])
            body = _BODY.pack(time.perf_counter(), self._number, lane, number) + _PADDING
            attributes: dict[str, object] = {
                "lane": lane, "durable": durable, "price": number % 1000, "kind": "soak",
            }  # fmt: skip
            found.append((attributes, body))
        return found


class SoakLoad:
    """Everything that runs; made by `running_load`."""

    def __init__(self, urls: list[str]) -> None:
        self._urls = urls
        self.readers: list[Reader] = []
        self.publishers: list[Publisher] = []
        self.visits = 0

    @property
    def sent(self) -> int:
        return sum(one.sent for one in self.publishers)

    @property
    def received(self) -> int:
        return sum(one.received for one in self.readers)

    @property
    def faults(self) -> dict[str, int]:
        """Of durable messages."""
        durable = [one for one in self.readers if one.durable]
        return {"lost": sum(one.lost for one in durable), "doubled": sum(one.doubled for one in durable)}  # fmt: skip

    def set_rate(self, messages_per_s: float | None) -> None:
        for one in self.publishers:
            one.rate = None if messages_per_s is None else messages_per_s / len(self.publishers)

    def ages(self, durable: bool) -> Ages:
        """Since the last call."""
        gathered: list[float] = []
        for one in self.readers:
            if one.durable is durable:
                gathered += one.ages_s
                one.ages_s = []
        return Ages.of(gathered)

    async def build(self, stack: AsyncExitStack, tasks: asyncio.TaskGroup) -> None:
        """Connect and subscribe; then start to publish, and let visitors come and go."""
        running: list[asyncio.Task[None]] = []
        for at, url in enumerate(self._urls):
            for lane in range(LANES):
                name = f"reader-{at}-{lane}"
                client = await stack.enter_async_context(connect(url, name=name, max_wait=inf))
                for durable in (False, True):
                    reader = Reader(durable)
                    subscription = client.subscribe(
                        f"lane = {lane} AND durable = {'TRUE' if durable else 'FALSE'}",
                        durable=f"lane-{lane}" if durable else None,
                    )
                    await subscription.ready()
                    self.readers.append(reader)
                    running.append(tasks.create_task(reader.run(subscription)))
        await asyncio.sleep(1.0)  # until both brokers know all subscriptions
        for at, url in enumerate(self._urls):
            for i in range(PUBLISHERS):
                client = await stack.enter_async_context(
                    connect(url, name=f"publisher-{at}-{i}", max_wait=inf)
                )
                publisher = Publisher(client, PUBLISHERS * at + i)
                self.publishers.append(publisher)
                running.append(tasks.create_task(publisher.run()))
            running += [tasks.create_task(self._visit(url, f"visitor-{at}-{i}")) for i in range(2)]
        stack.callback(lambda: [task.cancel() for task in running])

    async def _visit(self, url: str, name: str) -> None:
        """Connect, subscribe, publish, unsubscribe, leave, again and again under the same name."""
        for turn in count():
            try:
                async with connect(url, name=name) as client:
                    low = turn % 900
                    text = f"price BETWEEN {low} AND {low + 5} AND kind = '{name}-{turn % 50}'"
                    live = client.subscribe(text)
                    durable = client.subscribe(text, durable=f"{name}-{turn % 5}")
                    await asyncio.gather(live.ready(), durable.ready())
                    await client.publish({"price": low, "kind": f"{name}-{turn % 50}"})
                    await (await anext(durable)).ack()
                    await live.close()
                    await durable.close(forget=True)
                self.visits += 1
            except PalioError:  # it is only there to make work
                await asyncio.sleep(0.5)
            await asyncio.sleep(0.1)


@asynccontextmanager
async def running_load(urls: list[str]) -> AsyncIterator[SoakLoad]:
    load = SoakLoad(urls)
    async with asyncio.TaskGroup() as tasks, AsyncExitStack() as stack:
        await load.build(stack, tasks)
        yield load
