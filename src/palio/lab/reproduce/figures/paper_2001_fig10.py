"""2001, figure 10: how many interfaces a message goes to, for several numbers of attribute names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from palio.lab.data import workloads
from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid, sizes
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.matching.pivot.engine import PivotEngine
from palio.model.message import Message

SETTINGS = ExperimentSettings(
    id="2001-fig10",
    figure="2001, figure 10",
    title="Distribution of matches, by the number of attribute names",
    text="1,000 messages of the 2001 workload a draw; the paper does not say which I it draws: all of "
    "its fixed ones at 100,000 filters, I = 50 in the figure. From scale 0.1 on 1,000 to 100,000 "
    "filters, ten draws of each at the full scale.",
    is_paired=True,
)
INTERFACES = 50
READINGS = (2, 50, 100, 200, 500)
DRAWS = 10
FILTERS = 100_000
MESSAGES = 1_000


def points(scale: float) -> list[dict[str, Plain]]:
    counts = [1_000, 10_000] if scale < 0.1 else sizes(1_000, FILTERS, 10**0.5)
    draws = 2 if scale < 0.1 else 3 if scale < 1 else DRAWS
    names = [1_000, 100, 50]
    drawn = grid(filters=counts, attributes=names, interfaces=[INTERFACES], repetitions=[draws])
    others = [count for count in READINGS if count != INTERFACES]
    if counts[-1] == FILTERS:  # which interfaces are meant matters there only
        drawn += grid(filters=[FILTERS], attributes=names, interfaces=others, repetitions=[1])
    return drawn


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    load = workloads.tr2001(
        values["filters"],
        values["interfaces"],
        MESSAGES,
        attributes=values["attributes"],
        seed=seed,
    )
    engine = PivotEngine.compile(from_constraint_rows(load.constraints))
    offsets, _ = engine.match([Message(m) for m in workloads.message_dicts(load)])
    reached = np.bincount(np.diff(offsets), minlength=1)
    return [
        {"reached": number, "messages": int(count)} for number, count in enumerate(reached) if count
    ]


def plot(rows: Sequence[Row], figure: Any) -> None:
    filters = sorted(distinct(rows, "filters"))
    ends = [filters[0], filters[-1]]
    for axis, count in zip(figure.subplots(1, 2), ends, strict=True):
        for attributes in (1_000, 100, 50):
            those = chosen(rows, filters=count, attributes=attributes, interfaces=INTERFACES)
            total = sum(row["messages"] for row in those)
            reached = curve(those, "reached", "messages", sum)
            line(axis, [(x, 100 * y / total) for x, y in reached], f"A = {attributes:,}")
        axis.set(title=f"F = {count:,}, I = {INTERFACES}", ylabel="% of the messages")
        axis.set(xlabel="interfaces that a message goes to")
