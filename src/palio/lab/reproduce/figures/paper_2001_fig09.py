"""2001, figure 9: matching time over the number of filters, for several I, with A = 1,000 and 100.

A point is one draw of filters. Its tables differ by the interfaces that the filters are dealt to, and
are timed in turns, so that the curves of a panel may be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from palio.lab.data import workloads
from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid, sizes
from palio.lab.reproduce.forwarding_times import columns_of, dealt, forwarding_rows, messages_of

SETTINGS = ExperimentSettings(
    id="2001-fig9",
    figure="2001, figure 9",
    title="Matching time over the number of filters",
    text="N = 1,000 messages of the 2001 workload; the paper's counting engine, and up to 1,000,000 "
    "filters our pivot engine beside it (dashed). The full scale has the paper's 8 million filters.",
    is_timed=True,
    is_paired=True,
)
FILTERS, FULL = 1_000_000, 8_000_000
PIVOT_MAX = 1_000_000  # filters: beside six counting tables of more, memory is short
MESSAGES = 1_000
INTERFACES = ("2", "50", "100", "200", "500", "F")


def points(scale: float) -> list[dict[str, Plain]]:
    if scale < 0.1:
        counts = sizes(1_000, max(2_000, round(FILTERS * scale)), 20)
    elif scale < 1:
        counts = sizes(1_000, round(FILTERS * scale), 4)
    else:
        counts = [*sizes(1_000, FILTERS, 4), FULL // 4, FULL // 2, FULL]
    return grid(filters=counts, attributes=[1_000, 100])


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    filters = values["filters"]
    load = workloads.tr2001(filters, 1, MESSAGES, attributes=values["attributes"], seed=seed)
    sent, columns = messages_of(load), columns_of(load)
    del load
    tables = {count: dealt(columns, count) for count in INTERFACES}
    engines = ["counting 2001", *(["pivot"] if filters <= PIVOT_MAX else [])]
    return forwarding_rows(tables, sent, engines)


def plot(rows: Sequence[Row], figure: Any) -> None:
    plot_interfaces(rows, figure, distinct(rows, "interfaces"))
    for axis in figure.axes:
        axis.set_yscale("log")


def plot_interfaces(rows: Sequence[Row], figure: Any, counts: Sequence[str]) -> None:
    """A panel for each A, a curve for each I."""
    for axis, attributes in zip(figure.subplots(1, 2), (1_000, 100), strict=True):
        for number, count in enumerate(counts):
            for engine, style in (("counting 2001", "-"), ("pivot", "--")):
                those = chosen(rows, attributes=attributes, interfaces=count, engine=engine)
                ms = [(x, y / 1000) for x, y in curve(those, "filters", "us_per_message")]
                label = f"I = {count}" if engine != "pivot" else "_"
                line(axis, ms, label, ls=style, color=f"C{number}")
        axis.set(title=f"A = {attributes:,}", xlabel="filters", ylabel="ms a message", xscale="log")
