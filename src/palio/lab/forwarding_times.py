"""What forwarding costs on a workload, engine by engine, in one process and in turns.

A row an engine:

    us_per_message   the kernel on an encoded batch, the shortest of several turns
    ratio            that, over the first engine's
    foreign_us       the same for messages none of whose names a filter has
    matches_per_message, increments_per_message (of counters; 0 where there are none), ...
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from palio.lab import timing, workloads
from palio.matching.columns import Columns
from palio.matching.constraint_rows import from_constraint_rows
from palio.matching.counting import CountingEngine
from palio.matching.engines import PivotEngine
from palio.model.message import Message

ENGINES: dict[str, Callable[[Columns], Any]] = {
    "counting 2001": lambda columns: CountingEngine(columns, variant="2001"),
    "counting r=0": lambda columns: CountingEngine(columns),
    "counting r=10": lambda columns: CountingEngine(columns, rounds=10),
    "pivot": PivotEngine.compile,
}


def forwarding_rows(load: workloads.Workload, engines: list[str]) -> list[dict[str, Any]]:
    """Build the engines, let them answer all messages, and compare their times."""
    sent = [Message(m) for m in workloads.message_dicts(load)]
    foreign = [Message({f"not {name}": v for name, v in m.items()}) for m in sent]
    columns = from_constraint_rows(load.constraints)
    calls: dict[str, Callable[[], Any]] = {}
    rows = []
    for name in engines:
        started = time.perf_counter()
        engine = ENGINES[name](columns)
        build_s = time.perf_counter() - started
        calls[name] = matcher(engine, sent)
        calls[f"foreign {name}"] = matcher(engine, foreign)
        matches = len(calls[name]()[1])
        counters = getattr(engine, "counters", None)
        rows.append(
            {
                "engine": name,
                "constraints": load.constraints.num_rows,
                "interface_count": len(columns.interfaces),
                "messages": len(sent),
                "attributes_per_message": sum(map(len, sent)) / len(sent),
                "matches_per_message": matches / len(sent),
                "increments_per_message": counters.increments / len(sent) if counters else 0.0,
                "eliminated_per_message": (
                    counters.interfaces_eliminated / len(sent) if counters else 0.0
                ),
                "build_s": build_s,
            }
        )
    us = {name: s / len(sent) * 1e6 for name, s in timing.shortest(calls).items()}
    for row in rows:
        row["us_per_message"] = us[row["engine"]]
        row["foreign_us"] = us[f"foreign {row['engine']}"]
        row["ratio"] = us[row["engine"]] / us[engines[0]]
    return rows


def matcher(engine: Any, messages: list[Message]) -> Callable[[], Any]:
    """A call that forwards all messages, which are encoded beforehand."""
    batch = engine.encode(messages)
    if isinstance(engine, PivotEngine):
        return lambda: engine.match_batch(batch, ordered=False)
    return lambda: engine.match_batch(batch)


def interface_choice(text: str, filters: int) -> int:
    """How many interfaces `F`, or a number in text, means; never more than there are filters."""
    return filters if text == "F" else min(int(text), filters)
