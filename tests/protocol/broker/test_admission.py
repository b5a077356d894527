"""What a message contains never ends a broker, also when its readers of attributes do not agree.

Kernels and Python read attributes. Here one of them is made to fail on a message; the broker refuses
it or matches it as Python reads it, counts and reports it, and processes the others.
"""

from __future__ import annotations

import pytest

from palio.errors import InvalidValue
from palio.matching.table import ForwardingTable
from palio.model.message import Message
from palio.protocol.broker import admission
from palio.protocol.broker.admission import UNREADABLE_MAX
from palio.protocol.broker.broker import Broker
from palio.protocol.wire.batch import MessageBatch
from palio.protocol.wire.codes import CloseCode
from palio.protocol.wire.control import Occurred, Rejected
from palio.routing import interest_table
from tests.protocol.exchange import Client, Exchange, network

PATTERN = "[x = 7] THEN [x = 8] WITHIN 1 minute"


@pytest.fixture(params=["evaluated", "compiled"])
def tables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables, which Python evaluates, or such as brokers with many subscriptions have."""
    if request.param == "compiled":
        monkeypatch.setattr(interest_table, "EVALUATED_MAX", 0)


def python_refuses(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    """Kernels read it, Python does not."""
    read = Message.from_json

    def from_json(text: str | bytes) -> Message:
        if word.encode() in (text if isinstance(text, bytes) else text.encode()):
            raise InvalidValue(f"{word} is not for Python")
        return read(text)

    monkeypatch.setattr(Message, "from_json", from_json)


def bugs_of(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the host of the broker is told to log."""
    found: list[str] = []
    take = broker.take

    def taking() -> object:
        effects = take()
        found.extend(effects.bugs)
        return effects

    monkeypatch.setattr(broker, "take", taking)
    return found


def publish_all(client: Client, durable: bool) -> list[int]:
    """Messages of which one in five has `s = 'odd'`; gives the others, which all readers read."""
    for x in range(20):
        client.publish({"x": x % 10, "s": "odd" if x % 5 == 2 else "even"}, b"", durable)
    return [x % 10 for x in range(20) if x % 5 != 2]


def got(client: Client, id: int) -> list[object]:
    return [message["x"] for message in client.got(id)]


