"""Lists of queues and subscriptions: what is in a row, and pages that are bounded."""

from __future__ import annotations

from palio.protocol.broker import queue_lists
from palio.protocol.durability.bounds import Bounds
from palio.protocol.wire.codes import Full, RefusalCode, SubscriptionKind
from palio.protocol.wire.queue_control import (
    EndQueue,
    ListQueues,
    ListSubscriptions,
    QueueRow,
    QueuesListed,
    SubscriptionsListed,
)
from tests.protocol.broker.operators import (
    ask,
    enter,
    office,
    queues,
    refusal,
    subscribe,
    subscriptions,
)


def test_a_row_of_a_queue() -> None:
    exchange = office(bounds=Bounds())
    ann, root = enter(exchange, "ann"), enter(exchange, "root")
    ann.acks = False
    subscribe(ann, "desk", group="team", credit=1, full="end")
    assert queues(root)["ann/desk:team"] == QueueRow(
        "ann/desk:team", "ann", "x > 0", 0, 0, 0, 1, Full.END, False, "team"
    )
    root.publish({"x": 1})
    exchange.run()
    exchange.advance(3_000_000)
    root.publish({"x": 2}, b"body")
    exchange.run()
    row = queues(root)["ann/desk:team"]
    assert row.messages == 2
    assert row.bytes >= len('{"x": 1}' * 2 + "body")
    assert 3_000_000 <= row.oldest_us < 4_000_000
    exchange.disconnect(ann)
    row = queues(root)["ann/desk:team"]
    assert (row.messages, row.consumers, row.group) == (2, 0, "team")


def test_one_queue_by_its_name() -> None:
    exchange = office()
    ann, root = enter(exchange, "ann"), enter(exchange, "root")
    subscribe(ann, "a/b")
    subscribe(ann, "c")
    page = ask(root, ListQueues, 0, "ann/a/b")
    assert isinstance(page, QueuesListed)
    assert [row.name for row in page.rows] == ["ann/a/b"]
    code, _ = refusal(ask(root, ListQueues, 0, "ann/b"))
    assert code is RefusalCode.UNKNOWN


def test_rows_of_subscriptions() -> None:
    exchange = office()
    ann, root = enter(exchange, "ann"), enter(exchange, "root")
    ann.acks = False
    own = ann.session.subscriptions
    live, shared = own.subscribe("x = 1", credit=7), own.subscribe("x = 2", group="team")
    pattern = own.subscribe(pattern="[x = 1] then [x = 2]", credit=3)
    durable = own.subscribe("x > 0", durable="desk", credit=1)
    exchange.run()
    root.publish({"x": 9})
    root.publish({"x": 9})
    exchange.run()
    rows = {row.id: row for row in subscriptions(root)}
    assert {(row.identity, row.client) for row in rows.values()} == {("ann", "ann-1")}
    found = {id: (row.kind, row.expression, row.waiting, row.credit) for id, row in rows.items()}
    assert found[live] == (SubscriptionKind.LIVE, "x = 1", 0, 7)
    assert found[shared] == (SubscriptionKind.SHARED, "x = 2", 0, 1000)
    assert rows[shared].group == "team"
    assert found[pattern] == (SubscriptionKind.PATTERN, "[x = 1] then [x = 2]", 0, 3)
    assert found[durable] == (SubscriptionKind.DURABLE, "x > 0", 2, 0)
    assert rows[durable].name == "ann/desk"
    exchange.brokers["a"].congest(ann.link, True, exchange.now_us)
    (first, *_) = subscriptions(root)
    assert (first.credit, first.is_congested) == (7, True)
    exchange.disconnect(ann)
    assert subscriptions(root) == []


def test_pages_have_all_rows_once_also_when_some_go_between_them() -> None:
    exchange = office()
    ann, root = enter(exchange, "ann"), enter(exchange, "root")
    count = 2 * queue_lists.ROWS_MAX + 10
    names = [f"q{n}" for n in range(count)]
    for name in names:
        ann.session.subscriptions.subscribe("x > 0", durable=name)
    exchange.run()
    assert sorted(queues(root)) == sorted(f"ann/{name}" for name in names)
    assert len(subscriptions(root)) == count
    first = ask(root, ListQueues, 0)
    assert isinstance(first, QueuesListed)
    assert len(first.rows) == queue_lists.ROWS_MAX
    for row in first.rows[-3:]:
        ask(root, EndQueue, row.name)
    second = ask(root, ListQueues, first.next)
    assert isinstance(second, QueuesListed)
    assert len(second.rows) == queue_lists.ROWS_MAX
    assert not {row.name for row in first.rows} & {row.name for row in second.rows}
    assert ask(root, ListQueues, 1 << 62) == QueuesListed(root_id(root), ())
    assert ask(root, ListSubscriptions, 1 << 62) == SubscriptionsListed(root_id(root), ())


def root_id(client: object) -> int:
    """The id of the last request of a client."""
    return max(one.id for one in client.control_messages if hasattr(one, "id"))  # type: ignore[attr-defined]


def test_long_predicates_are_cut_and_end_a_page() -> None:
    exchange = office()
    ann, root = enter(exchange, "ann"), enter(exchange, "root")
    long = " OR ".join(f"x = {n}" for n in range(1000))
    wide = f"s = '{'y' * 100_000}'"
    own = ann.session.subscriptions
    for number in range(6):
        own.subscribe(long if number % 2 else wide, durable=f"q{number}")
        own.subscribe(long if number % 2 else wide)
    exchange.run()
    for rows in (queues(root).values(), subscriptions(root)):
        for row in rows:
            text = row.predicate if isinstance(row, QueueRow) else row.expression
            assert len(text) <= queue_lists.TEXT_MAX
            assert text.endswith("...")
    page = ask(root, ListSubscriptions, 0)
    assert isinstance(page, SubscriptionsListed)
    assert page.next, "the page ended before all rows were in it"
