"""Chaos: real brokers, clients and connections under a seeded plan of faults, judged by brute force.

    clients c1..c20 ══ a line each ══▶ brokers b1..b5, a ring with chords, a line for each link
         publish, subscribe                  killed, restarted, frozen, thawed
                          lines: cut, silenced, stalled, delayed, broken in the middle of a frame

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
from dataclasses import dataclass
from math import inf
from pathlib import Path
from random import Random

import palio
from palio.net.client import Client, Subscription
from palio.net.cluster import Cluster, local_cluster
from palio.net.storage.sqlite import SqliteStore
from palio.protocol.durability.message_store import MessageStore
from tests.net.faults import Line
from tests.net.judgement import EXAMPLES, Id, Judge, Sent, Taken, Workload, published

BROKERS = 5
CHORDS = 2
CLIENTS = 20
SUBSCRIPTIONS = 10
"""Durable ones of each client."""
LATE = 2
"""Of these, made while the plan runs."""
LIVE, REPLAY = "live", "replay"
BATCH = 50
LAST = 100
"""Messages that are published when all is healed: live ones must get these too."""


@dataclass(frozen=True)
class Fault:
    kind: str
    target: str
    """A broker, a link as "b1-b2", or a client."""
    lasts_s: float
    detail: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} {self.target} for {self.lasts_s:.1f} s"


@dataclass(frozen=True)
class Plan:
    seed: int
    messages: int
    faults: int
    pause_s: float
    """From the beginning of a fault to that of the next."""
    lasts_s: float
    """The longest fault."""
    keepalive: str
    patience_s: float
    """How long nothing may come at the end before it counts as lost."""


_KINDS = ("kill", "client cut", "cut", "freeze", "break", "silence", "kill", "client break",
          "stall", "kill", "delay", "client silence", "kill twice", "cut", "client cut",
          "freeze")  # fmt: skip


def drawn(plan: Plan, links: list[str], random: Random) -> list[Fault]:
    """The plan in full: the same for the same seed."""
    kinds = [_KINDS[i % len(_KINDS)] for i in range(plan.faults)]
    random.shuffle(kinds)
    faults = []
    for kind in kinds:
        if kind in ("kill", "kill twice", "freeze"):
            target = f"b{random.randint(1, BROKERS)}"
        elif kind.startswith("client"):
            target = f"c{random.randint(1, CLIENTS)}"
        else:
            target = random.choice(links)
        lasts_s = random.uniform(0.1, 1) * plan.lasts_s
        faults.append(Fault(kind, target, lasts_s, random.random()))
    return faults


class Chaos:
    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self._random = Random(plan.seed)
        self._workload = Workload(self._random)
        self._judge = Judge(self._workload)
        self._folder = folder
        self._cluster: Cluster
        self._lines: dict[str, Line] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._clients: dict[str, Client] = {}
        self._taken: list[Taken] = []
        self._sent: dict[str, Sent] = {}
        self._released = 0
        self._release = asyncio.Condition()
        self._readers: asyncio.TaskGroup
        self._began = time.monotonic()
        self._log: list[tuple[float, str]] = []

    # ---- the whole of it

    async def run(self) -> None:
        """Raises AssertionError with a report when something was lost, doubled or not wanted."""
        async with AsyncExitStack() as stack:
            await self._build(stack)
            self._readers = await stack.enter_async_context(asyncio.TaskGroup())
            watch = self._readers.create_task(self._cluster.watched())
            tasks: list[asyncio.Task[None]] = [watch]
            try:
                await self._subscribe_first(tasks)
                await self._storm(tasks)
                await asyncio.gather(*(self._subscribe(f"c{i}", REPLAY, tasks) for i in (1, 7)))
                await self._settle()
                await self._last_round()
                report = await self._report()
            finally:
                for task in tasks:
                    task.cancel()
        assert not report, f"seed {self.plan.seed}\n{report}\n{self._after()}"

    async def _build(self, stack: AsyncExitStack) -> None:
        settings = {
            "times": {"keepalive": self.plan.keepalive, "redial_max": "1 s", "stop": "2 s"},
            "log": {"memory": "1 MiB"},  # so that much is read back from the disk
        }
        self._cluster = cluster = local_cluster(
            BROKERS, "ring", chords=CHORDS, data=self._folder, settings=settings
        )
        for pair in cluster.links:
            line = await stack.enter_async_context(Line(cluster.addresses[pair]))
            cluster.addresses[pair] = line.address
            self._lines["-".join(pair)] = line
        await stack.enter_async_context(cluster)
        self._say("brokers agree")
        for number in range(1, CLIENTS + 1):
            name = f"c{number}"
            home = cluster.names[number % BROKERS]
            url = cluster.url(home)
            line = await stack.enter_async_context(Line(url.removeprefix("palio://")))
            self._lines[name] = line
            client = palio.connect(f"palio://{line.address}", name=name, wait=30, max_wait=inf)
            self._clients[name] = await stack.enter_async_context(client)
            self._sent[name] = Sent(name, home)
        self._locks = {name: asyncio.Lock() for name in (*self._lines, *cluster.names)}

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
        await self._cluster.agreed()
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
        links = ["-".join(pair) for pair in self._cluster.links]
        faults = drawn(plan, links, self._random)
        late = [(name, f"late{i}") for name in self._clients for i in range(LATE)]
        async with asyncio.TaskGroup() as group:
            for name in self._clients:
                group.create_task(self._publish(name, share))
            for step, fault in enumerate(faults, 1):
                async with self._release:
                    self._released = share * step // len(faults)
                    self._release.notify_all()
                group.create_task(self._inflict(fault))
                for name, suffix in late[step - 1 :: len(faults)]:
                    group.create_task(self._subscribe(name, suffix, tasks))
                self._say(f"{self._counts()}; fault {step} of {len(faults)}: {fault}")
                await asyncio.sleep(plan.pause_s)
        self._say(f"{self._counts()}; all is healed, all is acknowledged")

    def _counts(self) -> str:
        stored = sum(len(sent.stored) for sent in self._sent.values())
        got = sum(taken.got.total() for taken in self._taken if taken.is_durable)
        return f"{stored:,} stored, {got:,} received"

    async def _inflict(self, fault: Fault) -> None:
        async with self._locks[fault.target]:
            if fault.target in self._cluster.names:
                await self._hit_broker(fault)
            else:
                await self._hit_line(self._lines[fault.target], fault)

    async def _hit_broker(self, fault: Fault) -> None:
        cluster, name = self._cluster, fault.target
        if fault.kind == "freeze":
            cluster.freeze(name)
            await asyncio.sleep(fault.lasts_s)
            cluster.thaw(name)
            return
        for times in range(2 if fault.kind == "kill twice" else 1):
            if times:  # the second comes while it starts, or soon after
                await asyncio.sleep(2 * fault.detail)
            cluster.kill(name)
            await asyncio.sleep(fault.lasts_s / 2)
            cluster.start(name)

    async def _hit_line(self, line: Line, fault: Fault) -> None:
        match fault.kind.removeprefix("client "):
            case "cut":
                line.cut()
            case "silence":
                line.silence()
            case "stall":
                line.stall()
            case "delay":
                line.delay(0.01 + 0.2 * fault.detail)
            case "break":
                line.break_at(int(1 + 20_000 * fault.detail))
        await asyncio.sleep(fault.lasts_s)
        line.heal()

    # ---- the end

    async def _settle(self) -> None:
        """Until all is there, or nothing comes any more."""
        await self._cluster.agreed()
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

    async def _report(self) -> str:
        """What is wrong, and all that is known about it; empty: nothing."""
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
        self._say(f"{self._counts()}; wrong: {dict(wrong) or 'nothing'}")
        return "\n".join(lines)

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

    def _after(self) -> str:
        """What the disks of the brokers hold, and what happened when."""
        lines = [f"{at:7.1f} s  {text}" for at, text in self._log]
        for name in self._cluster.names:
            store = SqliteStore(self._folder / name)
            epoch = (store.get("broker/epoch") or b"").decode()
            now_us = time.time_ns() // 1000
            held = MessageStore(store, name, epoch, now_us).statistics()
            store.close()
            queues = {queue: count for queue, count in held.queues.items() if count}
            lines.append(f"{name}: {held.messages} messages, {held.publishers} publishers, "
                         f"streams {held.backlogs}, queues {queues}")  # fmt: skip
        return "\n".join([*lines, f"logs and disks: {self._folder}"])


async def _read(subscription: Subscription, taken: Taken, draw: Random) -> None:
    """Note what comes, and acknowledge it, sometimes late."""
    while notes := await subscription.many():
        for note in notes:
            taken.got[Id.of(note.body)] += 1
        if draw.random() < 0.2:
            await asyncio.sleep(0.3 * draw.random())
        for note in notes:
            note.ack_soon()
