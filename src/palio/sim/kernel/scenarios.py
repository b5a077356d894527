"""Scenarios as files: commands in, the whole trace out, so that a change of behaviour is a diff.

    # what it shows
    links 1-2
    ...
    0.000 a subscribe x > 5
    ----
    0.000 a subscribe x > 5
    4.000 a has subscribe x > 5
    ...

Above the line is a plan (`palio.sim.kernel.plans`), below it the trace of its run and the verdict.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from palio.errors import InvalidFile, PalioError
from palio.sim.kernel.plans import SimulationPlan
from palio.sim.kernel.workload import SimulationWorkload

LINE = "----\n"

P = TypeVar("P", bound=SimulationPlan)


def split(text: str) -> tuple[str, str]:
    """The commands, and the trace below the line (empty: there is none yet)."""
    head, line, trace = text.partition("\n" + LINE)
    return head + "\n" * bool(line), trace


def trace_of(workload: SimulationWorkload[P], plan: P) -> str:
    """The whole trace of a plan, ending with the verdict."""
    verdict, lines = workload.traced(plan)
    return "\n".join([*lines, verdict.text, ""])


def read(workload: SimulationWorkload[P], path: Path) -> P:
    """The plan in a file."""
    try:
        commands, _ = split(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise InvalidFile(f"{path}: {reason}; a scenario is a text file") from None
    try:
        return workload.parse(commands)
    except PalioError as error:
        raise InvalidFile(f"{path}: {error}") from None


def rewritten(workload: SimulationWorkload[P], text: str) -> str:
    """The same commands with the trace that they give now."""
    commands, _ = split(text)
    return commands.rstrip("\n") + "\n" + LINE + trace_of(workload, workload.parse(commands))
