"""Clients that publish and subscribe while a plan of faults runs, and the judgement in the end.

The plan is a list of faults. Each step of it lets the clients publish another part of the messages,
so that messages are under way during every fault whatever the speed of the machine. A fault lasts
for its time and heals, while others begin. Some subscriptions are made on the way. In the end
everything heals, and each durable subscription must have exactly what brute force says, once.

Some messages are delayed, and some expire; applications give some back, and reject some, which must
be dead letters once.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from contextlib import AsyncExitStack
from math import inf
from pathlib import Path
from random import Random
from typing import TypeAlias

import palio
from palio.net.client import Client
from tests.net.chaos.dead_letters import DELIVERIES_MAX, Collector, DeadLetter
from tests.net.chaos.listeners import LISTENING, MQTT, EventReader, MqttReader, taken_by
from tests.net.chaos.log import Log
from tests.net.chaos.plans import CLIENTS, Plan, drawn
from tests.net.chaos.reading import collect, read
from tests.net.chaos.scene import Scene
from tests.net.judgement import EXAMPLES, PLAIN, Draws, Id, Judge, Sent, Taken, Workload

SUBSCRIPTIONS = 10
"""Durable ones of each client."""
LATE = 2
"""Of these, made while the plan runs."""
LIVE, REPLAY, LIMITED = "live", "replay", "limited"
LIMITS = ("c3", "c8", "c14")
"""These have one more, which gives up what was delivered too often."""
COLLECTORS = {"c2": "dead_letter = 'c3-limited'", "c4": "dead_letter LIKE 'c%'"}
"""Who has dead letters, and which."""
BATCH = 50
LATE_S = 5.0
"""A message that expires may arrive so long after its time, beside the longest fault of a line."""
LINES_MAX = 100
LAST = 100
"""Messages that are published when all is healed: live ones must get these too."""


Required: TypeAlias = dict[str, set[Id]]
"""By subscription."""


class Chaos:
    def __init__(self, plan: Plan, folder: Path, scene: type[Scene] = Scene) -> None:
        self.plan = plan
        self._random = Random(plan.seed)
        self._workload = Workload(self._random)
        self._draws = Draws(plan.seed, plan.messages // CLIENTS, scene.has_true_clocks)
        self._judge = Judge(self._workload, self._draws, plan.lasts_s + LATE_S)
        self._log = Log()
        self._scene = scene(plan, folder, self._log.say, self._judge.restarts)
        self._clients: dict[str, Client] = {}
        self._taken: list[Taken] = []
        self._collectors: list[Collector] = []
        self._sent: dict[str, Sent] = {}
        self._released = 0
        self._release = asyncio.Condition()
        self._readers: asyncio.TaskGroup

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
            raise AssertionError(
                f"seed {self.plan.seed}\n{report}\n{self._log}\n{self._scene.after()}"
            )
        return summary

    async def _build(self, stack: AsyncExitStack) -> None:
        await self._scene.build(stack)
        self._log.say("brokers agree")
        names = self._scene.names
        for number in range(1, CLIENTS + 1):
            name, home = f"c{number}", names[number % len(names)]
            url, token = await self._scene.url(name, home, stack), self._scene.token(name)
            client = palio.connect(url, token=token, name=name, wait=30, max_wait=inf)
            self._clients[name] = await stack.enter_async_context(client)
            self._sent[name] = Sent(name, home)

    # ---- subscriptions

    async def _subscribe_first(self, tasks: list[asyncio.Task[None]]) -> None:
        subscribing = []
        for name in self._clients:
            subscribing += [
                self._subscribe(name, str(i), tasks) for i in range(SUBSCRIPTIONS - LATE)
            ]
            subscribing.append(self._subscribe(name, LIVE, tasks))
        subscribing += [self._subscribe(name, LIMITED, tasks) for name in LIMITS]
        subscribing += [self._collect(name, text, tasks) for name, text in COLLECTORS.items()]
        subscribing += [self._listen(*item, tasks) for item in self._scene.listeners.items()]
        await asyncio.gather(*subscribing)
        await self._scene.agreed()
        self._log.say(f"{len(subscribing)} subscriptions")

    async def _subscribe(self, client: str, suffix: str, tasks: list[asyncio.Task[None]]) -> None:
        """A durable subscription; LIVE: one that is not; REPLAY: one from the beginning."""
        name, is_durable, home = f"{client}-{suffix}", suffix != LIVE, self._sent[client].broker
        deliveries_max = DELIVERIES_MAX if suffix == LIMITED else 0
        taken = Taken(name, client, home, self._workload.predicate(), is_durable, deliveries_max)
        self._taken.append(taken)
        made = self._clients[client].subscribe(
            taken.text,
            durable=name if is_durable else None,
            since=0 if suffix == REPLAY else None,
            deliveries_max=deliveries_max or None,
        )
        tasks.append(self._readers.create_task(read(made, taken, self._draws)))
        await made.ready()
        taken.ready_at = time.monotonic()
        taken.since = 0.0 if suffix == REPLAY else taken.ready_at

    async def _collect(self, client: str, text: str, tasks: list[asyncio.Task[None]]) -> None:
        """A durable subscription to dead letters."""
        name, home = f"dead-{client}", self._sent[client].broker
        collector = Collector(Taken(name, client, home, text), self._draws)
        self._collectors.append(collector)
        made = self._clients[client].subscribe(text, durable=name)
        reading = collect(made, collector, self._sent, self._workload)
        tasks.append(self._readers.create_task(reading))
        await made.ready()

    async def _listen(self, listener: str, address: str, tasks: list[asyncio.Task[None]]) -> None:
        """A reader that is no client of Palio."""
        predicate = self._workload.predicate()
        taken = taken_by(listener, predicate)
        self._taken.append(taken)
        kind = MqttReader if listener == MQTT else EventReader
        reader = kind(address, taken, predicate, self._draws)
        tasks.append(self._readers.create_task(reader.run()))
        await reader.ready.wait()
        taken.ready_at = taken.since = time.monotonic()

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
        plain, others = [], []
        for index, one in enumerate(which, first):
            id, message = Id(sent.client, index), self._workload.pool[one]
            terms = self._draws.terms(id)
            if not durable:
                self._judge.best_effort.add(id)
            if terms is PLAIN:
                plain.append((message, id.body))
            else:
                others.append(
                    client.publish(message, id.body, expires_in=terms.expires_in, delay=terms.delay)
                )
        await asyncio.gather(client.publish_many(plain, durable=durable), *others)
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
                self._log.say(f"{self._counts()}; fault {step} of {len(faults)}: {fault}")
                await asyncio.sleep(plan.pause_s)
        self._log.say(f"{self._counts()}; all is healed, all is acknowledged")

    def _counts(self) -> str:
        stored = sum(len(sent.stored) for sent in self._sent.values())
        got = sum(taken.got.total() for taken in self._taken if taken.is_durable)
        dead = sum(collector.got.total() for collector in self._collectors)
        return f"{stored:,} stored, {got:,} received, {dead:,} dead letters"

    # ---- the end

    async def _settle(self) -> None:
        """Until all is there, or nothing comes any more."""
        await self._scene.agreed()
        sent = self._sent.values()
        assert all(len(one.stored) == len(one.which) for one in sent), "a publish has no answer"
        required = await self._required(None)
        before, since = -1, time.monotonic()
        while left := self._left(required, [t for t in self._taken if t.is_durable]):
            if left != before:
                before, since = left, time.monotonic()
                self._log.say(f"{self._counts()}, {left:,} to come")
            elif time.monotonic() - since > self.plan.patience_s:
                return
            await asyncio.sleep(0.5)
        await asyncio.sleep(1.0)  # for what is one too many

    def _left(self, required: Required, of: list[Taken]) -> int:
        """How many have not come, as messages or dead letters."""
        given_up = self._given_up()
        left = sum(len(required[t.name] - t.settled - given_up[t.name]) for t in of)
        return left + sum(len(dead - one.got.keys()) for one, dead in self._dead(required))

    def _given_up(self) -> defaultdict[str, set[Id]]:
        """By subscription, of those that may do so."""
        limited = {taken.name for taken in self._taken if taken.deliveries_max}
        found: defaultdict[str, set[Id]] = defaultdict(set)
        for collector in self._collectors:
            for name, id in collector.got:
                if name in limited:
                    found[name].add(id)
        return found

    def _dead(self, required: Required) -> list[tuple[Collector, set[DeadLetter]]]:
        """What each collector must have."""
        sources = [(taken, required[taken.name]) for taken in self._taken]
        return [(collector, collector.required(sources)) for collector in self._collectors]

    async def _last_round(self) -> None:
        """When all is quiet, live messages arrive as well, and live subscriptions get everything."""
        self._healed = time.monotonic()
        for number, (name, client) in enumerate(self._clients.items()):
            draw = Random(f"last {self.plan.seed} {name}")
            which = [draw.randrange(len(self._workload.pool)) for _ in range(LAST // CLIENTS)]
            await self._batch(client, self._sent[name], which, durable=number % 2 == 0)
        required = await self._required(self._healed)
        deadline = time.monotonic() + self.plan.patience_s
        while self._left(required, self._taken):
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.3)

    async def _required(self, since: float | None) -> Required:
        """What each must have of what was published since then; None: since it subscribed.

        In a thread: a client that says nothing for three keepalives is dead to its broker.
        """

        def judged() -> Required:
            known = self._judge.published(self._sent.values())
            return {
                t.name: self._judge.required(t, known, t.since if since is None else since)
                for t in self._taken
            }

        return await asyncio.to_thread(judged)

    async def _allowed(self) -> Required:
        def judged() -> Required:
            known = self._judge.published(self._sent.values())
            return {t.name: self._judge.allowed(t, known) for t in self._taken}

        return await asyncio.to_thread(judged)

    async def _report(self) -> tuple[str, str]:
        """What is wrong, and all that is known about it (empty: nothing); and the summary."""
        lines: list[str] = []
        wrong: Counter[str] = Counter()
        required, last = await self._required(None), await self._required(self._healed)
        allowed, given_up = await self._allowed(), self._given_up()
        for taken in self._taken:
            least = (required if taken.is_durable else last)[taken.name]
            found = self._judge.faults(
                taken, least, allowed[taken.name], given_up[taken.name], self._sent
            )
            for kind, ids in found.items():
                wrong[kind] += len(ids)
                if len(lines) < LINES_MAX:
                    lines.append(f"{len(ids)} messages {kind}: {taken}")
                    for id in ids[:EXAMPLES]:
                        lines += await self._told(id, taken)
        for collector, dead in self._dead(required):
            for kind, keys in collector.faults(dead, self._taken).items():
                wrong[kind] += len(keys)
                lines += [f"{len(keys)} {kind}: {collector.taken}", *keys[:EXAMPLES]]
        summary = f"{self._counts()}, {self._shares()}; {_worded(wrong)}"
        for what, took_s in self._scene.took_s.items():
            each = ", ".join(f"{one:.1f}" for one in took_s)
            summary += f"; {len(took_s)} times {what} after at most {max(took_s):.2f} s ({each})"
        self._log.say(summary)
        return "\n".join(lines), summary

    def _shares(self) -> str:
        """How often what has happened, so that nobody believes in an empty test."""
        terms = [
            self._draws.terms(Id(one.client, index))
            for one in self._sent.values()
            for index in range(len(one.which))
        ]
        reasons: Counter[str] = sum((one.reasons for one in self._collectors), Counter())
        return (
            f"{sum(t.delay is not None for t in terms):,} delayed, "
            f"{sum(t.expires_in is not None for t in terms):,} to expire and "
            f"{sum(t.is_short for t in terms):,} of them soon, "
            f"{sum(t.returned.total() for t in self._taken):,} given back, "
            f"{sum(len(t.rejected) for t in self._taken):,} rejected, "
            f"dead letters by reason {dict(sorted(reasons.items()))}"
            + "".join(f", {t.name} {_numbers(t)}" for t in self._taken if t.client in LISTENING)
        )

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
            f"      published at {sent.broker} {began - self._log.began:.2f} s, "
            f"stored {stored - self._log.began:.2f} s, subscribed "
            f"{(taken.ready_at or 0) - self._log.began:.2f} s, got {taken.got[id]} times",
            *(says or ["      no broker would deliver it"]),
        ]


def _numbers(taken: Taken) -> str:
    again = taken.got.total() - len(taken.got)
    return f"got {len(taken.got):,}, and {again:,} again"


def _worded(wrong: Counter[str]) -> str:
    """The usual ones also if there are none."""
    usual = {"missing": "lost", "doubled": "doubled", "unwanted": "unwanted",
             "dead letters missing": "dead letters lost",
             "dead letters doubled": "dead letters doubled"}  # fmt: skip
    return ", ".join(
        f"{wrong[kind]} {usual.get(kind, kind)}"
        for kind in [*usual, *(wrong.keys() - usual.keys())]
    )
