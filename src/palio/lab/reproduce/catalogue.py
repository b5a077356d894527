"""Which experiments there are, and the points of each.

A file of `palio.lab.reproduce.figures` is an experiment; its name decides the order in the list.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

from palio.errors import InvalidValue
from palio.lab.reproduce import figures
from palio.lab.reproduce.experiment import Experiment, Point


@cache
def experiments() -> dict[str, Experiment]:
    """All experiments, by ID, in the order of the files."""
    modules: dict[str, Experiment] = {}
    for entry in sorted(pkgutil.iter_modules(figures.__path__), key=lambda entry: entry.name):
        module: Any = importlib.import_module(f"{figures.__name__}.{entry.name}")
        modules[module.SETTINGS.id] = module
    return modules


def experiment(id: str) -> Experiment:
    """The experiment of this ID."""
    known = experiments()
    if id not in known:
        raise InvalidValue(f"no experiment {id!r}; there are {', '.join(known)}")
    return known[id]


def all_points(id: str, scale: float) -> list[Point]:
    """The tasks of an experiment at a scale, one a repetition."""
    if not 0 < scale <= 100:
        raise InvalidValue(f"a scale is above 0 and at most 100, not {scale:g}")
    source = experiment(id).SETTINGS.source
    made = []
    for given in experiment(source).points(scale):
        values = dict(given)
        repetitions = int(values.pop("repetitions", 1))
        made += [Point(source, tuple(values.items()), r) for r in range(repetitions)]
    return made
