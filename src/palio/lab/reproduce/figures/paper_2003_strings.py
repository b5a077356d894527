"""2003, section 4.2: the multi-operator index of strings, against others, by number of constraints.

Four indexes of the counting engine find the same constraints: comparing with every operand, a
sub-index for each operator (2001, which compares for prefix, suffix and contains), the extended
ternary search tree, and our sorted pool of operands with hashed pieces. Steps are what each counts:
operands compared; nodes of the tree and links of its crown lists; pieces that are hashed and
searched for. A search by bisection is one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from palio.lab.bench.engines import matcher
from palio.lab.bench.harness import timed
from palio.lab.data.workloads.paper_2003 import STRING_OPS, WORDS
from palio.lab.data.workloads.recipe import dictionary_words, weighted
from palio.lab.reproduce import timing
from palio.lab.reproduce.drawing import chosen, curve, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid, sizes
from palio.matching.counting.engine import CountingEngine
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.model.message import Message
from palio.model.predicate import Op

SETTINGS = ExperimentSettings(
    id="2003-strings",
    figure="2003, section 4.2",
    title="Indexes of string constraints",
    text="Up to 100,000 constraints on one name, a filter each, with the operators of the 2003 "
    "workload, and without its orders, whose results outweigh the look-up; operands are two words of "
    "the dictionary, and pieces of 3 to 8 letters for prefix, suffix and contains; 200 messages.",
    is_timed=True,
    is_paired=True,
)
CONSTRAINTS = 100_000
MESSAGES = 200
INDEXES = {
    "scan": "every operand",
    "operators": "sub-indexes (2001)",
    "tst": "ternary search tree (2003)",
    "pool": "sorted pool, hashed pieces",
}
NAME = "name"
Constraint = tuple[Op, str]


def points(scale: float) -> list[dict[str, Plain]]:
    most = max(1_000, round(CONSTRAINTS * scale))
    return grid(orders=[False, True], constraints=sizes(100, most, 10))


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    words = dictionary_words(WORDS, seed)
    constraints = list(drawn(rng, words, values["constraints"], values["orders"]))
    whole = [operand for op, operand in constraints if op is Op.EQ] or [""]
    texts = [str(rng.choice(whole)) if i % 2 else two_words(rng, words) for i in range(MESSAGES)]
    columns = from_constraint_rows(as_rows(constraints))
    sent = [Message({NAME: text}) for text in texts]
    rows: list[dict[str, Any]] = []
    calls: dict[str, Callable[[], Any]] = {}
    for name in INDEXES:
        CountingEngine(from_constraint_rows(as_rows([(Op.EQ, "")])), strings=name)  # loads kernels
        engine, build_s = timed(partial(CountingEngine, columns, strings=name))
        calls[name] = matcher(engine, sent)
        calls[name]()
        rows.append(
            {
                "index": name,
                "build_s": build_s,
                "table_bytes": engine.nbytes,
                "length_per_lookup": sum(map(len, texts)) / MESSAGES,
                "found_per_lookup": engine.counters.constraints_touched / MESSAGES,
                "steps_per_lookup": STEPS[name](engine, constraints, texts) / MESSAGES,
            }
        )
    spreads = timing.spreads(calls)
    for row in rows:
        spread = spreads[row["index"]]
        row |= spread.columns("us_per_lookup", 1e6 / MESSAGES)
        row["lookups_per_s"] = MESSAGES / spread.median
        row["ratio"] = spread.median / spreads["pool"].median
    return rows


def two_words(rng: np.random.Generator, words: Sequence[str]) -> str:
    first, second = rng.integers(len(words), size=2).tolist()
    return str(words[first] + words[second])


def drawn(
    rng: np.random.Generator, words: Sequence[str], count: int, has_orders: bool
) -> Iterator[Constraint]:
    """Constraints of the shares of the workload; some may be the same."""
    shares = {
        op: share for op, share in STRING_OPS.items() if has_orders or op not in (Op.LT, Op.GT)
    }
    ops = weighted(shares)
    for place in ops.draw(rng, count).tolist():
        op, text = ops.items[place], two_words(rng, words)
        size = int(rng.integers(3, 9))
        start = int(rng.integers(max(1, len(text) - size)))
        pieces = {
            Op.PREFIX: text[:size],
            Op.SUFFIX: text[-size:],
            Op.CONTAINS: text[start : start + size],
        }
        yield op, pieces.get(op, text)


def as_rows(constraints: Sequence[Constraint]) -> pa.Table:
    """A filter and an interface for each constraint."""
    count = len(constraints)
    return pa.table(
        {
            "interface": [f"i{n}" for n in range(count)],
            "filter": list(range(count)),
            "name": [NAME] * count,
            "op": [op.value for op, _ in constraints],
            "type": ["string"] * count,
            "value": [operand for _, operand in constraints],
        }
    )


# ---- steps of all look-ups


def _compared(engine: CountingEngine, _: Sequence[Constraint], texts: Sequence[str]) -> int:
    return engine.counters.strings_compared


def _compared_and_searched(
    _: CountingEngine, constraints: Sequence[Constraint], texts: Sequence[str]
) -> int:
    """All distinct operands of prefix, suffix and contains; a search for each other operator."""
    searched = {op for op, _ in constraints} & {Op.EQ, Op.LT, Op.GT}
    compared = sum(op not in searched for op, _ in set(constraints))
    return (compared + len(searched)) * len(texts)


def _visited(engine: CountingEngine, _: Sequence[Constraint], texts: Sequence[str]) -> int:
    return engine.counters.tree_nodes + engine.counters.crown_links


def _hashed(_: CountingEngine, constraints: Sequence[Constraint], texts: Sequence[str]) -> int:
    """Pieces of the lengths that operands have, each distinct text once; words are ASCII."""
    lengths = {
        kind: {len(operand) for op, operand in constraints if op is kind}
        for kind in (Op.PREFIX, Op.SUFFIX, Op.CONTAINS)
    }
    steps = 0
    for size in map(len, dict.fromkeys(texts)):
        steps += 1 + sum(n <= size for kind in (Op.PREFIX, Op.SUFFIX) for n in lengths[kind])
        steps += sum(size - n + 1 for n in lengths[Op.CONTAINS] if n <= size)
    return steps


STEPS: dict[str, Callable[[CountingEngine, Sequence[Constraint], Sequence[str]], int]] = {
    "scan": _compared,
    "operators": _compared_and_searched,
    "tst": _visited,
    "pool": _hashed,
}


def plot(rows: Sequence[Row], figure: Any) -> None:
    speed, steps, build = figure.subplots(1, 3)
    for index, label in INDEXES.items():
        for orders, style in ((False, {}), (True, {"ls": ":"})):
            those = chosen(rows, index=index, orders=orders)
            text = f"{label}{', with < and >' * orders}"
            line(speed, curve(those, "constraints", "lookups_per_s"), text, **style)
            line(steps, curve(those, "constraints", "steps_per_lookup"), "", **style)
            line(build, curve(those, "constraints", "build_s"), "", **style)
    speed.set(ylabel="look-ups a second")
    steps.set(ylabel="steps a look-up")
    build.set(ylabel="seconds to build")
    for axis in (speed, steps, build):
        axis.set(xlabel="string constraints", xscale="log", yscale="log")