@pytest.mark.parametrize("durable", [False, True])
def test_a_message_of_a_pattern_that_python_refuses_is_rejected(
    monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    monkeypatch.setattr(interest_table, "EVALUATED_MAX", 0)
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    live = ann.session.subscriptions.subscribe("x >= 0")
    queue = ann.session.subscriptions.subscribe("x >= 0", durable="q")
    ann.session.subscriptions.subscribe(pattern="[x = 7 OR s = 'odd'] THEN [x = 8] WITHIN 1 minute")
    exchange.run()
    bugs = bugs_of(broker, monkeypatch)
    python_refuses(monkeypatch, "odd")
    readable = publish_all(bob, durable)
    exchange.run()
    assert got(ann, live) == readable
    assert got(ann, queue) == readable
    counters = broker.snapshot().live
    assert (counters.rejected, counters.misread) == (4, 4)
    assert len(bob.heard(Rejected)) == 4
    assert bugs
    assert "odd is not for Python" in bugs[0]


def test_of_a_large_batch_what_python_refuses_is_kept_from_patterns_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parsing thousands of messages at once would take long."""
    monkeypatch.setattr(interest_table, "EVALUATED_MAX", 0)
    monkeypatch.setattr(admission, "CONFIRMED_MAX", 0)
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    live = ann.session.subscriptions.subscribe("x >= 0")
    ann.session.subscriptions.subscribe(pattern="[x = 7 OR s = 'odd'] THEN [x = 8] WITHIN 1 minute")
    exchange.run()
    bugs = bugs_of(broker, monkeypatch)
    python_refuses(monkeypatch, "odd")
    readable = publish_all(bob, durable=False)
    exchange.run()
    assert len(got(ann, live)) == len(readable) + 4
    assert ann.heard(Occurred) == []  # each 7 is odd
    counters = broker.snapshot().live
    assert (counters.rejected, counters.misread) == (0, 4)
    assert "odd is not for Python" in bugs[0]


@pytest.mark.parametrize("error", [InvalidValue("it is bad"), ValueError("it"), OverflowError()])
@pytest.mark.parametrize("durable", [False, True])
def test_what_kernels_cannot_read_is_as_python_reads_it(
    monkeypatch: pytest.MonkeyPatch, durable: bool, error: Exception
) -> None:
    monkeypatch.setattr(interest_table, "EVALUATED_MAX", 0)
    exchange = network([("a", "b")])
    ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
    live = ann.session.subscriptions.subscribe("x >= 0")
    ann.session.subscriptions.subscribe(pattern=PATTERN)
    exchange.run()
    bugs = bugs_of(exchange.brokers["a"], monkeypatch)

    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(ForwardingTable, "match_json", failing)
    for x in range(20):
        bob.publish({"x": x % 10}, b"", durable)
    exchange.run()
    assert got(ann, live) == [x % 10 for x in range(20)]
    for broker in exchange.brokers.values():
        counters = broker.snapshot().live
        assert counters.rejected == counters.dropped == 0
        assert counters.misread > 0
    assert type(error).__name__ in bugs[0]


@pytest.mark.parametrize("durable", [False, True])
def test_a_message_that_cannot_be_looked_up_is_refused(
    monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    """By the table of a broker that gets it from a neighbour: it is dropped there."""
    exchange = network([("a", "b")])
    ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
    live = ann.session.subscriptions.subscribe("x >= 0")
    exchange.run()
    table = exchange.brokers["a"].parts.table
    look = table._slots_of_message

    def failing(message: Message) -> list[int]:
        if message["s"] == "odd":
            raise ArithmeticError("odd is not for the table")
        return look(message)

    monkeypatch.setattr(table, "_slots_of_message", failing)
    readable = publish_all(bob, durable)
    exchange.run()
    assert got(ann, live) == readable
    counters = exchange.brokers["a"].snapshot().live
    assert counters.dropped == 4
    assert counters.misread > 0


@pytest.mark.usefixtures("tables")
def test_no_depth_is_too_deep_in_some_places_only() -> None:
    """Python's stack has room for some 950 levels, and for fewer where more functions are called."""
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    live = ann.session.subscriptions.subscribe("x >= 0")
    exchange.run()
    depths = [64, 65, 300, *range(880, 1000)]
    for depth in depths:
        deep = b'{"a": ' * depth + b"1" + b"}" * depth
        for text in [b'{"x": 1e}', b'{"x": 1}', deep] * 5:
            bob.session.publisher.publish(text, b"", exchange.now_us, False)
        exchange.run()
    assert got(ann, live) == [1] * (5 * len(depths))
    counters = broker.snapshot().live
    assert counters.rejected == 5 * (2 * len(depths) - 1)
    assert counters.misread == 0


def test_a_replay_skips_what_cannot_be_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a message that an older version has stored."""
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    readable = publish_all(bob, True)
    exchange.run()
    python_refuses(monkeypatch, "odd")
    queue = ann.session.subscriptions.subscribe("x >= 0", durable="q", since=0)
    exchange.run()
    assert got(ann, queue) == readable
    assert broker.snapshot().durable.unreadable == 4


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that Python reads from now on."""
    read, rows = MessageBatch.message, []

    def message(batch: MessageBatch, row: int) -> Message:
        rows.append(row)
        return read(batch, row)

    monkeypatch.setattr(MessageBatch, "message", message)
    return rows


def sent(client: Client, texts: list[bytes], durable: bool) -> None:
    for text in texts:
        client.session.publisher.publish(text, b"", 0, durable)


@pytest.mark.parametrize("durable", [False, True])
def test_python_reads_only_what_kernels_do_not(
    monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    monkeypatch.setattr(interest_table, "EVALUATED_MAX", 0)
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    live = ann.session.subscriptions.subscribe("x >= 0")
    ann.session.subscriptions.subscribe(pattern=PATTERN)
    exchange.run()
    texts = [b'{"x": %d}' % x for x in range(100, 300)]
    texts[50] = texts[120] = b"{"
    reads = counted_reads(monkeypatch)
    sent(bob, texts, durable)
    exchange.run()
    assert len(reads) <= 5
    assert got(ann, live) == [x for x in range(100, 300) if x not in (150, 220)]
    counters = broker.snapshot().live
    assert (counters.rejected, counters.misread) == (2, 0)
    assert [one.number % 1000 for one in bob.heard(Rejected)] == [51, 121]  # type: ignore[attr-defined]


def test_what_only_python_reads_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the bound of unreadable ones, beside a message that is unreadable."""
    monkeypatch.setattr(interest_table, "EVALUATED_MAX", 0)
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    live = ann.session.subscriptions.subscribe("x >= 0")
    exchange.run()
    deep = b'{"x": 1, "a": ' + b'{"a": ' * 60 + b"1" + b"}" * 60 + b"}"
    sent(bob, [deep] * 150 + [b"{"] + [b'{"x": 2}'], False)
    exchange.run()
    assert got(ann, live) == [1] * 150 + [2]
    assert broker.snapshot().live.rejected == 1


@pytest.mark.parametrize("durable", [False, True])
def test_a_publisher_of_very_many_unreadable_messages_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    """Others whose messages came in the same turn do not notice, and nothing before is lost."""
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob, eve = (exchange.client("a", name) for name in ("ann", "bob", "eve"))
    live = ann.session.subscriptions.subscribe("x >= 0")
    exchange.run()
    reads = counted_reads(monkeypatch)
    sent(eve, [b'{"x": 1}'] + [b"{"] * 4000 + [b'{"x": 2}'], durable)
    sent(bob, [b'{"x": 3}'] * 50, durable)
    exchange.run()
    assert len(reads) <= 3 * UNREADABLE_MAX
    assert sorted(got(ann, live)) == [1] + [3] * 50  # type: ignore[type-var]
    assert broker.snapshot().live.rejected == UNREADABLE_MAX
    assert len(eve.heard(Rejected)) == UNREADABLE_MAX
    ((_, close),) = exchange.closed
    assert close.code is CloseCode.PROTOCOL
    assert "100 messages at once whose attributes cannot be read" in close.reason
    assert not bob.heard(Rejected)
