"""Scenarios: commands in, the whole trace out. `pytest tests/sim --rewrite-scenarios` writes the
traces anew; the diff is what is reviewed."""

from __future__ import annotations

from pathlib import Path

import pytest

from palio.errors import InvalidFile
from palio.sim.kernel import scenarios
from palio.sim.routers.runs import ROUTERS

FOLDER = Path(__file__).parent / "scenarios"
FILES = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text("utf-8")
    now = scenarios.rewritten(ROUTERS, text)
    if request.config.getoption("--rewrite-scenarios"):
        path.write_text(now, "utf-8")
        return
    assert now == text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_scenario_ends_well(path: Path) -> None:
    assert path.read_text("utf-8").endswith("\nno check failed\n")


def test_the_first_three_are_the_figures_of_the_paper() -> None:
    """2000, 3.5: subscribers have an outgoing arrow there, forwards an incoming one."""
    last = {
        number: [
            line.partition("   ")[2]
            for line in (FOLDER / f"figure_{number}.txt").read_text("utf-8").splitlines()
            if "] subscribers {" in line
        ]
        for number in (3, 4, 5)
    }
    every, some = "[airline IS NOT NULL]", "[airline = 'UA' AND dest = 'ARN']"
    assert last == {
        3: [f"{every} subscribers {{3}} forwards {{2, 4}}"],
        4: [
            f"{every} subscribers {{3}} forwards {{2, 4}}",
            f"{some} subscribers {{2}} forwards {{3}}",
        ],
        5: [
            f"{every} subscribers {{3, a}} forwards {{2, 3, 4}}",
            f"{some} subscribers {{2}} forwards {{}}",
        ],
    }


def test_a_file_that_is_none_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="a scenario is a text file"):
        scenarios.read(ROUTERS, tmp_path / "gone.txt")
    (tmp_path / "bad.txt").write_text("links 1-2\n\n0.000 a jump 3\n")
    with pytest.raises(InvalidFile, match=r"bad.txt: line 3 .*no verb in 'a jump 3'"):
        scenarios.read(ROUTERS, tmp_path / "bad.txt")
