"""The search of a night: it goes on where it stopped, repeats what failed, and notices growth."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from tests.fuzz import night as nights
from tests.fuzz.findings import Finding, shrink
from tests.fuzz.night import State, night
from tests.fuzz.targets import Target, all_targets


class Small(Target):
    """Fails on any case with both bytes in it, which the fifth chunk has."""

    name, goal, chunk = "small", 750, 10

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def run(self, seed: int) -> int:
        self.seeds.append(seed)
        if seed == 5:
            self.check_small([b"some", b"cXasYe", b"more"])
        return self.chunk

    def draw(self, random: Random) -> list[bytes]:
        return [random.randbytes(3)]

    def check(self, case: list[bytes]) -> None:
        assert not {*b"XY"} <= {*b"".join(case)}, "both"


class Other(Small):
    name, goal = "other", 250

    def run(self, seed: int) -> int:
        self.seeds.append(seed)
        return self.chunk


def searched(folder: Path, *targets: Target, **environment: str) -> int:
    return night({"FUZZ_STATE": str(folder / "fuzz/state.json"), **environment}, targets)


def test_it_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small, other = Small(), Other()
    assert searched(tmp_path, small, other, FUZZ_CASES="30") == 0
    assert (small.seeds, other.seeds) == ([1, 2], [1])
    assert searched(tmp_path, small, other, FUZZ_CASES="20") == 0
    assert (small.seeds, other.seeds) == ([1, 2, 3, 4], [1])
    state = json.loads((tmp_path / "fuzz/state.json").read_text())
    assert state == {
        "cases": {"small": 40, "other": 10}, "seeds": {"small": 5, "other": 2}, "running": None
    }  # fmt: skip
    monkeypatch.setattr(Other, "goal", 40)
    assert searched(tmp_path, small, other, FUZZ_TARGETS="other") == 0
    assert searched(tmp_path, other) == 0, "nothing is left to do"
    assert other.seeds == [1, 2, 3, 4]


def test_a_failure_is_shown_small_and_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = Small()
    for _ in range(2):
        assert searched(tmp_path, small) == 1
        said = capsys.readouterr().out
        assert "FAILED: target small, seed 5: AssertionError: both" in said
        assert "    b'XY'\n" in said
    assert small.seeds == [1, 2, 3, 4, 5, 5]


def test_a_crash_of_the_process_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = State(tmp_path / "fuzz/state.json")
    state.done("small", 1, 10)
    state.begin("small")  # and then nothing more
    assert searched(tmp_path, Small(), FUZZ_CASES="10") == 0
    assert "the last run ended within small 2" in capsys.readouterr().out


def test_growth_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = iter([100, 250, 300, 310, 449, 451, 452])
    monkeypatch.setattr(nights, "rss_mib", lambda: next(sizes))
    other = Other()
    monkeypatch.setattr(Other, "goal", 200)
    assert searched(tmp_path, other) == 1
    assert len(other.seeds) == 6
    assert "has grown by 201 MiB" in capsys.readouterr().out


def test_time_ends_it(tmp_path: Path) -> None:
    assert searched(tmp_path, Other(), FUZZ_MINUTES="0") == 0


def test_a_case_is_made_small() -> None:
    def check(case: list[bytes]) -> None:
        if b"needle" in b"".join(case):
            raise Finding("a needle", case)

    case = [b"hay" * 50, b"hay needle hay", b"hay"] * 3
    assert b"".join(shrink(case, check)) == b"needle"


LISTENERS = {
    "requests", "sockets", "bodies", "mqtt_packets", "mqtt_clients", "mqtt_sockets", "subscriptions",
    "sink_answers",
}  # fmt: skip


def test_the_goals() -> None:
    goals = {target.name: target.goal for target in all_targets()}
    assert len(goals) == len(all_targets())
    assert {name for name, goal in goals.items() if goal == 10_000_000} == LISTENERS | {"core"}
    assert sum(goals.values()) == 90_000_000 + 10_000_000 * len(LISTENERS)


@pytest.mark.parametrize("target", all_targets()[1:], ids=lambda target: target.name)
def test_a_little_of_each_target(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(target), "chunk", min(target.chunk, 60))
    assert target.run(1) >= 60 or target.chunk < 60
