"""Fixtures for tests of the host: both event loops, and cores that remember."""

from __future__ import annotations

import pytest

from tests.net import peers
from tests.net.peers import LOOPS
from tests.net.stand_in import Cores


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "loops", [request.param])


@pytest.fixture
def cores() -> Cores:
    return Cores()
