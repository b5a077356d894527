"""Seeds and sizes of random tests: a few for `make test`, the others for `make slow`."""

from __future__ import annotations

import pytest


def seeds(few: int, many: int) -> pytest.MarkDecorator:
    """The argument `seed` of a test, from 0 on; those from `few` on are slow."""
    slow = (pytest.param(seed, marks=pytest.mark.slow) for seed in range(few, many))
    return pytest.mark.parametrize("seed", [*range(few), *slow])


def sizes(few: int, many: int) -> pytest.MarkDecorator:
    """The argument `size` of a test: how many it draws; the larger one is slow."""
    return pytest.mark.parametrize("size", [few, pytest.param(many, marks=pytest.mark.slow)])
