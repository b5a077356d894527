"""Settings that a broker cannot work with are refused at the start."""

from __future__ import annotations

import pytest

from palio.errors import PalioError
from palio.protocol.broker.settings import Neighbour, Settings
from tests.protocol.exchange import ANYBODY

SECRET = bytes(32)


@pytest.mark.parametrize("weight", [0.0, -1.0, 0.0009, 1_000_001.0, float("nan"), float("inf")])
def test_a_link_weighs_something(weight: float) -> None:
    """Were it refused when the neighbour joins, the link would be half there."""
    with pytest.raises(PalioError, match="the link to 'b' has weight"):
        Settings("a", ANYBODY, {"b": Neighbour(SECRET, weight)})


def test_a_link_has_credit() -> None:
    with pytest.raises(PalioError, match="needs credit"):
        Settings("a", ANYBODY, link_credit=0)
