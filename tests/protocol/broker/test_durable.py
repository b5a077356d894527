"""Durable subscriptions: what a client may ask of a full queue, and forgetting one by its name."""

from __future__ import annotations

import msgspec
import pytest

from palio.protocol.wire.codes import EndCode, Full, RefusalCode
from palio.protocol.wire.control import Done, Published, Subscribed, SubscriptionEnded
from palio.protocol.wire.queue_control import ForgetDurable
from tests.protocol.broker.operators import (
    ask,
    enter,
    office,
    queues,
    refusal,
    restart,
    subscribe,
)
from tests.protocol.exchange import Client, Exchange


@pytest.mark.parametrize("full", [Full.DROP, Full.END])
def test_the_policy_of_the_operator_is_a_ceiling(full: Full) -> None:
    ann = enter(office(full=full), "ann")
    code, reason = refusal(subscribe(ann, "greedy", full="block"))
    assert code is RefusalCode.DENIED
    assert f"[queues] full = '{full.value}'" in reason
    assert "subscribe without `full`, or with full = 'drop' or 'end'" in reason
    assert isinstance(subscribe(ann, "usual"), Subscribed)
    assert isinstance(subscribe(ann, "drops", full="drop"), Subscribed)
    assert isinstance(subscribe(ann, "ends", full="end"), Subscribed)
    found = queues(enter(ann.exchange, "root"))
    assert {name: row.full for name, row in found.items()} == {
        "ann/usual": full, "ann/drops": Full.DROP, "ann/ends": Full.END,
    }  # fmt: skip


def test_where_the_operator_allows_block_clients_may_ask_for_anything() -> None:
    ann = enter(office(), "ann")
    for full in Full:
        assert isinstance(subscribe(ann, full.value, full=full.value), Subscribed)


def stored(client: Client) -> int:
    return max((one.number for one in client.heard(Published)), default=0)


def change(exchange: Exchange, **options: object) -> None:
    exchange.settings["a"] = msgspec.structs.replace(exchange.settings["a"], **options)


def test_an_old_queue_that_blocks_is_bound_by_the_new_ceiling_after_a_restart() -> None:
    exchange = office()
    ann, bob = enter(exchange, "ann"), enter(exchange, "bob")
    ann.acks = False
    subscribe(ann, "lazy", full="block")
    exchange.disconnect(ann)
    first = [bob.publish({"x": x}) for x in range(1, 11)]
    exchange.run()
    assert stored(bob) == first[3], "the queue holds four, and the publisher waits"
    change(exchange, full=Full.DROP)
    restart(exchange, bob)
    assert stored(bob) == first[-1]
    root = enter(exchange, "root")
    row = queues(root)["ann/lazy"]
    assert (row.full, row.messages) == (Full.DROP, 4)
    # back to what it was made with
    change(exchange, full=Full.BLOCK)
    restart(exchange, root)
    assert queues(root)["ann/lazy"].full is Full.BLOCK


def test_another_full_for_a_subscription_that_exists_is_refused() -> None:
    exchange = office()
    ann = enter(exchange, "ann")
    assert isinstance(subscribe(ann, "desk", full="drop"), Subscribed)
    exchange.disconnect(ann)
    exchange.connect(ann, "a")
    other = enter(exchange, "ann", "other")
    code, reason = refusal(subscribe(other, "desk", full="end"))
    assert code is RefusalCode.CONFLICT
    assert "'desk' has full = 'drop', not 'end'" in reason
    assert "subscribe without `full`" in reason
    assert not ann.heard(SubscriptionEnded), "it was not taken over"
    assert isinstance(subscribe(other, "desk", full="drop"), Subscribed)
    assert isinstance(subscribe(other, "desk"), Subscribed)


def test_a_client_that_agrees_with_the_operator_keeps_what_it_asked_for() -> None:
    exchange = office()
    ann = enter(exchange, "ann")
    subscribe(ann, "desk", full="block")
    change(exchange, full=Full.DROP)
    restart(exchange)
    ann = enter(exchange, "ann")
    assert isinstance(subscribe(ann, "desk", full="drop"), Subscribed)
    change(exchange, full=Full.BLOCK)
    restart(exchange)
    assert isinstance(subscribe(enter(exchange, "ann"), "desk", full="drop"), Subscribed)


# ---- forgetting by name


def test_forgetting_by_name() -> None:
    exchange = office()
    ann, other = enter(exchange, "ann"), enter(exchange, "ann", "other")
    subscribe(ann, "desk")
    assert isinstance(ask(other, ForgetDurable, "desk"), Done)
    assert [one.code for one in ann.heard(SubscriptionEnded)] == [EndCode.FORGOTTEN]  # type: ignore[attr-defined]
    root = enter(exchange, "root")
    assert queues(root) == {}
    restart(exchange, root)
    assert queues(root) == {}


def test_forgetting_what_does_not_exist_is_refused() -> None:
    exchange = office()
    subscribe(enter(exchange, "bob"), "desk")
    ann = enter(exchange, "ann")
    for durable in ("nosuch", "desk", "bob/desk", ""):
        code, reason = refusal(ask(ann, ForgetDurable, durable))
        assert code is RefusalCode.UNKNOWN
        assert f"broker 'a' has no durable subscription 'ann/{durable}'" in reason
