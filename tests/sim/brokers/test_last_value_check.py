"""The check of last values, on runs of brokers: it holds, and it sees what it is to see."""

from __future__ import annotations

import pytest

from palio.sim.brokers.core_view import ArrivedMessage
from palio.sim.brokers.drawing import FAULTS, BrokerSettings, draw
from palio.sim.brokers.expected import DeliveredMessage, ExpectedDeliveries, PublishedMessage
from palio.sim.brokers.last_value_check import LastValueChecker, key_of_message
from palio.sim.brokers.plans import MessageSpec, SubscriptionSpec, parse_broker_plan
from palio.sim.brokers.simulation import run
from palio.sim.kernel.verdicts import Violation

PLAN = """
links a-b
clients ann@a bob@b cy@b

0.000 bob subscribe early last where x > 0
1000.000 ann publish durable retain=s {"x": 1, "s": "a"}
1000.500 bob publish durable retain=s {"x": 2, "s": "a"}
1001.000 ann publish durable retain=s {"x": 3, "s": "b"}
1500.000 crash a in-commit
2500.000 restart a
3000.000 ann publish durable retain=s forget {"x": 4, "s": "b"}
3000.500 ann publish durable retain=x,s expires=900000 {"x": 5, "s": "b"}
6000.000 cy subscribe late last where x > 0
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_with_last_values(seed: int) -> None:
    plan = parse_broker_plan(f"seed {seed}\n{PLAN}")
    assert parse_broker_plan(str(plan)) == plan
    trace: list[str] = []
    assert run(plan, trace=trace).kind is None
    assert len([line for line in trace if "cy gets" in line and "for late" in line]) >= 1


def test_drawn_plans_have_last_values() -> None:
    settings = BrokerSettings(3, operations=60, faults=FAULTS)
    arguments = [one.argument for seed in range(6) for one in draw(settings, seed).operations]
    assert any(isinstance(one, MessageSpec) and one.retain for one in arguments)
    assert any(isinstance(one, MessageSpec) and one.forget for one in arguments)
    assert any(isinstance(one, SubscriptionSpec) and one.last for one in arguments)


def published(number: int, attributes: str, **fields: object) -> PublishedMessage:
    """A last value of the key `s` that is known to be stored."""
    spec = MessageSpec(attributes, durable=True, retain="s", **fields)  # type: ignore[arg-type]
    made = PublishedMessage(f"eve#{number}", "eve", number, number, spec.stamped(number), False)
    made.acknowledged_us = number
    return made


def test_what_it_sees() -> None:
    one, two = published(1, '{"s": "a", "x": 1}'), published(2, '{"s": "a", "x": 2}')
    checker = LastValueChecker({("eve", one.number): one, ("eve", two.number): two}, drops=False)
    key = key_of_message(two)
    assert key is not None
    assert key == key_of_message(one)
    values = ExpectedDeliveries(SubscriptionSpec("v", "x > 1", last=True), "a", "bob", 0)
    values.members["bob"], values.subscribed_us = 1, 5
    arrival = ArrivedMessage(1, "eve", 2, 0, 1, b"", b"")
    got = DeliveredMessage("bob", arrival, two, 6)
    values.received["eve", 2] = [got]
    checker.check({"a": {key: ("eve", 2)}, "b": {key: ("eve", 2)}}, [values])
    for held in (
        {"a": {key: ("eve", 2)}, "b": {}},
        {"a": {key: ("eve", 2)}, "b": {key: ("eve", 1)}},
        {"a": {key: ("eve", 1)}, "b": {key: ("eve", 1)}},
        {"a": {}, "b": {}},
    ):
        with pytest.raises(Violation):
            checker.check(held, [values])
    values.received.clear()
    with pytest.raises(Violation, match="has not got"):
        checker.check({"a": {key: ("eve", 2)}}, [values])
    checker.arrived(values, got)
    with pytest.raises(Violation, match="after a newer value"):
        checker.arrived(values, DeliveredMessage("bob", arrival, one, 7))


def test_a_key_that_was_forgotten_or_expires_may_have_none() -> None:
    for fields in ({"forget": True}, {"expires_us": 5}):
        one, two = published(1, '{"s": "a"}'), published(2, '{"s": "a"}', **fields)
        LastValueChecker({("eve", 1): one, ("eve", 2): two}, False).check({"a": {}}, ())
