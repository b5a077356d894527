"""What the tests of the simulator share."""

from __future__ import annotations

import pytest

ROUTINGS = ["covering", "plain", "flooding"]


@pytest.fixture(params=ROUTINGS)
def routing(request: pytest.FixtureRequest) -> str:
    """Each kind of router."""
    name: str = request.param
    return name
