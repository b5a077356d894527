"""What forwarding costs on a workload, engine by engine, in one process and in turns.

A row an engine:

    us_per_message   the kernel on an encoded batch, the shortest of several turns
    ratio            that, over the first engine's
    foreign_us       the same for messages none of whose names a filter has
    matches_per_message, increments_per_message (of counters; 0 where there are none), ...
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from palio.lab.bench.engines import matcher
from palio.lab.bench.harness import timed
from palio.lab.data import workloads
from palio.lab.reproduce import timing
from palio.matching.counting.engine import CountingEngine
from palio.matching.encode.columns import ConstraintColumns
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.matching.pivot.engine import PivotEngine
from palio.model.message import Message

ENGINES: dict[str, Callable[[ConstraintColumns], Any]] = {
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
        engine, build_s = timed(partial(ENGINES[name], columns))
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


def interface_choice(text: str, filters: int) -> int:
    """How many interfaces `F`, or a number in text, means; never more than there are filters."""
    return filters if text == "F" else min(int(text), filters)
