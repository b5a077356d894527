"""The harness of all benchmarks: warm-up, turns, ratios, the JSON line, the table, the progress.

    contestants   a  b  c     each warms up: kernels compile, caches fill, short calls are counted
    turn 1        a  b  c     one after the other, so that what disturbs the machine disturbs all
    turn 2        a  b  c
    TurnTimes         medians by contestant, and ratios turn by turn

Ratios within one run hold on a noisy machine; absolute times do not. A benchmark yields Results.
`report` prints each as one JSON object a line, or all as a table; progress goes to stderr.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from rich import progress as rich_progress
from rich.console import Console
from rich.table import Table

Progress: TypeAlias = Callable[[str, float | None], object]
"""Told what happens, and which share of the work is done, where that is known."""


Made = TypeVar("Made")


def silent(_text: str, _share: float | None) -> None:
    """The progress that nobody looks at."""


def part_of(progress: Progress, begin: float = 0.0, end: float = 1.0, prefix: str = "") -> Progress:
    """The progress of a step whose shares go from `begin` to `end` of the whole."""

    def tell(text: str, share: float | None) -> None:
        progress(prefix + text, None if share is None else begin + (end - begin) * share)

    return tell


# ---- time


class Contestant(Protocol):
    """What takes part in a comparison."""

    def warm_up(self) -> None: ...

    def turn(self) -> float:
        """Do the work once more; its seconds."""


class Repeated:
    """A call as a contestant: once a turn, or as often as fills `turn_s`."""

    def __init__(self, call: Callable[[], Any], turn_s: float | None = None) -> None:
        self._call, self._turn_s = call, turn_s
        self._loops = 1
        self.answer: Any = None  # of the first call

    def warm_up(self) -> None:
        self.answer = self._call()
        if self._turn_s is not None:
            self._loops = max(1, int(self._turn_s / max(1e-9, seconds(self._call))))

    def turn(self) -> float:
        started = time.perf_counter()
        for _ in range(self._loops):
            self._call()
        return (time.perf_counter() - started) / self._loops


@dataclass(frozen=True, slots=True)
class TurnTimes:
    """Seconds of each contestant, a turn each."""

    turns: Mapping[str, Sequence[float]]

    def median(self, name: str) -> float:
        return statistics.median(self.turns[name])

    def shortest(self, name: str) -> float:
        return min(self.turns[name])

    def speed_ratio(self, name: str, to: str) -> float:
        """How many times as fast as another: the median over turns."""
        pairs = zip(self.turns[to], self.turns[name], strict=True)
        return statistics.median(other / own for other, own in pairs)


def in_turns(
    contestants: Mapping[str, Contestant], repeats: int, progress: Progress = silent
) -> TurnTimes:
    """Warm all contestants up, then time them in turns."""
    turns: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(repeats + 1):
        for i, (name, contestant) in enumerate(contestants.items()):
            text = f"turn {turn} of {repeats}" if turn else "warming up"
            progress(f"{text}: {name}", (turn + i / len(contestants)) / (repeats + 1))
            if turn:
                turns[name].append(contestant.turn())
            else:
                contestant.warm_up()
    return TurnTimes(turns)


def seconds(call: Callable[[], object]) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def timed(call: Callable[[], Made]) -> tuple[Made, float]:
    """What a call makes, and its seconds."""
    started = time.perf_counter()
    made = call()
    return made, time.perf_counter() - started


# ---- results


@dataclass(frozen=True, slots=True)
class Result:
    """What a benchmark found about one case; its fields are those of the JSON line, in order."""

    def row(self) -> dict[str, object]:
        return asdict(self)


AnyResult = TypeVar("AnyResult", bound=Result)
YieldedResult = TypeVar("YieldedResult", bound=Result, covariant=True)


class Benchmark(Protocol[YieldedResult]):
    """A benchmark with its sizes chosen."""

    def __call__(self, *, progress: Progress) -> Iterable[YieldedResult]: ...


@dataclass(frozen=True, slots=True)
class Column(Generic[AnyResult]):
    """A column of a table: a heading, and what it shows of a result."""

    heading: str
    cell: Callable[[AnyResult], str]
    justify: Literal["left", "right"] = "right"


def table(
    title: str,
    columns: Sequence[Column[AnyResult]],
    results: Iterable[AnyResult],
    *,
    title_justify: Literal["left", "center"] = "left",
    no_wrap: bool = False,
) -> Table:
    """Results for people, one a line."""
    made = Table(title=title, title_justify=title_justify)
    for column in columns:
        made.add_column(column.heading, justify=column.justify, no_wrap=no_wrap)
    for result in results:
        made.add_row(*(column.cell(result) for column in columns))
    return made


def report(
    run: Benchmark[AnyResult],
    show: Callable[[Console, Sequence[AnyResult]], None],
    *,
    as_json: bool,
) -> None:
    """Run a benchmark and print its results: JSON lines as they come, or a table at the end."""
    results = []
    with _bar() as progress:
        for result in run(progress=progress):
            results.append(result)
            if as_json:
                print(json.dumps(result.row()), flush=True)
    if not as_json:
        show(Console(), results)


@contextmanager
def _bar() -> Iterator[Progress]:
    """A bar on the terminal that goes away; without a terminal, nothing."""
    console = Console(stderr=True)
    with rich_progress.Progress(
        console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("starting", total=None)

        def tell(text: str, share: float | None) -> None:
            bar.update(
                task, description=text, total=None if share is None else 1.0, completed=share or 0.0
            )

        yield tell
