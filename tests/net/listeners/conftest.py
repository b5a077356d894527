"""Fixtures for tests of listeners: both event loops."""

from __future__ import annotations

import pytest

from tests.net import peers
from tests.net.peers import LOOPS


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "loops", [request.param])
