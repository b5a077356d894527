"""2001, section 3: the sorted sets of the constraint index are searched by bisection.

All constraints are on one integer attribute, with different values: equalities, of which a value
satisfies one, or less-thans, of which it satisfies all from some place on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from palio.lab.bench.engines import matcher
from palio.lab.reproduce import timing
from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid, sizes
from palio.lab.reproduce.forwarding_times import work
from palio.matching.counting.engine import CountingEngine
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.model.message import Message

SETTINGS = ExperimentSettings(
    id="2001-search",
    figure="2001, section 3",
    title="Searching a sorted set of constraints",
    text="Up to 1,000,000 integer constraints of one name with different values, one interface each; "
    "1,000 messages. For less-than the values lie in the last ten, so that results are small and "
    "the search is what is timed.",
    is_timed=True,
    is_paired=True,
)
CONSTRAINTS = 1_000_000
MESSAGES = 1_000
RESULT_MAX = 10


def points(scale: float) -> list[dict[str, Plain]]:
    most = max(10_000, round(CONSTRAINTS * min(scale, 1.0)))
    return grid(op=["=", "<"], constraints=sizes(100, most, 10))


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    count, op = values["constraints"], values["op"]
    rng = np.random.default_rng(seed)
    operands = np.arange(count) * 2
    low = 0 if op == "=" else count - RESULT_MAX
    asked = operands[rng.integers(low, count, MESSAGES)]
    engine = searched_engine(op, operands.tolist())
    call = matcher(engine, [Message({"x": x}) for x in asked.tolist()])
    call()
    expected = MESSAGES if op == "=" else int(((operands[-1] - asked) // 2).sum())
    spread = timing.spreads({"search": call})["search"]
    return [
        {
            **work(engine, MESSAGES),
            "expected_per_message": expected / MESSAGES,
            **spread.columns("us_per_message", 1e6 / MESSAGES),
        }
    ]


def searched_engine(op: str, operands: Sequence[int]) -> CountingEngine:
    """The paper's engine with one constraint on x, of one interface, for each operand."""
    count = len(operands)
    table = pa.table(
        {
            "interface": [f"i{n}" for n in range(count)],
            "filter": list(range(count)),
            "name": ["x"] * count,
            "op": [op] * count,
            "type": ["int"] * count,
            "value": [str(n) for n in operands],
        }
    )
    return CountingEngine(from_constraint_rows(table), variant="2001")


def plot(rows: Sequence[Row], figure: Any) -> None:
    axis = figure.subplots()
    for op in distinct(rows, "op"):
        line(axis, curve(chosen(rows, op=op), "constraints", "us_per_message"), f"x {op} value")
    axis.set(xlabel="constraints", ylabel="us a message", xscale="log", ylim=(0, None))
