"""Benchmark of one broker on loopback, beside a bare relay of the same frames.

The contestants (`loopback.contestants`) are processes of their own with the same source and sinks.
They take turns, several times; throughput is the median, and the ratio to the relay is that of the
turns. Afterwards messages are sent one by one at a moderate rate, for their age on arrival.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from rich.console import Console

from palio.errors import PalioError
from palio.lab.bench.harness import (
    Column,
    Progress,
    Result,
    TurnTimes,
    in_turns,
    silent,
    table,
)
from palio.lab.bench.loopback.contestants import (
    CONTESTANTS,
    PACED,
    PIECE,
    SINKS,
    LoadSize,
    why_missing,
)
from palio.lab.bench.loopback.load import STAMP_BYTES

NAMES = tuple(CONTESTANTS)


@dataclass(frozen=True, slots=True)
class BrokerResult(Result):
    """The medians of one contestant."""

    contestant: str
    subscriptions: int
    messages: int
    body_bytes: int
    per_second: float
    ratio: float  # to the relay, within the run
    ratio_durable: float | None  # to the contestant `durable`, for others that store
    ratio_mosquitto: float | None  # to Mosquitto with the same client, for the listener of MQTT
    p50_us: float
    p99_us: float


def run(
    *,
    subscriptions: int = 10_000,
    messages: int = 100_000,
    body_bytes: int = 100,
    repeats: int = 3,
    contestants: Sequence[str] = NAMES,
    paced: int = PACED,
    progress: Progress = silent,
) -> Iterator[BrokerResult]:
    """Time the contestants, and what they are compared with; those whose programs are not installed are left
    out. `paced` messages are sent one by one, for their age."""
    unknown = set(contestants) - set(CONTESTANTS)
    if unknown:
        raise PalioError(f"no contestant {min(unknown)!r}; there are {', '.join(CONTESTANTS)}")
    if subscriptions < SINKS or messages < PIECE or body_bytes < STAMP_BYTES or repeats < 1:
        raise PalioError(
            f"a benchmark of brokers takes {SINKS} subscriptions, {PIECE} messages of "
            f"{STAMP_BYTES} bytes and one repeat at least"
        )
    messages -= messages % PIECE
    size = LoadSize(subscriptions, messages, bytes(body_bytes - STAMP_BYTES), paced)
    names = ["relay", *(name for name in contestants if name != "relay")]
    names += sorted({one for name in names if (one := rival(name))} - set(names))
    for name, reason in [(name, why_missing(name)) for name in names]:
        if reason is not None:
            print(f"palio: {name} is left out: {reason}", file=sys.stderr)
            names.remove(name)
    with ExitStack() as stack:
        started = {}
        for name in names:
            progress(f"{name}: starting", None)
            started[name] = stack.enter_context(CONTESTANTS[name](size))
        times = in_turns(started, repeats, progress)
        for name, contestant in started.items():
            progress(f"{name}: latency", None)
            ages_s = contestant.ages_s()
            yield BrokerResult(
                contestant=name,
                subscriptions=contestant.subscriptions,
                messages=messages,
                body_bytes=body_bytes,
                per_second=messages / times.median(name),
                ratio=times.speed_ratio(name, to="relay"),
                ratio_durable=_ratio(times, name, "durable", started),
                ratio_mosquitto=_ratio(times, name, "mosquitto", started),
                p50_us=1e6 * ages_s[len(ages_s) // 2],
                p99_us=1e6 * ages_s[int(len(ages_s) * 0.99)],
            )


def rival(name: str) -> str:
    """Which contestant another one is compared with besides the relay; empty: with none."""
    if name.startswith("durable-"):
        return "durable"
    return name.replace("mqtt", "mosquitto") if name.startswith("mqtt") else ""


def _ratio(times: TurnTimes, name: str, kind: str, started: Container[str]) -> float | None:
    to = rival(name)
    return times.speed_ratio(name, to=to) if to.startswith(kind) and to in started else None


_COLUMNS: list[Column[BrokerResult]] = [
    Column("contestant", lambda r: r.contestant, "left"),
    Column("subscriptions", lambda r: f"{r.subscriptions:,}"),
    Column("messages/s", lambda r: f"{r.per_second:,.0f}"),
    Column("of the relay", lambda r: f"{r.ratio:.0%}"),
    Column("of durable", lambda r: _share(r.ratio_durable)),
    Column("of mosquitto", lambda r: _share(r.ratio_mosquitto)),
    Column("p50", lambda r: f"{r.p50_us:,.0f} us"),
    Column("p99", lambda r: f"{r.p99_us:,.0f} us"),
]


def _share(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.0%}"


def show(console: Console, results: Sequence[BrokerResult]) -> None:
    """A table for people."""
    console.print(table("One broker on loopback", _COLUMNS, results, title_justify="center"))
