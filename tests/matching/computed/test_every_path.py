"""Rules with expressions give the same answers on every path; see every_path.py."""

from __future__ import annotations

import pytest

from tests.matching.computed.every_path import disagreements


@pytest.mark.parametrize("seed", [1700, 1701])
def test_every_path_answers_as_the_naive_engine(seed: int) -> None:
    assert list(disagreements(seed))[:5] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_every_path_answers_many_rules(seed: int) -> None:
    """200,000 pairs of a rule and a message."""
    assert list(disagreements(seed))[:5] == []
