"""2003, figure 9: matching time over constraints for fixed numbers of interfaces, rounds 0 and 10.

Filters are dealt to interfaces evenly, or, as section 5.1 prints it, an interface has a number of them
that is uniform in [1, fh): then some have so few that pre-processing can eliminate them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from palio.lab.data import workloads
from palio.lab.data.workloads import DrawOptions
from palio.lab.reproduce.drawing import chosen, curve, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid
from palio.lab.reproduce.figures.paper_2003_fig08 import ENGINES, MESSAGES, filter_counts
from palio.lab.reproduce.forwarding_times import columns_of, forwarding_rows, messages_of

SETTINGS = ExperimentSettings(
    id="2003-fig9",
    figure="2003, figure 9",
    title="Matching time over constraints, fixed numbers of interfaces",
    text="As 2003-fig8, with I = 20, 100 and 1,000 (ours: the text of the paper that we have ends "
    "before it names them). Drawn: filters of an interface uniform in [1, fh), as printed.",
    is_timed=True,
    is_paired=True,
)
INTERFACES = ("20", "100", "1000")
DEALINGS = ("as printed", "evenly")


def points(scale: float) -> list[dict[str, Plain]]:
    return grid(filters=filter_counts(scale), dealing=list(DEALINGS))


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    filters, options = values["filters"], DrawOptions(uneven=values["dealing"] == "as printed")
    tables, sent = {}, []
    for count in INTERFACES:
        if int(count) <= filters:
            load = workloads.sigcomm03(filters, int(count), MESSAGES, seed=seed, options=options)
            tables[count], sent = columns_of(load), messages_of(load)  # the same for all
    return forwarding_rows(tables, sent, ENGINES)


def plot(rows: Sequence[Row], figure: Any) -> None:
    for axis, interfaces in zip(figure.subplots(1, 3), INTERFACES, strict=True):
        for engine in ENGINES:
            those = chosen(rows, engine=engine, interfaces=interfaces, dealing="as printed")
            points = curve(those, "constraints", "us_per_message")
            line(axis, [(x, y / 1000) for x, y in points], engine)
        axis.set(title=f"I = {int(interfaces):,}", xlabel="constraints", ylabel="ms a message")
        axis.set(xscale="log", ylim=(0, None))
