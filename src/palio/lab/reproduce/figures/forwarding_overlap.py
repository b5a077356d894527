"""2001, 4.1 and 2003, 5.1: messages that share some, none or all of their names with filters.

Some names of the workload are renamed in messages, so that no filter has them. Both papers leave open
whether types are strict (2000, 3.1) and which dictionary the words come from: each is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from palio.lab.bench.engines import matcher
from palio.lab.data import workloads
from palio.lab.data.workloads import DrawOptions
from palio.lab.reproduce.drawing import chosen, curve, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid
from palio.lab.reproduce.forwarding_times import ENGINES, columns_of, dealt, messages_of, work
from palio.model.message import Message

SETTINGS = ExperimentSettings(
    id="overlap",
    figure="2001, 4.1 and 2003, 5.1",
    title="Work by the share of names that messages and filters have in common",
    text="20,000 filters of both workloads, 200 messages, the papers' engines; words of palio's dictionary "
    "(drawn: as printed), strict types, and words of a generated dictionary of 100,000; three draws.",
    is_paired=True,
)
FILTERS = 20_000
MESSAGES = 200
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
INTERFACES = ("F", "500", "50", "2")
DRAWS = {
    "as printed": DrawOptions(),
    "strict types": DrawOptions(strict=True),
    "large dictionary": DrawOptions(large=True),
}
PAPERS: dict[str, tuple[Callable[..., workloads.Workload], str]] = {
    "2001": (partial(workloads.tr2001, attributes=100), "counting 2001"),
    "2003": (workloads.sigcomm03, "counting r=0"),
}


def points(scale: float) -> list[dict[str, Plain]]:
    filters = max(1_000, round(FILTERS * min(scale, 1.0)))
    return grid(filters=[filters], paper=list(PAPERS), draw=list(DRAWS), repetitions=[3])


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    draw, engine = PAPERS[values["paper"]]
    load = draw(values["filters"], 1, MESSAGES, seed=seed, options=DRAWS[values["draw"]])
    columns, sent = columns_of(load), messages_of(load)
    names = np.random.default_rng(seed).permutation(sorted({n for m in sent for n in m})).tolist()
    rows = []
    for interfaces in INTERFACES:
        table = ENGINES[engine](dealt(columns, interfaces))
        for share in SHARES:
            matcher(table, sharing(sent, names[: round(share * len(names))]))()
            row = {"interfaces": interfaces, "shared": share, **work(table, MESSAGES)}
            rows.append({**row, "constraints": len(columns.filter)})
    return rows


def sharing(sent: Sequence[Message], shared: Sequence[str]) -> list[Message]:
    """Messages whose other names no filter has."""
    kept = frozenset(shared)
    return [Message({n if n in kept else f"not {n}": v for n, v in m.items()}) for m in sent]


def plot(rows: Sequence[Row], figure: Any) -> None:
    for axis, paper in zip(figure.subplots(1, 2), PAPERS, strict=True):
        for interfaces in INTERFACES:
            those = chosen(rows, paper=paper, interfaces=interfaces, draw="as printed")
            points = curve(those, "shared", "increments_per_message")
            line(axis, [(100 * x, y) for x, y in points], f"I = {interfaces}")
        axis.set(title=paper, xlabel="% of the names shared", ylabel="increments a message")
        axis.set_yscale("symlog")
