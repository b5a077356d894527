"""Scenarios as files: commands in, the whole trace out, so that a change of behaviour is a diff.

    # what it shows
    routing plain
    links 1-2
    ...
    0.000 a subscribe x > 5
    ----
    0.000 a subscribe x > 5
    4.000 a has subscribe x > 5
    4.000 1 -> 2 subscribe x > 5
    ...

Above the line is a plan (`palio.sim.operations`), below it the trace of its run and the verdict.
"""

from __future__ import annotations

from pathlib import Path

from palio.errors import InvalidFile, PalioError
from palio.sim.operations import Plan, parse_plan
from palio.sim.world import traced

LINE = "----\n"


def split(text: str) -> tuple[str, str]:
    """The commands, and the trace below the line (empty: there is none yet)."""
    head, line, trace = text.partition("\n" + LINE)
    return head + "\n" * bool(line), trace


def trace_of(plan: Plan) -> str:
    """The whole trace of a plan, ending with the verdict."""
    verdict, lines = traced(plan)
    return "\n".join([*lines, verdict.text, ""])


def read(path: Path) -> Plan:
    """The plan in a file."""
    try:
        commands, _ = split(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise InvalidFile(f"{path}: {reason}; a scenario is a text file") from None
    try:
        return parse_plan(commands)
    except PalioError as error:
        raise InvalidFile(f"{path}: {error}") from None


def rewritten(text: str) -> str:
    """The same commands with the trace that they give now."""
    commands, _ = split(text)
    return commands.rstrip("\n") + "\n" + LINE + trace_of(parse_plan(commands))
