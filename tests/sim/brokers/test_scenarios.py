"""Scenarios of brokers: commands in, the whole trace out. `pytest tests/sim --rewrite-scenarios`
writes the traces anew; the diff is what is reviewed."""

from __future__ import annotations

from pathlib import Path

import pytest

from palio.sim.brokers.runs import BROKERS
from palio.sim.kernel import scenarios

FOLDER = Path(__file__).parent / "scenarios"
FILES = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text("utf-8")
    now = scenarios.rewritten(BROKERS, text)
    if request.config.getoption("--rewrite-scenarios"):
        path.write_text(now, "utf-8")
        return
    assert now == text
