"""The statistics of a table as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from palio.matching.statistics import Stats

_PIVOTS = 10  # lines of pivots that are shown; all are in `Stats.pivots`


def text(stats: Stats) -> str:
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
    if stats.crowded:
        yield (
            f"crowded keys: {stats.crowded:,}, with {stats.grouped:,} filters in groups by their "
            "second constraint"
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
    yield f"  {_figure(stats.candidates)} candidates verified, by {_figure(stats.checks)} checks"
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
