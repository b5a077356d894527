"""The judge by itself: whose subscription is over, and who must still get what."""

from __future__ import annotations

import msgspec
import pytest

from palio.protocol.client.session import Arrival
from palio.protocol.effects import Output
from palio.protocol.frames import Deliver, Letter
from palio.protocol.words import Ended, Subscribed, Word
from palio.sim.brokers.judging import Judge
from palio.sim.brokers.plans import ClientPlan, Operation, Plan, Sending, Verb, Want
from palio.sim.brokers.world import run, traced
from palio.sim.checkers import Violation

LIVE = Want("d", "x >= 0", group="g", credit=1, full="end")
DURABLE = Want("d", "x >= 0", durable=True, group="g", full="end")
PROBE = Sending('{"x": 1}', b"", durable=False)
STORED = Sending('{"x": 1}', b"", durable=True)


def pair(want: Want) -> Judge:
    """A group of two that everybody knows of."""
    judge = Judge(("end",))
    for client in ("ann", "bob"):
        judge.wanted(client, 1, want, "a", 10)
        judge.subscribed(client, want, "a", Subscribed(1, version=15), 20)
    return judge


def told(is_again: bool) -> Arrival:
    """What comes out of the queue of DURABLE."""
    header = Deliver((1,), 1, "eve", 1, 0, is_again)
    return Arrival(1, Letter(header, STORED.attributes.encode(), STORED.body))


def test_a_member_of_a_live_group_ends_alone() -> None:
    judge = pair(LIVE)
    judge.over("ann", 1, LIVE, 25)
    judge.begin_probing()
    judge.published("bob", 1, PROBE, 30)
    with pytest.raises(Violation, match="never got"):
        judge.check_lost()


def test_a_live_subscription_without_members_is_over() -> None:
    judge = pair(LIVE)
    judge.over("ann", 1, LIVE, 25)
    judge.over("bob", 1, LIVE, 25)
    assert not judge.desks


def test_a_queue_ends_for_all() -> None:
    judge = pair(DURABLE)
    judge.over("ann", 1, DURABLE, 25)
    assert not judge.desks


def test_who_hears_late_of_an_end_does_not_end_what_came_after_it() -> None:
    """Bob slept: what he finds when he wakes is of the one that Ann has forgotten."""
    judge = pair(DURABLE)
    judge.published("eve", 1, STORED, 21)
    judge.over("ann", 1, DURABLE, 25)
    judge.wanted("ann", 2, DURABLE, "a", 30)
    judge.subscribed("ann", DURABLE, "a", Subscribed(2, version=32), 35)
    judge.subscribed("bob", DURABLE, "a", Subscribed(1, version=15), 40)
    judge.arrived("bob", DURABLE, "a", told(is_again=False), 40)
    judge.over("bob", 1, DURABLE, 40)
    assert judge.desks["d"].members == {"ann": 2}
    assert not judge.desks["d"].receipts


def test_who_did_not_hear_of_an_end_joins_what_came_after_it() -> None:
    judge = pair(DURABLE)
    judge.over("ann", 1, DURABLE, 25)
    judge.wanted("ann", 2, DURABLE, "a", 30)
    judge.subscribed("bob", DURABLE, "a", Subscribed(1, version=32), 40)
    assert judge.desks["d"].members == {"ann": 2, "bob": 1}
    judge.over("bob", 1, DURABLE, 50)
    assert not judge.desks


def sleeping(want: Want, *names: str) -> Plan:
    """They all sleep with one message in their hands, and so many more come that the third that
    waits for one of them is too many."""
    operations = (
        *(Operation(0, Verb.SUBSCRIBE, name, want) for name in names),
        *(Operation(500_000, Verb.FREEZE, name) for name in names),
        *(Operation(600_000, Verb.PUBLISH, "eve", PROBE) for _ in range(3 * len(names) + 1)),
        *(Operation(700_000, Verb.THAW, name) for name in names),
    )
    clients = tuple(ClientPlan(name, "a", 1_000) for name in (*names, "eve"))
    return Plan(1, "PSF", ("a",), (), clients, waiting_max=2, operations=operations)


def test_a_slow_member_of_a_live_group_ends_and_the_other_goes_on() -> None:
    verdict, lines = traced(sleeping(LIVE, "ann", "bob"))
    assert sum("waited for this subscription" in line for line in lines) == 1, lines
    assert verdict.kind is None, verdict.text
    assert verdict.totals.due, "the other one must get what comes later"


def test_a_live_subscription_that_ends_without_a_word_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = sleeping(msgspec.structs.replace(LIVE, group=""), "ann")
    assert run(plan).kind is None
    say = Output.say

    def silent(self: Output, link: int, word: Word) -> None:
        if not isinstance(word, Ended):
            say(self, link, word)

    monkeypatch.setattr(Output, "say", silent)
    assert run(plan).kind == "lost"


@pytest.mark.parametrize(
    ("is_first_again", "is_second_again", "joined_us", "is_fine"),
    [
        (False, True, 0, True),
        (True, True, 0, True),
        (True, False, 0, True),  # it was on its way to a member that slept
        (True, False, 50, False),  # it was not: this connection began later
        (False, False, 0, False),
    ],
)
def test_of_two_members_that_get_a_message_only_who_was_sent_it_first_is_not_told(
    is_first_again: bool, is_second_again: bool, joined_us: int, is_fine: bool
) -> None:
    judge = pair(DURABLE)
    judge.published("eve", 1, STORED, 30)
    judge.arrived("ann", DURABLE, "a", told(is_first_again), 40)
    judge.joined("bob", joined_us)
    second = told(is_second_again)
    if is_fine:
        judge.arrived("bob", DURABLE, "a", second, 60)
    else:
        with pytest.raises(Violation, match="which ann had"):
            judge.arrived("bob", DURABLE, "a", second, 60)


def test_a_member_of_a_group_that_slept_finds_what_another_had_meanwhile() -> None:
    want = msgspec.structs.replace(DURABLE, full="")
    operations = (
        Operation(0, Verb.SUBSCRIBE, "ann", want),
        Operation(0, Verb.SUBSCRIBE, "bob", want),
        Operation(500_000, Verb.FREEZE, "ann"),
        *(Operation(600_000, Verb.PUBLISH, "eve", STORED) for _ in range(2)),
        Operation(9_000_000, Verb.THAW, "ann"),
    )
    clients = tuple(ClientPlan(name, "a", 1_000) for name in ("ann", "bob", "eve"))
    verdict = run(Plan(1, "PSF", ("a",), (), clients, operations=operations))
    assert verdict.kind is None, verdict.text
