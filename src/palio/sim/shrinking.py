"""Make a failing plan short: delta debugging over its operations, then over its network.

Each attempt is a whole run; it is kept if it fails by the same checker. Chunks of operations are
left out, from halves down to single ones, until none can go; fine weather is tried, then routers
without which it still fails: leaves go, and those between two others give way to a direct link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from palio.sim.network import Weather
from palio.sim.operations import Plan

RUNS_MAX = 1_000


class _Budget:
    """Counts runs; out of budget, nothing fails any more and the plan stays as it is."""

    def __init__(self, fails: Callable[[Plan], bool], runs_max: int) -> None:
        self._fails = fails
        self._left = runs_max

    def fails(self, plan: Plan) -> bool:
        self._left -= 1
        return self._left >= 0 and self._fails(plan)


def shrink(plan: Plan, fails: Callable[[Plan], bool], *, runs_max: int = RUNS_MAX) -> Plan:
    """A smaller plan that fails too; `plan` itself does."""
    budget = _Budget(fails, runs_max)
    while True:
        before = plan
        for step in (_operations, _weather, _clients, _routers):
            plan = step(plan, budget)
        if plan == before:
            return plan


def _operations(plan: Plan, budget: _Budget) -> Plan:
    size = max(1, len(plan.operations) // 2)
    while True:
        at = 0
        while at < len(plan.operations):
            kept = plan.operations[:at] + plan.operations[at + size :]
            shorter = replace(plan, operations=kept)
            if budget.fails(shorter):
                plan = shorter
            else:
                at += size
        if size == 1:
            return plan
        size //= 2


def _weather(plan: Plan, budget: _Budget) -> Plan:
    for name in ("loss", "duplicate", "reorder"):
        if getattr(plan.weather, name):
            fine: Weather = replace(plan.weather, **{name: 0.0})
            calmer = replace(plan, weather=fine)
            plan = calmer if budget.fails(calmer) else plan
    return plan


def _clients(plan: Plan, budget: _Budget) -> Plan:
    """Without the clients that do nothing."""
    busy = {operation.client for operation in plan.operations}
    kept = tuple((client, home) for client, home in plan.clients if client in busy)
    smaller = replace(plan, clients=kept)
    return smaller if kept != plan.clients and kept and budget.fails(smaller) else plan


def _routers(plan: Plan, budget: _Budget) -> Plan:
    found = True
    while found:
        found = False
        for smaller in _without_a_router(plan):
            if budget.fails(smaller):
                plan, found = smaller, True
                break
    return plan


def _without_a_router(plan: Plan) -> Iterator[Plan]:
    """The plan without one of the routers that have no clients and at most two links."""
    homes = {home for _, home in plan.clients}
    for name in plan.routers:
        links = [link for link in plan.links if name in link]
        if name in homes or not 1 <= len(links) <= 2:
            continue
        rest = tuple(link for link in plan.links if link not in links)
        if len(links) == 2:
            (a, b), (c, d) = links
            if plan.hierarchy and name == a == c:  # the root of two
                continue
            upper, lower = (a if b == name else b), (d if c == name else c)
            if plan.hierarchy and name == a:
                upper, lower = c, b
            rest = (*rest, (upper, lower))
        operations = tuple(
            operation
            for operation in plan.operations
            if not isinstance(operation.argument, tuple) or name not in operation.argument
        )
        if rest or homes:
            yield replace(plan, links=rest, operations=operations)
