"""2001, figure 11: the share of messages that no filter matches, from the rows of figure 10."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from palio.lab.reproduce.drawing import chosen, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Row
from palio.lab.reproduce.figures.paper_2001_fig10 import INTERFACES, points, run

__all__ = ["SETTINGS", "ignored_draws", "ignored_share", "plot", "points", "run"]

SETTINGS = ExperimentSettings(
    id="2001-fig11",
    figure="2001, figure 11",
    title="Ignored messages over the number of filters",
    text="The rows of 2001-fig10: messages that go to no interface.",
    uses="2001-fig10",
)


def ignored_share(rows: Sequence[Row], attributes: int) -> list[tuple[int, float]]:
    """For each number of filters the share of messages, from 0 to 1, that go nowhere."""
    shares = []
    for filters in sorted(distinct(rows, "filters")):
        those = chosen(rows, filters=filters, attributes=attributes)
        total = sum(row["messages"] for row in those)
        if total:
            nowhere = sum(row["messages"] for row in those if row["reached"] == 0)
            shares.append((filters, nowhere / total))
    return shares


def ignored_draws(rows: Sequence[Row], filters: int, attributes: int) -> list[float]:
    """The same share in each draw."""
    those = chosen(rows, filters=filters, attributes=attributes, interfaces=INTERFACES)
    return [
        share
        for number in sorted(distinct(those, "repetition"))
        for _, share in ignored_share(chosen(those, repetition=number), attributes)
    ]


def plot(rows: Sequence[Row], figure: Any) -> None:
    for axis, last in zip(figure.subplots(1, 2), (100_000, 10_000), strict=True):
        for attributes in (1_000, 100, 50):
            shares = [(x, 100 * y) for x, y in ignored_share(rows, attributes) if x <= last]
            line(axis, shares, f"A = {attributes:,}")
        axis.set(xlabel="filters", ylabel="% ignored", xscale="log", ylim=(0, 100))
