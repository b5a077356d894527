"""What both simulators share on the command line: options, failures made short, and replays."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

from palio.cli.application import NO
from palio.cli.feedback import tracked
from palio.cli.running import INTERRUPTED
from palio.errors import PalioError

T = TypeVar("T")

if TYPE_CHECKING:
    from palio.sim.kernel.plans import SimulationPlan
    from palio.sim.kernel.workload import SimulationWorkload

    P = TypeVar("P", bound=SimulationPlan)


def chosen_faults(text: str) -> tuple[str, ...]:
    """The faults that an option names, separated by commas."""
    return () if text == "none" else tuple(part.strip() for part in text.split(","))


def chosen_seeds(seeds: int, first: int, seed: int | None) -> range:
    return range(first, first + seeds) if seed is None else range(seed, seed + 1)


def is_interrupted(outcomes: Iterator[T], total: int, take: Callable[[T], None]) -> bool:
    """Give each outcome to `take`, with a progress bar; True if Ctrl-C came before the end.

    What was taken before still counts, wherever the interrupt comes: while the next one is
    simulated, or while one is printed.
    """
    try:
        for outcome in tracked(outcomes, "simulating", total):
            take(outcome)
    except KeyboardInterrupt:
        return True
    return False


def end_interrupted() -> NoReturn:
    """End a command whose simulation was interrupted."""
    print("palio: interrupted; the seeds above were simulated", file=sys.stderr)
    raise typer.Exit(INTERRUPTED)


def replay_scenario(workload: SimulationWorkload[P], path: Path) -> None:
    """Print the whole trace of a scenario, the verdict last."""
    from palio.sim.kernel import scenarios

    verdict, lines = workload.traced(scenarios.read(workload, path))
    print("\n".join([*lines, verdict.text]))
    if verdict.kind is not None:
        raise typer.Exit(NO)


def print_failure(
    workload: SimulationWorkload[P],
    draw: Callable[[int], P],
    seed: int,
    command: str,
    as_json: bool,
) -> None:
    """Print the short scenario of a failure, and how to see it again."""
    from palio.sim.kernel.shrinking import shrunk

    print(f"palio: shrinking seed {seed}", file=sys.stderr, flush=True)
    try:
        text = str(shrunk(workload, draw(seed)))
    except PalioError as error:
        raise PalioError(f"seed {seed} failed, but not when it was run again: {error}") from None
    if as_json:
        print(json.dumps({"seed": seed, "scenario": text}))
        return
    print(f"\n{text}")
    print(
        f"This is what is left of seed {seed}. Save it to a file and replay it with "
        f"`palio {command} --scenario FILE`; the whole seed replays with the same options and "
        f"`--seed {seed}`."
    )


def print_json(row: dict[str, Any]) -> None:
    print(json.dumps(row), flush=True)
