"""Alerts on real flights: what travellers, airline staff and dashboards ask for, on a year of departures.

The predicates are the subscriptions of `palio.lab.data.flights`, parsed from their SQL; a message is a
departure, a wide row of typed columns where null is an absent attribute. Unlike the papers'
workloads this one has every type, `in`, `absent` and `!=`, and values as skewed as life.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from palio.errors import InvalidValue
from palio.lab.data import flights as departures
from palio.lab.data.workloads.recipe import deal, interface_count, interface_names
from palio.lab.data.workloads.workload import Interfaces, Workload, constraint_rows
from palio.model.language import parse
from palio.model.predicate import Predicate

_SPARE = 1_000  # subscriptions more than can be needed, for those that are left out


def flights(
    filters: int, interfaces: Interfaces = None, messages: int = 1_000, *, seed: int = 1
) -> Workload:
    """Draw alerts with exactly this many filters, and departures at random.

    A subscription has one filter or two. None or "all" gives each subscription its own interface,
    such as `desk-17`; a number I deals S subscriptions out in runs of neighbours, s to s * I // S.
    """
    if messages < 0:
        raise InvalidValue(f"a workload has 0 messages or more, not {messages}")
    interface_count(filters, None)
    entries = _subscriptions(filters, seed)
    if interfaces is not None and interfaces != "all":
        count = interface_count(len(entries), interfaces)
        names = interface_names(count).to_pylist()
        codes = deal(np.arange(len(entries)), len(entries), count).tolist()
        entries = [(names[code], p) for code, (_, p) in zip(codes, entries, strict=True)]
    loaded = departures.load()
    return Workload(
        "flights",
        constraint_rows(entries),
        _sample(loaded.table, messages, seed),
        f"alerts on {loaded.source}; seed {seed}",
    )


def _subscriptions(filters: int, seed: int) -> list[tuple[str, Predicate]]:
    """Subscriptions until there are enough filters; one that would go over is left out."""
    entries: list[tuple[str, Predicate]] = []
    missing = filters
    for interface, text in departures.subscriptions(filters + _SPARE, seed):
        predicate = parse(text)
        if len(predicate) <= missing:
            entries.append((interface, predicate))
            missing -= len(predicate)
        if not missing:
            break
    return entries


def _sample(table: pa.Table, count: int, seed: int) -> pa.Table:
    """Departures at random, each at most once while there are enough."""
    rng = np.random.default_rng(seed)
    picks = rng.choice(table.num_rows, count, replace=count > table.num_rows)
    return table.take(pa.array(picks))
