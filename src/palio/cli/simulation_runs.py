"""What both simulators share on the command line: options, failures made short, and replays."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

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


class Interrupted:
    """Whether Ctrl-C ended a simulation: what was simulated before still counts."""

    def __init__(self) -> None:
        self._is_so = False

    def before(self, outcomes: Iterator[T], total: int) -> Iterator[T]:
        """What is simulated, with a progress bar, until the end or an interrupt."""
        try:
            yield from tracked(outcomes, "simulating", total)
        except KeyboardInterrupt:
            self._is_so = True

    def check(self) -> None:
        """End the command, if so."""
        if self._is_so:
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
