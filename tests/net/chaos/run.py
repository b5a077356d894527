"""Clients that publish and subscribe while a plan of faults runs, and the judgement in the end.

The plan is a list of faults. Each step of it lets the clients publish another part of the messages,
so that messages are under way during every fault whatever the speed of the machine. A fault lasts
for its time and heals, while others begin. Some subscriptions are made on the way. In the end
everything heals, and each durable subscription must have exactly what brute force says, once.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack
from math import inf
from pathlib import Path
from random import Random

import palio
from palio.net.client import Client, Subscription
from tests.net.chaos.plans import CLIENTS, Plan, drawn
from tests.net.chaos.scene import Scene
from tests.net.judgement import EXAMPLES, Id, Judge, Sent, Taken, Workload, published

SUBSCRIPTIONS = 10
"""Durable ones of each client."""
LATE = 2
"""Of these, made while the plan runs."""
LIVE, REPLAY = "live", "replay"
BATCH = 50
LAST = 100
"""Messages that are published when all is healed: live ones must get these too."""


class Chaos:
    def __init__(self, plan: Plan, folder: Path, scene: type[Scene] = Scene) -> None:
        self.plan = plan
        self._random = Random(plan.seed)
        self._workload = Workload(self._random)
        self._judge = Judge(self._workload)
        self._scene = scene(plan, folder, self._say)
        self._clients: dict[str, Client] = {}
        self._taken: list[Taken] = []
        self._sent: dict[str, Sent] = {}
        self._released = 0
        self._release = asyncio.Condition()
        self._readers: asyncio.TaskGroup
        self._began = time.monotonic()
        self._log: list[tuple[float, str]] = []

    # ---- the whole of it

    async def run(self) -> str:
        """Raises AssertionError with a report when something was lost, doubled or not wanted;
        gives the summary."""
        async with AsyncExitStack() as stack:
            await self._build(stack)
            self._readers = await stack.enter_async_context(asyncio.TaskGroup())
            watch = self._readers.create_task(self._scene.watched())
            tasks: list[asyncio.Task[None]] = [watch]
            try:
                await self._subscribe_first(tasks)
                await self._storm(tasks)
                await asyncio.gather(*(self._subscribe(f"c{i}", REPLAY, tasks) for i in (1, 7)))
                await self._settle()
                await self._last_round()
                report, summary = await self._report()
            finally:
                for task in tasks:
                    task.cancel()
        if report:
            log = "\n".join(f"{at:7.1f} s  {text}" for at, text in self._log)
            raise AssertionError(f"seed {self.plan.seed}\n{report}\n{log}\n{self._scene.after()}")
        return summary

    async def _build(self, stack: AsyncExitStack) -> None:
        await self._scene.build(stack)
        self._say("brokers agree")
        names = self._scene.names
        for number in range(1, CLIENTS + 1):
            name, home = f"c{number}", names[number % len(names)]
            url, token = await self._scene.url(name, home, stack), self._scene.token(name)
            client = palio.connect(url, token=token, name=name, wait=30, max_wait=inf)
            self._clients[name] = await stack.enter_async_context(client)
            self._sent[name] = Sent(name, home)

    def _say(self, text: str) -> None:
        at = time.monotonic() - self._began
        self._log.append((at, text))
        print(f"{at:7.1f} s  {text}", file=sys.stderr, flush=True)

    # ---- subscriptions

    async def _subscribe_first(self, tasks: list[asyncio.Task[None]]) -> None:
        subscribing = []
        for name in self._clients:
            subscribing += [
                self._subscribe(name, str(i), tasks) for i in range(SUBSCRIPTIONS - LATE)
            ]
            subscribing.append(self._subscribe(name, LIVE, tasks))
        await asyncio.gather(*subscribing)
        await self._scene.agreed()
        self._say(f"{len(subscribing)} subscriptions")

    async def _subscribe(self, client: str, suffix: str, tasks: list[asyncio.Task[None]]) -> None:
        """A durable subscription; LIVE: one that is not; REPLAY: one from the beginning."""
        name, is_durable, home = f"{client}-{suffix}", suffix != LIVE, self._sent[client].broker
        taken = Taken(name, client, home, self._workload.predicate(), is_durable)
        self._taken.append(taken)
        made = self._clients[client].subscribe(
            taken.text,
            durable=name if is_durable else None,
            since=0 if suffix == REPLAY else None,
        )
        tasks.append(self._readers.create_task(_read(made, taken, Random(name))))
        await made.ready()
        taken.ready_at = time.monotonic()
        taken.since = 0.0 if suffix == REPLAY else taken.ready_at

    # ---- messages

    async def _publish(self, name: str, count: int) -> None:
        """In batches, as far as the plan has come."""
        client, sent = self._clients[name], self._sent[name]
        draw = Random(f"{self.plan.seed}{name}")
        while len(sent.which) < count:
            async with self._release:
                await self._release.wait_for(lambda: len(sent.which) < self._released)
            size = min(BATCH, self._released - len(sent.which))
            await self._batch(client, sent, [draw.randrange(len(self._workload.pool))
                                             for _ in range(size)], durable=True)  # fmt: skip

    async def _batch(self, client: Client, sent: Sent, which: list[int], durable: bool) -> None:
        first, now = len(sent.which), time.monotonic()
        sent.which += which
        sent.began += [now] * len(which)
        await client.publish_many(
            [
                (self._workload.pool[one], Id(sent.client, first + i).body)
                for i, one in enumerate(which)
            ],
            durable=durable,
        )
        sent.stored += [time.monotonic()] * len(which)

    # ---- faults

    async def _storm(self, tasks: list[asyncio.Task[None]]) -> None:
        plan, share = self.plan, self.plan.messages // CLIENTS
        faults = drawn(plan, self._scene.links, self._random)
        late = [(name, f"late{i}") for name in self._clients for i in range(LATE)]
        async with asyncio.TaskGroup() as group:
            for name in self._clients:
                group.create_task(self._publish(name, share))
            for step, fault in enumerate(faults, 1):
                async with self._release:
                    self._released = share * step // len(faults)
                    self._release.notify_all()
                group.create_task(self._scene.inflict(fault))
                for name, suffix in late[step - 1 :: len(faults)]:
                    group.create_task(self._subscribe(name, suffix, tasks))
                self._say(f"{self._counts()}; fault {step} of {len(faults)}: {fault}")
                await asyncio.sleep(plan.pause_s)
        self._say(f"{self._counts()}; all is healed, all is acknowledged")

    def _counts(self) -> str:
        stored = sum(len(sent.stored) for sent in self._sent.values())
        got = sum(taken.got.total() for taken in self._taken if taken.is_durable)
        return f"{stored:,} stored, {got:,} received"

    # ---- the end

    async def _settle(self) -> None:
        """Until all is there, or nothing comes any more."""
        await self._scene.agreed()
        sent = self._sent.values()
        assert all(len(one.stored) == len(one.which) for one in sent), "a publish has no answer"
        missing = await self._wanted(None)
        before, since = -1, time.monotonic()
        while left := sum(len(missing[t.name] - t.got.keys()) for t in self._taken if t.is_durable):
            if left != before:
                before, since = left, time.monotonic()
                self._say(f"{self._counts()}, {left:,} to come")
            elif time.monotonic() - since > self.plan.patience_s:
                return
            await asyncio.sleep(0.5)
        await asyncio.sleep(1.0)  # for what is one too many

    async def _last_round(self) -> None:
        """When all is quiet, live messages arrive as well, and live subscriptions get everything."""
        self._healed = time.monotonic()
        for number, (name, client) in enumerate(self._clients.items()):
            draw = Random(f"last {self.plan.seed} {name}")
            which = [draw.randrange(len(self._workload.pool)) for _ in range(LAST // CLIENTS)]
            await self._batch(client, self._sent[name], which, durable=number % 2 == 0)
        wanted = await self._wanted(self._healed)
        deadline = time.monotonic() + self.plan.patience_s
        while any(wanted[t.name] - t.got.keys() for t in self._taken):
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.3)

    async def _wanted(self, since: float | None) -> dict[str, set[Id]]:
        """What each must have of what was published since then; None: since it subscribed.

        In a thread: a client that says nothing for three keepalives is dead to its broker.
        """

        def judged() -> dict[str, set[Id]]:
            known = published(self._sent.values())
            return {
                t.name: self._judge.wanted(t, known, t.since if since is None else since)
                for t in self._taken
            }

        return await asyncio.to_thread(judged)

    async def _report(self) -> tuple[str, str]:
        """What is wrong, and all that is known about it (empty: nothing); and the summary."""
        lines: list[str] = []
        wrong: Counter[str] = Counter()
        required, last = await self._wanted(None), await self._wanted(self._healed)
        allowed = await self._wanted(0.0)
        for taken in self._taken:
            least = required[taken.name] if taken.is_durable else last[taken.name]
            found = self._judge.faults(taken, least, allowed[taken.name])
            for kind, ids in found.items():
                wrong[kind] += len(ids)
                if len(lines) < 100:
                    lines.append(f"{len(ids)} messages {kind}: {taken}")
                    for id in ids[:EXAMPLES]:
                        lines += await self._told(id, taken)
        summary = (
            f"{self._counts()}, {wrong['missing']} lost, {wrong['doubled']} doubled, "
            f"{wrong['unwanted']} unwanted"
        )
        for what, took_s in self._scene.took_s.items():
            each = ", ".join(f"{one:.1f}" for one in took_s)
            summary += f"; {len(took_s)} times {what} after at most {max(took_s):.2f} s ({each})"
        self._say(summary)
        return "\n".join(lines), summary

    async def _told(self, id: Id, taken: Taken) -> list[str]:
        """What the brokers say about one message and one subscription."""
        sent = self._sent[id.client]
        message = self._workload.pool[sent.which[id.index]]
        began, stored = sent.began[id.index], sent.stored[id.index]
        explained = await self._clients[id.client].explain(message, taken.name)
        says = [
            f"      {hop.broker} delivers to {name}: {reason}"
            for hop in explained.hops
            for name, reason in hop.delivers
            if name.endswith(taken.name)
        ]
        return [
            f"   {id.body.decode()} {message}",
            f"      published at {sent.broker} {began - self._began:.2f} s, "
            f"stored {stored - self._began:.2f} s, subscribed "
            f"{(taken.ready_at or 0) - self._began:.2f} s, got {taken.got[id]} times",
            *(says or ["      no broker would deliver it"]),
        ]


async def _read(subscription: Subscription, taken: Taken, draw: Random) -> None:
    """Note what comes, and acknowledge it, sometimes late."""
    while notes := await subscription.many():
        for note in notes:
            taken.got[Id.of(note.body)] += 1
        if draw.random() < 0.2:
            await asyncio.sleep(0.3 * draw.random())
        for note in notes:
            note.ack_soon()
