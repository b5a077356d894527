"""The check of deliveries by itself: whose subscription is over, and who must still get what."""

from __future__ import annotations

import msgspec
import pytest

from palio.protocol.broker.effects import Output
from palio.protocol.wire.control import ControlMessage, Subscribed, SubscriptionEnded
from palio.protocol.wire.message_headers import NO_HEADERS
from palio.sim.brokers.core_view import ArrivedMessage, publisher_of
from palio.sim.brokers.delivery_check import EndToEndChecker
from palio.sim.brokers.plans import BrokerPlan, MessageSpec, SubscriptionSpec, parse_broker_plan
from palio.sim.brokers.runs import BROKERS
from palio.sim.brokers.simulation import run
from palio.sim.kernel.verdicts import Violation

LIVE = SubscriptionSpec("d", "x >= 0", group="g", credit=1, full="end")
DURABLE = SubscriptionSpec("d", "x >= 0", durable=True, group="g", full="end")
PROBE = MessageSpec('{"x": 1}', b"", durable=False)
STORED = MessageSpec('{"x": 1}', b"", durable=True)


def pair(spec: SubscriptionSpec) -> EndToEndChecker:
    """A group of two that everybody knows of."""
    checker = EndToEndChecker(("end",))
    for client in ("ann", "bob"):
        checker.asked(client, 1, spec, "a", 10)
        checker.subscribed(client, spec, "a", Subscribed(1, version=15), 20)
    return checker


def queued(is_redelivered: bool) -> ArrivedMessage:
    """What comes out of the queue of DURABLE."""
    attributes = STORED.attributes.encode()
    return ArrivedMessage(
        1, "eve", 1, 1, 1 + is_redelivered, attributes, STORED.headers + STORED.body
    )


def test_a_member_of_a_live_group_ends_alone() -> None:
    checker = pair(LIVE)
    checker.over("ann", 1, LIVE, 25)
    checker.begin_probing()
    checker.published("bob", 1, PROBE, 30)
    with pytest.raises(Violation, match="never got"):
        checker.check_lost()


def test_a_live_subscription_without_members_is_over() -> None:
    checker = pair(LIVE)
    checker.over("ann", 1, LIVE, 25)
    checker.over("bob", 1, LIVE, 25)
    assert not checker.expected


def test_a_queue_ends_for_all() -> None:
    checker = pair(DURABLE)
    checker.over("ann", 1, DURABLE, 25)
    assert not checker.expected


def test_who_hears_late_of_an_end_does_not_end_what_came_after_it() -> None:
    """Bob slept: what he finds when he wakes is of the one that Ann has forgotten."""
    checker = pair(DURABLE)
    checker.published("eve", 1, STORED, 21)
    checker.over("ann", 1, DURABLE, 25)
    checker.asked("ann", 2, DURABLE, "a", 30)
    checker.subscribed("ann", DURABLE, "a", Subscribed(2, version=32), 35)
    checker.subscribed("bob", DURABLE, "a", Subscribed(1, version=15), 40)
    checker.arrived("bob", DURABLE, "a", queued(is_redelivered=False), 40)
    checker.over("bob", 1, DURABLE, 40)
    assert checker.expected["d"].members == {"ann": 2}
    assert not checker.expected["d"].received


def test_who_did_not_hear_of_an_end_joins_what_came_after_it() -> None:
    checker = pair(DURABLE)
    checker.over("ann", 1, DURABLE, 25)
    checker.asked("ann", 2, DURABLE, "a", 30)
    checker.subscribed("bob", DURABLE, "a", Subscribed(1, version=32), 40)
    assert checker.expected["d"].members == {"ann": 2, "bob": 1}
    checker.over("bob", 1, DURABLE, 50)
    assert not checker.expected


def frozen(spec: SubscriptionSpec, *names: str) -> BrokerPlan:
    """They all freeze with one message in their hands, and so many more come that the third that
    waits for one of them is too many."""
    lines = [
        "seed 1",
        "limits waiting_max=2",
        f"clients {' '.join(f'{name}@a' for name in (*names, 'eve'))}",
        *(f"0 {name} subscribe {spec}" for name in names),
        *(f"500 freeze {name}" for name in names),
        *(f"600 eve publish {PROBE}" for _ in range(3 * len(names) + 1)),
        *(f"700 thaw {name}" for name in names),
    ]
    return parse_broker_plan("\n".join(lines))


def test_a_slow_member_of_a_live_group_ends_and_the_other_goes_on() -> None:
    verdict, lines = BROKERS.traced(frozen(LIVE, "ann", "bob"))
    assert sum("waited for this subscription" in line for line in lines) == 1, lines
    assert verdict.kind is None, verdict.text
    assert verdict.totals.due, "the other one must get what comes later"


def test_a_live_subscription_that_ends_without_a_word_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = frozen(msgspec.structs.replace(LIVE, group=""), "ann")
    assert run(plan).kind is None
    say = Output.say

    def silent(self: Output, link: int, word: ControlMessage) -> None:
        if not isinstance(word, SubscriptionEnded):
            say(self, link, word)

    monkeypatch.setattr(Output, "say", silent)
    assert run(plan).kind == "lost"


@pytest.mark.parametrize(
    ("is_first_redelivered", "is_second_redelivered", "joined_us", "is_fine"),
    [
        (False, True, 0, True),
        (True, True, 0, True),
        (True, False, 0, True),  # it was on its way to a member that slept
        (True, False, 50, False),  # it was not: this connection began later
        (False, False, 0, False),
    ],
)
def test_of_two_members_that_get_a_message_only_who_was_sent_it_first_is_not_queued(
    is_first_redelivered: bool, is_second_redelivered: bool, joined_us: int, is_fine: bool
) -> None:
    checker = pair(DURABLE)
    checker.published("eve", 1, STORED, 30)
    checker.arrived("ann", DURABLE, "a", queued(is_first_redelivered), 40)
    checker.connected("bob", joined_us)
    second = queued(is_second_redelivered)
    if is_fine:
        checker.arrived("bob", DURABLE, "a", second, 60)
    else:
        with pytest.raises(Violation, match="which ann had"):
            checker.arrived("bob", DURABLE, "a", second, 60)


def test_a_member_of_a_group_that_slept_finds_what_another_had_meanwhile() -> None:
    spec = msgspec.structs.replace(DURABLE, full="")
    plan = parse_broker_plan(f"""
        seed 1
        clients ann@a bob@a eve@a
        0 ann subscribe {spec}
        0 bob subscribe {spec}
        500 freeze ann
        600 eve publish {STORED}
        600 eve publish {STORED}
        9000 thaw ann
    """)
    verdict = run(plan)
    assert verdict.kind is None, verdict.text


def test_a_message_does_not_go_to_a_later_subscription_of_its_publisher() -> None:
    later = SubscriptionSpec("l", "x >= 0")
    arrival = ArrivedMessage(1, publisher_of("ann"), 1, 0, 1, PROBE.attributes.encode(), NO_HEADERS)

    def checker(connected_us: int) -> EndToEndChecker:
        made = EndToEndChecker(())
        made.published(publisher_of("ann"), 1, PROBE, 10)
        made.asked("ann", 1, later, "a", 10)
        made.connected("ann", connected_us)
        return made

    with pytest.raises(Violation, match="came before it"):
        checker(5).arrived("ann", later, "a", arrival, 30)
    checker(20).arrived("ann", later, "a", arrival, 30)  # it may have come late, on the old one
