"""Patterns in the simulator: what clients get is true and is all there is; delegation saves."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from palio.errors import PalioError
from palio.routing import Event, Received, Router, Send
from palio.routing.patterns import Assembled, Compound, Unwatch
from palio.routing.patterns.available import AvailablePattern, PatternUse
from palio.routing.patterns.packets import Sieved
from palio.routing.patterns.watching import PatternSettings
from palio.sim.kernel.shrinking import shrunk
from palio.sim.kernel.verdicts import RunVerdict
from palio.sim.routers import kinds
from palio.sim.routers.drawing import FAULTS, TOPOLOGIES, RouterSettings, draw
from palio.sim.routers.plans import RouterPlan, RouterVerb, parse_router_plan
from palio.sim.routers.runs import ROUTERS, RouterSummary, judge
from palio.sim.routers.simulation import RouterTotals, run

SMALL = RouterSettings(routers=8, operations=80, patterns=True)
SEEDS = 6
"""Of each topology; `make simulate` has hundreds."""
SCENARIOS = Path(__file__).parent / "scenarios"


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_without_faults_watches_get_all_there_is(topology: str) -> None:
    """Delegated or not: the same compounds are due, and come; delegated, fewer messages go."""
    summary, settings = RouterSummary(), replace(SMALL, topology=topology)
    at_home = RouterTotals()
    for seed in range(SEEDS):
        outcome = judge(settings, seed, compare=True)
        assert outcome.verdict.kind is None, f"seed {seed}: {outcome.verdict.text}"
        summary.add_outcome(outcome)
        other = run(draw(replace(settings, delegation=False), seed))
        assert other.kind is None, f"seed {seed}: {other.text}"
        assert other.totals == outcome.undelegated
        assert other.totals.compounds_due == outcome.verdict.totals.compounds_due
        at_home.add(other.totals)
    totals = summary.totals
    assert totals.compounds_due > 8 * SEEDS
    assert totals.compounds_due > 0.7 * totals.compounds
    assert summary.row()["saved_by_delegation"] == at_home.messages - totals.messages
    if topology == "hierarchy":  # below a master nothing is delegated
        assert (totals.watches, totals.messages) == (0, at_home.messages)
    else:
        assert totals.watches > 0 == at_home.watches
        assert totals.messages < at_home.messages


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_with_all_faults_what_watches_get_is_true(topology: str) -> None:
    summary = RouterSummary()
    for seed in range(SEEDS):
        outcome = judge(replace(SMALL, topology=topology, faults=FAULTS), seed)
        assert outcome.verdict.kind is None, f"seed {seed}: {outcome.verdict.text}"
        summary.add_outcome(outcome)
    assert summary.totals.compounds > 2 * SEEDS


def test_links_that_lose_and_reorder_make_some_messages_late_but_nothing_untrue() -> None:
    summary = RouterSummary()
    for seed in range(2 * SEEDS):
        outcome = judge(replace(SMALL, faults=("loss", "reorder", "duplicate")), seed)
        assert outcome.verdict.kind is None, f"seed {seed}: {outcome.verdict.text}"
        summary.add_outcome(outcome)
    assert 0 < summary.totals.compounds_due < summary.totals.compounds


def test_what_is_late_is_not_due() -> None:
    """With lateness for one link only, most watches meet a message that is too late."""
    patient, hasty = RouterTotals(), RouterTotals()
    for seed in range(8):
        plan = draw(SMALL, seed)
        patient.add(run(plan).totals)
        verdict = run(replace(plan, patterns=PatternSettings(lateness=2_000, hop=1_000)))
        assert verdict.kind is None, verdict.text
        hasty.add(verdict.totals)
    assert hasty.compounds_due < 0.5 * patient.compounds_due


def test_sieves_and_assemblers_are_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    step = Router.step

    def noting(self: Router, event: Event) -> list[Send]:
        if isinstance(event, Received) and isinstance(event.packet, Assembled | Sieved):
            seen.update(d.task for one in self.watches for d in one.plan.delegations)
        return step(self, event)

    monkeypatch.setattr(Router, "step", noting)
    for seed in range(3 * SEEDS):
        run(draw(SMALL, seed))
    assert seen == {"assemble", "sieve"}


# ---- broken routers


class Mutant(Router):
    def step(self, event: Event) -> list[Send]:
        return [
            other
            for send in super().step(event)
            for other in (
                self.changed(send, send.packet) if isinstance(send.packet, Assembled) else [send]
            )
        ]

    def changed(self, send: Send, packet: Assembled) -> list[Send]:
        return [send]


class DropsSomeCompounds(Mutant):
    def changed(self, send: Send, packet: Assembled) -> list[Send]:
        return [] if packet.compound.messages[-1].message["t"] == "c" else [send]


class DoublesCompounds(Mutant):
    def changed(self, send: Send, packet: Assembled) -> list[Send]:
        return [send, send]


class CutsCompounds(Mutant):
    def changed(self, send: Send, packet: Assembled) -> list[Send]:
        shorter = Compound(packet.compound.messages[1:], packet.compound.key)
        return [Send(send.peer, Assembled(packet.id, shorter))] if shorter.messages else [send]


class ForgetsUnwatch(Mutant):
    def step(self, event: Event) -> list[Send]:
        if isinstance(event, Received) and isinstance(event.packet, Unwatch):
            return []
        return super().step(event)


class DelegatesOnce(Mutant):
    """Neighbours that were down are not told what they watch."""

    def step(self, event: Event) -> list[Send]:
        return [
            Send(send.peer, replace(send.packet, watches=()))
            if hasattr(send.packet, "watches")
            else send
            for send in super().step(event)
        ]


class KeepsDelegations(Mutant):
    """A delegation that nobody uses any more stays in the table and at the neighbour."""

    def __init__(self, name: str, **settings: object) -> None:
        super().__init__(name, **settings)  # type: ignore[arg-type]
        self.watches.available.release = lambda user: None  # type: ignore[method-assign]


class EndsForAll(Mutant):
    """The first watch that ends takes the delegation from all who use it."""

    def __init__(self, name: str, **settings: object) -> None:
        super().__init__(name, **settings)  # type: ignore[arg-type]
        release = AvailablePattern.remove

        def remove(entry: AvailablePattern[object], use: PatternUse[object]) -> None:
            for other in entry.uses:
                release(entry, other)

        self._remove = remove

    def step(self, event: Event) -> list[Send]:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(AvailablePattern, "remove", self._remove)
            return super().step(event)


class SharesThePast(Mutant):
    """A watch takes what began before it from a delegation that was there."""

    def step(self, event: Event) -> list[Send]:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(PatternUse, "wants", lambda use, start, end: True)
            return super().step(event)


MUTANTS: list[tuple[type[Mutant], set[str], tuple[str, ...]]] = [
    (DropsSomeCompounds, {"missed"}, ()),
    (DoublesCompounds, {"twice"}, ()),
    (CutsCompounds, {"untrue"}, ()),
    (ForgetsUnwatch, {"uninterested", "state"}, ()),
    (DelegatesOnce, {"state"}, ("crash",)),
    (KeepsDelegations, {"state", "broken"}, ()),
    (EndsForAll, {"state", "missed", "broken"}, ()),
    (SharesThePast, {"missed", "untrue"}, ()),
]


@pytest.mark.parametrize(("mutant", "verdicts", "faults"), MUTANTS)
def test_broken_routers_are_caught(
    mutant: type[Mutant], verdicts: set[str], faults: tuple[str, ...]
) -> None:
    verdict, _ = _caught(mutant, faults)
    assert verdict.kind in verdicts, verdict.text


@pytest.mark.parametrize(
    ("mutant", "faults"),
    [
        pytest.param(mutant, faults, marks=[pytest.mark.slow] if n else [])
        for n, (mutant, _, faults) in enumerate(MUTANTS)
    ],
)
def test_failures_become_short(mutant: type[Mutant], faults: tuple[str, ...]) -> None:
    _, plan = _caught(mutant, faults)
    short = shrunk(ROUTERS, plan, lambda tried: _run(mutant, tried))
    assert len(short.operations) <= 12, str(short)
    assert parse_router_plan(str(short)) == short


def _caught(
    mutant: type[Mutant], faults: tuple[str, ...]
) -> tuple[RunVerdict[RouterTotals], RouterPlan]:
    """The first seed that fails a check."""
    for seed in range(60):
        plan = draw(replace(SMALL, faults=faults), seed)
        verdict = _run(mutant, plan)
        if verdict.kind is not None:
            return verdict, plan
    raise AssertionError("not caught")


def _run(mutant: type[Mutant], plan: RouterPlan) -> RunVerdict[RouterTotals]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kinds, "Router", mutant)
        return run(plan)


# ---- plans


def test_plans_are_read_as_they_are_written() -> None:
    for seed in range(5):
        plan = draw(replace(SMALL, delegation=seed % 2 == 0, faults=FAULTS), seed)
        read_back = parse_router_plan(str(plan))
        assert str(read_back) == str(plan)
        assert {o.verb for o in plan.operations} >= {RouterVerb.WATCH, RouterVerb.UNWATCH}
        assert (read_back.patterns, read_back.operations) == (plan.patterns, plan.operations)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0.0 a watch [x > 1] then [x > 2]", "a number and a pattern"),
        ("0.0 a watch 1 [x > 1] then", "line 2"),
        ("0.0 a watch 1 [x > 1]\n0.0 a watch 1 [x > 2]", "number of a watch once"),
        ("routing plain\n0.0 a watch 1 [x > 1]", "only routing covering"),
        ("patterns luck=1", "no 'luck' in the patterns; there are delegates, lateness, hop"),
        ("patterns hop=-1", "0 or more microseconds"),
    ],
)
def test_bad_scenarios_get_a_sentence(text: str, says: str) -> None:
    with pytest.raises(PalioError, match=says):
        parse_router_plan("clients a@1\n" + text)


def test_bad_settings_get_a_sentence() -> None:
    with pytest.raises(PalioError, match="only routing covering knows patterns"):
        RouterSettings(patterns=True, routing="plain")


def test_the_scenario_delegated_and_at_home() -> None:
    """The same compound, and two packets over links beside it in place of eighteen."""

    def lines(name: str) -> list[str]:
        text = (SCENARIOS / name).read_text("utf-8").partition("\n----\n")[2]
        return [line.partition(" ")[2] for line in text.splitlines()]

    def crossed(trace: list[str]) -> int:
        return sum(" -> " in line and "#" in line for line in trace)

    delegated, at_home = lines("patterns.txt"), lines("patterns_at_home.txt")
    gets = "w gets assembled 1 ab#3 ab#4 c#1"
    assert [line for line in delegated if " gets " in line] == [gets]
    assert [line for line in at_home if " gets " in line] == [gets]
    assert (crossed(delegated), crossed(at_home)) == (3, 19)
