"""Which sizes were run, in words."""

from __future__ import annotations

from pathlib import Path

from palio.lab.reproduce.coverage import sizes_run, unfinished
from palio.lab.reproduce.experiment import Point
from palio.lab.reproduce.results import path_of

POINTS = [
    Point("traffic", (("filters", n), ("shape", shape)), r)
    for n in (10, 1_000)
    for shape in ("flat", "chain")
    for r in range(2)
]


def finish(folder: Path, points: list[Point]) -> None:
    for point in points:
        path_of(folder, point).parent.mkdir(exist_ok=True)
        path_of(folder, point).touch()


def test_only_what_is_finished_is_told(tmp_path: Path) -> None:
    assert sizes_run(tmp_path, POINTS) == "nothing"
    assert unfinished(tmp_path, POINTS) == "0 of 8 points are finished"
    finish(tmp_path, POINTS[:3])
    text = "filters 10; shape flat, chain; up to 2 draws (3 of 8 points)"
    assert sizes_run(tmp_path, POINTS) == text
    assert unfinished(tmp_path, POINTS) == "3 of 8 points are finished"
    finish(tmp_path, POINTS)
    text = "filters 10, 1,000; shape flat, chain; up to 2 draws (all 8 points)"
    assert sizes_run(tmp_path, POINTS) == text
    assert unfinished(tmp_path, POINTS) == ""
