"""Attacks on real brokers from outside. The broker lives, and others are served meanwhile.

`make attack` runs each against brokers of its own and prints a line for it: what was tried, what
held, and how long the event loop was held at most. `make slow` runs a short version of each against
one broker, and `make test` a few of these, with one witness.

What others wait for is the time on the clock, which is printed. What is asserted is the processor time
of the loop's thread: a machine that is busy with something else does not add to it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack import (  # noqa: F401
    clients,
    durables,
    events,
    expressions,
    frames,
    http,
    messages,
    mqtt,
    operations,
    pages,
    predicates,
    subscriptions,
)
from tests.attack.arena import HOLD_S_MAX, Arena, Holds
from tests.attack.case import CASES, Case

LIMIT_S = 300.0
"""Of one attack: a bound for what would hang."""


def parameters(*, full: bool) -> list[object]:
    return [pytest.param(case, id=case.name) for case in CASES if full or not case.only_full]


async def attacked(arena: Arena, *cases: Case) -> tuple[str, list[Holds]]:
    """What held, in the last one, and how long the event loops were held."""
    async with asyncio.timeout(LIMIT_S):
        try:
            arena.start()
            await arena.ready()
            await arena.begin_witness()
            for case in cases:
                held = await case.attack(arena)
            return held, await arena.judged()
        except AssertionError as error:
            error.add_note(f"attack: {case.name}")
            raise
        finally:
            arena.kill_witness()


def verdict(holds: list[Holds]) -> str:
    both = Holds.together(holds)
    return f"{both}: {'ok' if both.is_short else 'TOO LONG'}"


def line(case: Case, held: str, holds: list[Holds], arena: Arena) -> str:
    delay_ms = 1000 * max(report.longest_s for report in arena.reports)
    return f"\n{case.name}: {case.tried}; {held}; witness {delay_ms:.0f} ms; {verdict(holds)}"


@pytest.fixture(scope="module")
def all_holds() -> Iterator[list[Holds]]:
    """Of all brokers of all attacks; the sum is printed at the end."""
    holds: list[Holds] = []
    yield holds
    if holds:
        turns = sum(max(one.buckets.values()) for one in holds)
        print(f"\nall together, {turns:,.0f} turns of event loops: {verdict(holds)}", flush=True)


@pytest.mark.attack
@pytest.mark.parametrize("case", parameters(full=True))
def test_a_broker_withstands(case: Case, tmp_path: Path, all_holds: list[Holds]) -> None:
    """ATTACK_LOG=1 also prints the warnings of the brokers."""
    arena = Arena(tmp_path, full=True, brokers=case.brokers)
    try:
        held, holds = asyncio.run(attacked(arena, case))
        all_holds += holds
        print(line(case, held, holds, arena), flush=True)
        assert all(one.is_short for one in holds), verdict(holds)
    finally:
        arena.close()
        if os.environ.get("ATTACK_LOG"):
            for name in arena.names:
                lines = arena.log(name).splitlines()
                print(*[one for one in lines if "INFO" not in one][:20], sep="\n")


@pytest.fixture(scope="module")
def arenas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, Arena]]:
    """By the number of brokers; all short attacks of this number share them."""
    made: dict[int, Arena] = {}
    yield made
    for arena in made.values():
        arena.close()


@pytest.mark.slow
@pytest.mark.xdist_group("brokers")
@pytest.mark.parametrize("case", parameters(full=False))
def test_a_broker_withstands_a_short_attack(
    case: Case, arenas: dict[int, Arena], tmp_path_factory: pytest.TempPathFactory
) -> None:
    arena = arenas.get(case.brokers)
    if arena is None:
        folder = tmp_path_factory.mktemp(f"attack{case.brokers}")
        arena = arenas[case.brokers] = Arena(folder, full=False, brokers=case.brokers)
    arena.reports.clear()
    try:
        asyncio.run(attacked(arena, case))
    except BaseException:
        arenas.pop(case.brokers).close()  # the next attack begins with a new broker
        raise


@pytest.mark.xdist_group("brokers")
def test_a_broker_withstands_the_most_telling_attacks(tmp_path: Path) -> None:
    arena = Arena(tmp_path, full=False)
    try:
        _, holds = asyncio.run(attacked(arena, *[case for case in CASES if case.in_test]))
        print(verdict(holds))  # other tests run beside this one; `make attack` insists
        assert all(one.cpu_longest_s <= 5 * HOLD_S_MAX for one in holds), verdict(holds)
    finally:
        arena.close()
