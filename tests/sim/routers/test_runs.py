"""Some seeds of each kind with all faults: no check fails. `make simulate` runs thousands."""

from __future__ import annotations

import pytest

from palio.sim.routers.drawing import FAULTS, TOPOLOGIES, RouterSettings, draw
from palio.sim.routers.runs import RouterSummary, judge, judge_all
from palio.sim.routers.simulation import run

SEEDS = 5


@pytest.mark.parametrize("advertisements", [False, True], ids=["all", "advertised"])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_no_check_fails(routing: str, topology: str, advertisements: bool) -> None:
    settings = RouterSettings(
        routers=12,
        operations=80,
        topology=topology,
        faults=FAULTS,
        routing=routing,
        advertisements=advertisements,
    )
    summary = RouterSummary()
    for seed in range(SEEDS):
        outcome = judge(settings, seed)
        assert outcome.verdict.kind is None, f"seed {seed}: {outcome.verdict.text}"
        summary.add_outcome(outcome)
    totals = summary.totals
    assert totals.deliveries >= totals.due > SEEDS  # the check insists on many, faults or not
    assert totals.sessions > 2 * 11 * SEEDS  # routers did crash


def test_without_faults_everything_published_in_quiet_is_due() -> None:
    """Nothing excuses a loss then: what is due is what is delivered."""
    settings = RouterSettings(routers=6, operations=0, routing="plain")
    plan = draw(settings, 1)
    assert len(plan.operations) == 6  # settle and five probes
    for seed in range(20):
        verdict = run(draw(RouterSettings(routers=6, operations=30, routing="plain"), seed))
        assert verdict.kind is None
        assert 0 <= verdict.totals.deliveries - verdict.totals.due <= 10


def test_long_partitions_fill_an_outbox_and_are_survived() -> None:
    """A session that ends without a crash: the way of an outbox that overflowed."""
    settings = RouterSettings(routers=3, operations=400, faults=("partition",), routing="flooding")
    verdicts = [run(draw(settings, seed)) for seed in range(15)]
    assert [verdict.text for verdict in verdicts if verdict.kind] == []
    assert any(verdict.totals.sessions > 2 * 2 for verdict in verdicts)


def test_processes_give_the_same_answers() -> None:
    settings = RouterSettings(routers=5, operations=20, faults=FAULTS, routing="plain")
    alone = list(judge_all(settings, range(8), processes=1))
    assert list(judge_all(settings, range(8), processes=2)) == alone
    assert [outcome.verdict.seed for outcome in alone] == list(range(8))


def test_covering_saves_and_flooding_costs() -> None:
    covering, flooding = RouterSummary(), RouterSummary()
    for seed in range(5):
        covering.add_outcome(judge(RouterSettings(operations=60), seed, compare=True))
        flooding.add_outcome(judge(RouterSettings(operations=60, routing="flooding"), seed))
    assert covering.plain is not None
    # Filters with expressions cover less than others do: a share of those drawn has some.
    assert covering.totals.subscriptions < 0.75 * covering.plain.subscriptions
    assert flooding.totals.subscriptions == 0
    assert flooding.totals.messages > 2 * covering.totals.messages
