"""The statistics of a table: values, and their text as people read it.

A filter costs a message something when the key that it is filed under is hit:

    under_keys    filters of several constraints under the keys that a message hits
    candidates    those of them that are verified: all, but those in groups of hot keys only where their
                  second constraint holds
    taken         filters of one constraint there: they match without a look
    checks        constraints judged until the candidates are decided

`pivot/measuring.py` computes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from palio.errors import InvalidPredicate

ALWAYS = "(always)"  # shown as the name of filters without a constraint
_PIVOTS = 10  # lines of pivots that are shown; all are in `Stats.pivots`


@dataclass(frozen=True, slots=True)
class Reduction:
    """What reducing by covering saved."""

    filters_before: int
    filters: int
    constraints_before: int
    constraints: int


@dataclass(frozen=True, slots=True)
class PivotStats:
    """Filters filed under one name and operator; the last three are per message."""

    name: str
    op: str
    keys: int
    filters: int
    candidates: float
    taken: float
    checks: float


@dataclass(frozen=True, slots=True)
class NameCost:
    """What the filters filed under a name cost per message, and their share of all checks."""

    name: str
    candidates: float
    checks: float
    share: float


@dataclass(frozen=True, slots=True)
class ExpressionStats:
    """What a table computes; see `expressions.TableExpressions`."""

    shared: int
    members: int
    residuals: int
    shapes: int
    unindexed: int
    unindexed_us: float


@dataclass(frozen=True, slots=True)
class Stats:
    """The statistics of a table. A filter filed under a set counts once for each member."""

    interfaces: int
    filters: int
    alone: int
    constraints: int
    names: int
    strings: int
    bytes: int
    bytes_by_part: Mapping[str, int]
    sampled: int  # messages that were counted; 0: what follows is guessed
    under_keys: float
    candidates: float
    taken: float
    checks: float
    matches: float | None  # interfaces per message, known of a sample only
    pivots: Sequence[PivotStats]
    costly: Sequence[NameCost]
    hot_keys: int  # keys whose filters lie in groups
    grouped: int  # filters in groups
    reduction: Reduction | None = None
    expressions: ExpressionStats | None = None

    def row(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return _text(self)


def no_statistics(engine: str) -> InvalidPredicate:
    """The error of an engine that measures nothing."""
    return InvalidPredicate(
        f"the engine {engine!r} has no statistics; only tables of the engine pivot have them"
    )


def _text(stats: Stats) -> str:
    """Sizes, what a message costs, and where that comes from."""
    return "\n".join([*_sizes(stats), "", *_cost(stats), "", *_names(stats), "", *_pivots(stats)])


def _sizes(stats: Stats) -> Iterable[str]:
    yield (
        f"{stats.interfaces:,} interfaces, {stats.filters:,} filters ({stats.alone:,} of one "
        f"constraint), {stats.constraints:,} constraints, {stats.names:,} names, "
        f"{stats.strings:,} strings"
    )
    parts = ", ".join(
        f"{part} {_amount(size)}" for part, size in stats.bytes_by_part.items() if size
    )
    yield f"{_amount(stats.bytes)}: {parts}"
    if stats.hot_keys:
        yield (
            f"hot keys: {stats.hot_keys:,}, with {stats.grouped:,} filters in groups by their "
            "second constraint"
        )
    if stats.expressions is not None:
        e = stats.expressions
        yield (
            f"expressions: {e.shared:,} computed for every message, {e.members:,} elements of arrays; "
            f"{e.residuals:,} filters have residuals, of {e.shapes:,} shapes"
        )
        if e.unindexed:
            yield (
                f"  {e.unindexed:,} of these are judged for every message that has their attributes: "
                f"about {_figure(e.unindexed_us)} us a message"
            )
    if stats.reduction is not None:
        r = stats.reduction
        yield (
            f"reduced from {r.filters_before:,} filters to {r.filters:,}, "
            f"from {r.constraints_before:,} constraints to {r.constraints:,}"
        )


def _cost(stats: Stats) -> Iterable[str]:
    how = f"counted on {stats.sampled:,} messages" if stats.sampled else "guessed"
    yield f"a message ({how}):"
    yield f"  {_figure(stats.taken)} filters of one constraint taken"
    line = f"  {_figure(stats.candidates)} candidates verified, by {_figure(stats.checks)} checks"
    grouped = stats.under_keys - stats.candidates
    yield f"{line}; {_figure(grouped)} more are passed over in groups" if grouped else line
    if stats.matches is not None:
        yield f"  {_figure(stats.matches)} interfaces matched"


def _names(stats: Stats) -> Iterable[str]:
    rows = [
        (c.name, f"{c.share:.0%}", _figure(c.checks), _figure(c.candidates)) for c in stats.costly
    ]
    return _columns(("costly name", "share", "checks", "candidates"), rows)


def _pivots(stats: Stats) -> Iterable[str]:
    rows = [
        (
            p.name,
            p.op,
            f"{p.filters:,}",
            f"{p.keys:,}",
            _figure(p.checks),
            _figure(p.candidates),
            _figure(p.taken),
        )
        for p in stats.pivots[:_PIVOTS]
    ]
    heads = ("filed under", "op", "filters", "keys", "checks", "candidates", "taken")
    yield from _columns(heads, rows, left=2)
    if len(stats.pivots) > _PIVOTS:
        yield f"... and {len(stats.pivots) - _PIVOTS:,} more"


def _columns(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> Iterable[str]:
    """Aligned columns; the first ones to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        cells = (
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _amount(size: int) -> str:
    """Bytes as people say them."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"
