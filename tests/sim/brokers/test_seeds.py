"""A few dozen seeds of whole brokers with all faults: every checker is content. `make simulate` runs
a thousand."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from palio.errors import PalioError
from palio.protocol.settings import ROUTINGS
from palio.sim.brokers.runs import BrokerSummary, judge, judge_all
from palio.sim.brokers.workload import FAULTS, BrokerSettings, draw
from palio.sim.brokers.world import run, traced

SEEDS = 3

SCRIPT = """
from palio.sim.brokers.runs import judge
from palio.sim.brokers.workload import FAULTS, BrokerSettings
for seed in range(3):
    print(judge(BrokerSettings(5, operations=60, faults=FAULTS), seed).fingerprint)
"""


@pytest.mark.parametrize("routing", ROUTINGS)
def test_all_checkers_are_content(routing: str) -> None:
    settings = BrokerSettings(6, operations=80, faults=FAULTS, routing=routing)
    summary = BrokerSummary()
    for seed in range(SEEDS):
        verdict = judge(settings, seed)
        assert verdict.kind is None, f"seed {seed}: {verdict.text}"
        summary.add(verdict)
    totals = summary.totals
    assert totals.deliveries > 50 * SEEDS
    assert totals.due > 50 * SEEDS  # the judge insists on many, faults or not
    assert totals.crashes


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_alone(fault: str) -> None:
    verdict = judge(BrokerSettings(4, operations=60, faults=(fault,)), 7)
    assert verdict.kind is None, verdict.text


def test_a_network_without_faults() -> None:
    verdict = judge(BrokerSettings(3, "ring", 60, routing="PSF"), 3)
    assert verdict.kind is None, verdict.text
    assert verdict.totals.crashes == 0


def test_one_broker_alone() -> None:
    verdict = judge(BrokerSettings(1, "tree", 60, FAULTS), 5)
    assert verdict.kind is None, verdict.text


@pytest.mark.slow
def test_the_same_seed_is_the_same_run_whatever_the_hashes_are() -> None:
    def fingerprints(hash_seed: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = fingerprints("0")
    assert len(set(first.split())) == 3
    assert fingerprints("271828") == first


def test_a_trace_tells_what_happened() -> None:
    settings = BrokerSettings(3, operations=30, faults=FAULTS)
    verdict, lines = traced(draw(settings, 2))
    assert verdict == run(draw(settings, 2)), "telling it changes nothing"
    assert any(" publish " in line for line in lines)
    assert [line.split()[1] for line in lines[-3:]] == ["heal", "quiet", "quiet"]


def test_processes_give_the_same_answers() -> None:
    settings = BrokerSettings(3, operations=10)
    alone = list(judge_all(settings, range(3), processes=1))
    assert list(judge_all(settings, range(3), processes=2)) == alone


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"brokers": 0}, "1 to 50 brokers"),
        ({"topology": "star"}, "no topology 'star'"),
        ({"routing": "flooding"}, "no routing 'flooding'"),
        ({"faults": ("fire",)}, "no fault 'fire'"),
        ({"operations": -1}, "operations, not -1"),
        ({"routing": "forwarding", "topology": "ring"}, "needs a tree"),
    ],
)
def test_bad_settings_are_refused_with_a_sentence(
    options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(PalioError, match=sentence):
        BrokerSettings(**options)  # type: ignore[arg-type]
