"""A well-behaved client in a process of its own, while others attack: `python -m tests.attack.witness`.

It publishes live and durable messages at the first URL, and receives them at the last one. It prints
`ready` when the first of each has come, and when its standard input ends, what it has seen as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass, field

import palio

EVERY_S = 0.01
DURABLE_EVERY = 10
LAST_S_MAX = 60.0
"""How long it waits for the last messages: a bound for what would hang, not a measure."""


@dataclass
class Seen:
    """Of one kind of messages: those that were sent, and those that came."""

    sent: int = 0
    came: list[int] = field(default_factory=list)
    delays_s: list[float] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return self.came == list(range(1, self.sent + 1))


@dataclass
class Report:
    """What a witness says at the end."""

    live: int
    durable: int
    missing: int
    is_ordered: bool
    longest_s: float
    p99_s: float


async def witness(urls: list[str], name: str) -> Report:
    seen = {"live": Seen(), "durable": Seen()}
    sent_at: dict[tuple[str, int], float] = {}
    ready = {"live": asyncio.Event(), "durable": asyncio.Event()}
    end = asyncio.Event()

    async def listen(kind: str, subscription: palio.net.client.Subscription) -> None:
        async for note in subscription:
            number = note.attributes[f"{name}_{kind}"]
            if number == 0:
                ready[kind].set()
            else:
                seen[kind].came.append(number)
                seen[kind].delays_s.append(time.perf_counter() - sent_at[kind, number])
            if kind == "durable":
                await note.ack()

    async def publish(kind: str) -> None:
        durable = kind == "durable"
        while not ready[kind].is_set():  # until the subscription is known everywhere
            await here.publish({f"{name}_{kind}": 0}, durable=durable)
            await asyncio.sleep(0.05)
        while not end.is_set():
            seen[kind].sent += 1
            number = seen[kind].sent
            sent_at[kind, number] = time.perf_counter()
            await here.publish({f"{name}_{kind}": number}, durable=durable)
            await asyncio.sleep(EVERY_S * (DURABLE_EVERY if durable else 1))

    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin.fileno(), lambda: end.set() if not sys.stdin.read(1) else None)
    async with (
        palio.connect(urls[0], name=f"{name}-publisher", wait=60) as here,
        palio.connect(urls[-1], name=f"{name}-subscriber", wait=60) as there,
    ):
        live = there.subscribe(f"{name}_live >= 0")
        durable = there.subscribe(f"{name}_durable >= 0", durable=name)
        async with live, durable:
            listeners = [
                asyncio.create_task(listen("live", live)),
                asyncio.create_task(listen("durable", durable)),
            ]
            publishers = [asyncio.create_task(publish(kind)) for kind in seen]
            for event in ready.values():
                await event.wait()
            print("ready", flush=True)
            await asyncio.gather(*publishers)
            deadline = time.monotonic() + LAST_S_MAX
            while time.monotonic() < deadline and not all(s.is_complete for s in seen.values()):
                await asyncio.sleep(0.02)
            for task in listeners:
                task.cancel()
    return _report(seen)


def _report(seen: dict[str, Seen]) -> Report:
    delays_s = sorted(d for one in seen.values() for d in one.delays_s) or [0.0]
    return Report(
        live=seen["live"].sent,
        durable=seen["durable"].sent,
        missing=sum(one.sent - len(set(one.came)) for one in seen.values()),
        is_ordered=all(one.came == sorted(set(one.came)) for one in seen.values()),
        longest_s=delays_s[-1],
        p99_s=delays_s[int(0.99 * (len(delays_s) - 1))],
    )


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(witness(sys.argv[2:], sys.argv[1])))), flush=True)
