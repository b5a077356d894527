"""What forwarding costs on a workload: the papers' engines and ours, in one process and in turns.

The work decides, the time is beside it. Of each engine:

    increments_per_message   of counters of filters (0 where there are none); with an interface a
                             filter, these are all postings of the satisfied constraints
    touched_per_message      satisfied constraints that the index found
    stopped                  the share of messages that ended because all interfaces were decided
    matches_per_message, eliminated_per_message
    us_per_message           the kernel on an encoded batch: the median of the turns; _low and _high
                             are their quartiles
    ratio                    that, over the first engine's

`skipped_rows` compares messages whose names no filter has with those of the workload. Both are timed
from the messages on, because a name that is not in the table is found out while messages are encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from palio.lab.bench.engines import matcher
from palio.lab.bench.harness import timed
from palio.lab.data import workloads
from palio.lab.data.workloads.recipe import deal, interface_names
from palio.lab.reproduce import timing
from palio.matching.counting.engine import CountingEngine
from palio.matching.encode.columns import ConstraintColumns
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.matching.pivot.engine import PivotEngine
from palio.model.message import Message

Make = Callable[[ConstraintColumns], Any]
SLOW_S, SLOW_TURNS = 10.0, 3  # a round of all tables that takes so long is repeated less often

ENGINES: dict[str, Make] = {
    "counting 2001": lambda columns: CountingEngine(columns, variant="2001"),
    "counting r=0": lambda columns: CountingEngine(columns),
    "counting r=10": lambda columns: CountingEngine(columns, rounds=10),
    "pivot": PivotEngine.compile,
}


def messages_of(load: workloads.Workload) -> list[Message]:
    return [Message(message) for message in workloads.message_dicts(load)]


def forwarding_rows(
    tables: Mapping[str, ConstraintColumns], sent: list[Message], engines: Sequence[str]
) -> list[dict[str, Any]]:
    """Build each engine on each table, let them answer all messages, and compare them in turns.

    Tables have names, which are the `interfaces` of the rows.
    """
    calls: dict[str, Callable[[], Any]] = {}
    rows: list[dict[str, Any]] = []
    spent = 0.0
    for interfaces, columns in tables.items():
        for name in engines:
            engine, build_s = timed(partial(ENGINES[name], columns))
            label = f"{interfaces} {name}"
            calls[label] = matcher(engine, sent)
            (_, found), first_s = timed(calls[label])
            spent += first_s
            rows.append(
                {
                    "interfaces": interfaces,
                    "engine": name,
                    "constraints": len(columns.filter),
                    "interface_count": len(columns.interfaces),
                    "messages": len(sent),
                    "matches_per_message": len(found) / len(sent),
                    **work(engine, len(sent)),
                    "build_s": build_s,
                    "label": label,
                }
            )
    spreads = timing.spreads(calls, turns=timing.TURNS if spent < SLOW_S else SLOW_TURNS)
    for row in rows:
        label = str(row.pop("label"))
        row.update(spreads[label].columns("us_per_message", 1e6 / len(sent)))
        first = spreads[f"{row['interfaces']} {engines[0]}"].median
        row["ratio"] = spreads[label].median / first
    return rows


def work(engine: Any, messages: int) -> dict[str, float]:
    """What the last call counted, a message; an engine that does not count has zeros."""
    counted = getattr(engine, "counters", None)
    return {
        "increments_per_message": counted.increments / messages if counted else 0.0,
        "touched_per_message": counted.constraints_touched / messages if counted else 0.0,
        "eliminated_per_message": counted.interfaces_eliminated / messages if counted else 0.0,
        "stopped": counted.rows_stopped / messages if counted else 0.0,
    }


def skipped_rows(columns: ConstraintColumns, sent: list[Message], engine: str) -> dict[str, Any]:
    """Messages with the names of the filters, and the same with names that no filter has."""
    foreign = [Message({f"not {name}": v for name, v in message.items()}) for message in sent]
    table = ENGINES[engine](columns)
    found: dict[str, Any] = {}
    for name, messages in (("known", sent), ("foreign", foreign)):
        table.match(messages)
        counted = work(table, len(sent))
        found[f"{name}_touched"] = counted["touched_per_message"]
        found[f"{name}_increments"] = counted["increments_per_message"]
    calls = {"known": partial(table.match, sent), "foreign": partial(table.match, foreign)}
    for name, spread in timing.spreads(calls).items():
        found.update(spread.columns(f"{name}_us", 1e6 / len(sent)))
    return {**found, "constraints": len(columns.filter)}


def dealt(columns: ConstraintColumns, interfaces: str) -> ConstraintColumns:
    """The same filters on `F` interfaces, one each, or on a number of them, in runs of equal length."""
    filters = len(columns.owner)
    count = interface_choice(interfaces, filters)
    owner = deal(np.arange(filters), filters, count).astype(columns.owner.dtype)
    return replace(columns, owner=owner, interfaces=interface_names(count))


def interface_choice(text: str, filters: int) -> int:
    """How many interfaces `F`, or a number in text, means; never more than there are filters."""
    return filters if text == "F" else min(int(text), filters)


def columns_of(load: workloads.Workload) -> ConstraintColumns:
    return from_constraint_rows(load.constraints)
