"""2003, sections 3 and 4.3: what the selectivity table eliminates, by rounds of pre-processing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from palio.lab.bench.engines import matcher
from palio.lab.data import workloads
from palio.lab.reproduce import timing
from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid
from palio.matching.counting.engine import CountingEngine
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.model.message import Message

SETTINGS = ExperimentSettings(
    id="2003-selectivity",
    figure="2003, sections 3 and 4.3",
    title="Effect of the selectivity table",
    text="200,000 predicates of the 2003 workload, of 1, 2 and 5 filters each; 100 messages. An "
    "interface is eliminated when all its filters need an attribute that the message lacks.",
    is_timed=True,
    is_paired=True,
)
PREDICATES = 200_000
ROUNDS = (0, 1, 2, 5, 10, 20, 50, 100)


def points(scale: float) -> list[dict[str, Plain]]:
    predicates = min(PREDICATES, max(1_000, round(PREDICATES * scale)))
    return grid(predicates=[predicates], filters_each=[1, 2, 5])


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    predicates = values["predicates"]
    load = workloads.sigcomm03(predicates * values["filters_each"], predicates, 100, seed=seed)
    sent = [Message(m) for m in workloads.message_dicts(load)]
    columns = from_constraint_rows(load.constraints)
    rows, calls = [], {}
    for rounds in ROUNDS:
        engine = CountingEngine(columns, rounds=rounds)
        calls[str(rounds)] = matcher(engine, sent)
        calls[str(rounds)]()
        work = engine.counters
        eliminated = work.interfaces_eliminated / len(sent) / predicates
        increments = work.increments / len(sent)
        rows.append({"rounds": rounds, "eliminated": eliminated, "increments": increments})
    spreads = timing.spreads(calls)
    for row in rows:
        spread = spreads[str(row["rounds"])]
        row |= spread.columns("us_per_message", 1e6 / len(sent))
        row["ratio"] = spread.median / spreads["0"].median
    return rows


def plot(rows: Sequence[Row], figure: Any) -> None:
    left, right = figure.subplots(1, 2)
    for each in distinct(rows, "filters_each"):
        those = chosen(rows, filters_each=each)
        label = f"{each} filter{'s' * (each > 1)} a predicate"
        shares = curve(those, "rounds", "eliminated")
        line(left, [(x, 100 * y) for x, y in shares], label)
        line(right, curve(those, "rounds", "ratio"), label)
    left.set(xlabel="rounds", ylabel="% of the interfaces eliminated", ylim=(0, 100))
    right.set(xlabel="rounds", ylabel="time, over that of no rounds", ylim=(0, None))
