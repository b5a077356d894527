"""Which experiments there are, and their points."""

from __future__ import annotations

import pytest

from palio.errors import InvalidValue
from palio.lab.reproduce.catalogue import all_points, experiment, experiments
from palio.lab.reproduce.results import path_of


@pytest.mark.parametrize("id", list(experiments()))
def test_points_grow_with_the_scale_and_have_names_of_their_own(id: str) -> None:
    few, many = all_points(id, 0.02), all_points(id, 1)
    assert 0 < len(few) <= len(many)
    for points in (few, many):
        assert len({path_of("x", point) for point in points}) == len(points)
        assert all(len(path_of("x", point).name) < 200 for point in points)


def test_an_unknown_experiment_or_scale_is_refused() -> None:
    with pytest.raises(
        InvalidValue, match="no experiment 'fig6'; there are names, overlap, 2000-patterns"
    ):
        experiment("fig6")
    with pytest.raises(InvalidValue, match="a scale is above 0"):
        all_points("2006-fig6", 0)
