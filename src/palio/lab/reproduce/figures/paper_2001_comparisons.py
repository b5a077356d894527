"""2001, section 3: how many keys a binary search of the constraint index compares.

The tables are those of 2001-search. The search is the kernel that the engine runs, not compiled, and a
sequence that counts how often it is read stands in for the keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid, sizes
from palio.lab.reproduce.figures.paper_2001_search import searched_engine
from palio.matching.encode import constraint_kernels

SETTINGS = ExperimentSettings(
    id="2001-comparisons",
    figure="2001, section 3",
    title="Comparisons of a search in a sorted set of constraints",
    text="Up to 100,000 integer constraints of one name with different values; 200 searches for keys that "
    "are there, the first and the last among them. The search is binary until 16 keys are left, and "
    "compares all of these at once.",
)
CONSTRAINTS = 100_000
SEARCHES = 200


def points(scale: float) -> list[dict[str, Plain]]:
    most = max(10_000, round(CONSTRAINTS * min(scale, 1.0)))
    return grid(op=["=", "<"], constraints=sizes(100, most, 10))


class CountedKeys:
    """Keys, and how often one was read."""

    def __init__(self, keys: Any) -> None:
        self._keys = keys
        self.reads = 0

    def __getitem__(self, at: Any) -> Any:
        self.reads += 1
        return self._keys[int(at)]


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    count = values["constraints"]
    index = searched_engine(values["op"], range(0, 2 * count, 2)).index
    keys = index.keys[index.keys_at[0] : index.keys_at[1]]
    places = np.random.default_rng(seed).integers(0, count, SEARCHES).tolist()
    compared = [comparisons(keys, place) for place in (0, count - 1, *places)]
    return [{"compared_max": max(compared), "compared_mean": sum(compared) / len(compared)}]


def comparisons(keys: Any, place: int) -> int:
    """Keys that the engine's search reads until it finds the one at a place."""
    search: Any = constraint_kernels.upper_bound
    counted = CountedKeys(keys)
    found = search.py_func(counted, 0, len(keys), keys[place])
    assert found == place + 1, "the search gives the place after the key"
    return counted.reads


def plot(rows: Sequence[Row], figure: Any) -> None:
    axis = figure.subplots()
    for op in distinct(rows, "op"):
        line(axis, curve(chosen(rows, op=op), "constraints", "compared_max"), f"x {op} value")
    axis.set(xlabel="constraints", ylabel="keys compared, at most", xscale="log", ylim=(0, None))
