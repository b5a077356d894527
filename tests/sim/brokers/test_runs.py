"""A few dozen seeds of whole brokers with all faults: no check fails. `make simulate` runs
thousands."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from palio.errors import PalioError
from palio.protocol.broker import (
    data_path,
    flooding,
    interests,
    local,
    neighbour_messages,
    network_view,
    remote_durable,
    scheduler,
    subscription_checks,
    subscriptions,
)
from palio.protocol.broker.settings import ROUTINGS
from palio.protocol.policies import drp, link_state
from palio.protocol.wire import batch, encode, frames, parts
from palio.routing import interest_buckets, interest_table
from palio.sim.brokers.drawing import FAULTS, BrokerSettings, draw
from palio.sim.brokers.runs import BROKERS, judge, judge_all
from palio.sim.brokers.simulation import BrokerTotals, run
from palio.sim.kernel.verdicts import RunSummary
from tests.seeds import seeds

SEEDS = 3
"""Of each routing; `make simulate` has hundreds."""

SCRIPT = """
from palio.sim.brokers.runs import judge
from palio.sim.brokers.drawing import FAULTS, BrokerSettings
for seed in range(3):
    print(judge(BrokerSettings(5, operations=60, faults=FAULTS), seed).fingerprint)
"""


@pytest.mark.parametrize(
    ("routing", "topology"), [*((routing, "any") for routing in ROUTINGS), ("any", "hierarchy")]
)
def test_no_check_fails(routing: str, topology: str) -> None:
    settings = BrokerSettings(6, topology, operations=80, faults=FAULTS, routing=routing)
    summary = RunSummary(BrokerTotals())
    for seed in range(SEEDS):
        verdict = judge(settings, seed)
        assert verdict.kind is None, f"seed {seed}: {verdict.text}"
        summary.add(verdict)
    totals = summary.totals
    assert totals.deliveries > 50 * SEEDS
    assert totals.due > 30 * SEEDS  # the check insists on many, faults or not
    assert totals.crashes


@seeds(1, 3)
@pytest.mark.parametrize("routing", ROUTINGS)
def test_brokers_with_tiny_budgets(
    routing: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All requests are jobs or go in slices, and all that brokers promise holds."""
    monkeypatch.setattr(scheduler, "TURN_UNITS", 1)
    monkeypatch.setattr(interests, "FILTERS_AT_ONCE", 1)
    monkeypatch.setattr(subscription_checks, "FILTERS_AT_ONCE", 1)
    monkeypatch.setattr(subscription_checks, "_SMALL_TEXT", 0)
    monkeypatch.setattr(subscriptions, "_REMOVED_AT_ONCE", 1)
    verdict = judge(BrokerSettings(5, operations=60, faults=FAULTS, routing=routing), seed)
    assert verdict.kind is None, verdict.text


@seeds(1, 3)
@pytest.mark.parametrize("routing", ROUTINGS)
def test_brokers_with_tiny_parts(routing: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All link states, packets and routes go in parts, and are applied in slices of one."""
    monkeypatch.setattr(parts, "PART_BYTES", 120)
    monkeypatch.setattr(flooding, "SMALL_TEXTS", 0)
    monkeypatch.setattr(link_state, "SMALL_RECORD", 0)
    monkeypatch.setattr(network_view, "FILTERS_AT_ONCE", 1)
    monkeypatch.setattr(neighbour_messages, "SMALL_PACKET", 20)
    monkeypatch.setattr(remote_durable, "AT_ONCE", 1)
    monkeypatch.setattr(remote_durable, "FILTERS_AT_ONCE", 1)
    monkeypatch.setattr(drp, "RECEIVERS_BYTES_MAX", 8)
    verdict = judge(BrokerSettings(5, operations=60, faults=FAULTS, routing=routing), seed)
    assert verdict.kind is None, verdict.text


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
    verdict, lines = BROKERS.traced(draw(settings, 2))
    assert verdict == run(draw(settings, 2)), "telling it changes nothing"
    assert any(" publish " in line for line in lines)
    texts = [line.partition(" ")[2] for line in lines]
    stages = ["all operations are done", "quiet", "probes", "quiet", "everybody leaves"]
    assert [text for text in texts if text in stages] == stages


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
    ],
)
def test_bad_settings_are_refused_with_a_sentence(
    options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(PalioError, match=sentence):
        BrokerSettings(**options)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_kernels_and_compiled_tables_for_every_message(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise they are for many messages and many subscriptions, which plans do not have."""
    for module in (batch, encode, local):
        monkeypatch.setattr(module, "KERNEL_MIN", 1)
    monkeypatch.setattr(frames, "KERNEL_BYTES_MIN", 1)
    monkeypatch.setattr(data_path, "JOINED_MAX", 3)
    monkeypatch.setattr(interest_table, "EVALUATIONS_MAX", 0)
    monkeypatch.setattr(interest_table, "BATCH_MIN", 1)
    monkeypatch.setattr(interest_buckets, "BUCKET_MAX", 1)
    verdict = judge(BrokerSettings(4, operations=60, faults=FAULTS), seed)
    assert verdict.kind is None, verdict.text
