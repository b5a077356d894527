"""What sharing of delegated sub-patterns saves: the table of docs/concepts/patterns.md."""

from __future__ import annotations

import random

import pytest

from palio.sim.routers.plans import RouterPlan, parse_router_plan
from palio.sim.routers.simulation import RouterTotals, run

A_B = "[t = 'a'] then [t = 'b']"
A_B_C = f"{A_B} then [t = 'c']"
A_AND_B = "[t = 'a'] and [t = 'b']"


def plan(watches: list[tuple[str, str]], *, delegates: bool = True) -> RouterPlan:
    """A line of four routers; a and b are published at 4, c at 2. `watches`: routers and patterns, each
    of a client of its own. 300 messages: 20 % a, 70 % b and 10 % c."""
    rng = random.Random(5)
    clients = " ".join(f"w{number}@{router}" for number, (router, _) in enumerate(watches))
    lines = [
        "routing covering",
        "advertisements",
        "links 1-2 2-3 3-4",
        f"patterns delegates={delegates} lateness=90000 hop=6000",
        f"clients {clients} c@2 ab@4",
        "",
    ]
    lines += [f"0.000 {_source(symbol)} advertise t = '{symbol}'" for symbol in "abc"]
    lines += [f"40.000 w{i} watch {i} {pattern}" for i, (_, pattern) in enumerate(watches)]
    lines.append("300.000 settle")
    for at, symbol in enumerate(rng.choices("abc", [20, 70, 10], k=300)):
        lines.append(f'{310 + 5 * at}.000 {_source(symbol)} publish {{"t": "{symbol}"}}')
    return parse_router_plan("\n".join([*lines, "9000.000 settle"]) + "\n")


def _source(symbol: str) -> str:
    return "c" if symbol == "c" else "ab"


def totals(watches: list[tuple[str, str]], *, delegates: bool = True) -> RouterTotals:
    verdict = run(plan(watches, delegates=delegates))
    assert verdict.kind is None, verdict.text
    return verdict.totals


@pytest.mark.parametrize(
    ("patterns", "count", "alone", "shared", "at_home"),
    [
        ([A_B], 1, 78, 78, 522),
        ([A_B], 10, 975, 117, 783),
        ([A_B, A_B, A_B_C, A_B_C], 10, 939, 138, 822),
        ([A_AND_B], 1, 156, 156, 522),
        ([A_AND_B], 10, 1950, 234, 783),
    ],
)
def test_packets_with_messages(
    patterns: list[str], count: int, alone: int, shared: int, at_home: int
) -> None:
    watches = [("21"[i % 2], patterns[i % len(patterns)]) for i in range(count)]
    each = {watch: totals([watch]) for watch in dict.fromkeys(watches)}
    together, local = totals(watches), totals(watches, delegates=False)
    assert sum(each[watch].messages for watch in watches) == alone
    assert (together.messages, local.messages) == (shared, at_home)
    assert together.compounds == local.compounds == sum(each[w].compounds for w in watches)


def test_a_single_and_costs_more_than_it_reports() -> None:
    """A neighbour that restarted after each match would send 98 packets over the two links."""
    single = totals([("2", A_AND_B)])
    assert (single.compounds, single.messages) == (49, 156)
