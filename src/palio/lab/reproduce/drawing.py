"""Drawing stored rows with matplotlib, without a screen: figures, curves, PNG."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

from palio.errors import MissingSoftware
from palio.lab.reproduce.experiment import Row

DPI = 90


def chosen(rows: Iterable[Row], **values: object) -> list[Row]:
    """The rows in which these values hold."""
    return [row for row in rows if all(row[key] == value for key, value in values.items())]


def curve(
    rows: Iterable[Row], x: str, y: str, of: Callable[[Sequence[float]], float] = median
) -> list[tuple[float, float]]:
    """For each x, in order, what `of` makes of its y: by default the median."""
    groups: dict[float, list[float]] = {}
    for row in rows:
        groups.setdefault(row[x], []).append(row[y])
    return [(key, of(groups[key])) for key in sorted(groups)]


def distinct(rows: Iterable[Row], key: str) -> list[Any]:
    """The values of a column, in the order in which they come."""
    return list(dict.fromkeys(row[key] for row in rows))


def line(axis: Any, points: Sequence[tuple[float, float]], label: str, **style: Any) -> None:
    """A curve on an axis; a curve without points is left out."""
    if points:
        axis.plot(*zip(*points, strict=True), label=label, **{"marker": ".", "lw": 1.2} | style)


def png(plot: Callable[[Sequence[Row], Any], None], rows: Sequence[Row]) -> bytes:
    """What an experiment draws, as a picture of moderate size."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingSoftware(
            "the plots of a report need matplotlib: pip install 'palio[lab]'"
        ) from None
    figure = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    plot(rows, figure)
    for axis in figure.axes:
        axis.grid(alpha=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8)
    out = io.BytesIO()
    figure.savefig(out, dpi=DPI, format="png", metadata={"Software": None})
    return out.getvalue()
