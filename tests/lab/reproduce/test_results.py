"""Seeds of points, and how their rows are stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from palio.errors import InvalidFile
from palio.lab.reproduce.catalogue import all_points, experiment
from palio.lab.reproduce.experiment import Point
from palio.lab.reproduce.results import path_of, seed_of, stored, work

POINT = Point("2006-fig6", (("names", 500), ("zipf", True), ("predicates", 30)), 2)


def test_seeds_differ_by_values_unless_points_are_paired() -> None:
    free, paired = all_points("2006-fig6", 0.02), all_points("traffic", 0.1)
    assert len({seed_of(p, 1) for p in free}) == len(free)
    assert len({seed_of(p, 1) for p in paired}) == len({p.repetition for p in paired}) > 1
    assert seed_of(POINT, 1) != seed_of(POINT, 2)


def test_work_stores_the_rows_with_values_and_seed(tmp_path: Path) -> None:
    assert work(tmp_path, POINT, 1) == 1
    (row,) = stored(tmp_path, "2006-fig6", [POINT])
    assert {"names": 500, "zipf": True, "predicates": 30, "repetition": 2}.items() <= row.items()
    assert row["seed"] == seed_of(POINT, 1)
    again = experiment("2006-fig6").run(dict(POINT.values), row["seed"])
    assert [{key: row[key] for key in again[0]}] == again
    assert [path.name for path in (tmp_path / "2006-fig6").iterdir()] == [f"{POINT.name}.parquet"]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    work(tmp_path, POINT, 1)
    path_of(tmp_path, POINT).write_bytes(b"PAR1 and no more")
    with pytest.raises(InvalidFile, match=r"#2\.parquet is not the Parquet file .* delete it"):
        stored(tmp_path, "2006-fig6", [POINT])
