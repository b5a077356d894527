"""Subscriptions with expressions: over brokers with every policy, live, durable, replayed, in groups, as
patterns, by grants, explained and quenched. Brute force says what each must get."""

from __future__ import annotations

import itertools

import pytest

from palio.model.language import parse
from palio.model.message import Message
from palio.protocol.broker.access import EVERYTHING, Access, Identity, token_hash
from palio.protocol.broker.quench import QUENCH_US
from palio.protocol.broker.settings import ROUTINGS, SubscriptionBounds
from palio.protocol.wire.codes import RefusalCode
from palio.protocol.wire.control import Explained, Occurred, Refused, Subscribed
from tests.protocol.exchange import Client, Exchange, network

LINE = [("a", "b"), ("b", "c")]
TEXTS = (
    "lower(x) = 'a'", "x < y", "NOT (x < y)", "array_contains(tags, 'x')", "x LIKE 'a%b_'",
    "abs(y - 45.3) < 0.1", "coalesce(y, 1) = 1", "x + y > 2 AND tags IS NULL", "exists(tags, t -> t = 'q')",
    "lower(x) IS NULL", "y = 1 OR upper(x) = 'AB'", "size(tags) >= 1",
)  # fmt: skip
MESSAGES: list[dict[str, object]] = [
    {
        name: value
        for name, value in zip(("x", "y", "tags"), values, strict=True)
        if value is not None
    }
    for values in itertools.product(
        (None, "A", "axxbc", 1), (None, 2, 45.35, "ab"), (None, ["q", "x", 3])
    )
]
ROUTES = [(routing, False) for routing in ROUTINGS] + [("forwarding", True)]


def expected(text: str) -> list[dict[str, object]]:
    predicate = parse(text)
    return [message for message in MESSAGES if predicate.matches(Message(message))]


def advertised(client: Client) -> None:
    client.session.requests.advertise(("x IS NOT NULL", "y IS NOT NULL", "tags IS NOT NULL"))


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize(("routing", "advertisements"), ROUTES)
def test_each_gets_what_its_expressions_select(
    routing: str, advertisements: bool, durable: bool
) -> None:
    exchange = network(LINE, routing=routing, advertisements=advertisements)
    bob = exchange.client("a", "bob")
    advertised(bob)
    exchange.run()
    wanted: list[tuple[Client, int, str]] = []
    for place in "abc":
        ann = exchange.client(place, f"ann-{place}")
        for i, text in enumerate(TEXTS):
            name = f"d{i}" if durable else ""
            wanted.append((ann, ann.session.subscriptions.subscribe(text, durable=name), text))
    exchange.run()
    for message in MESSAGES:
        bob.publish(message, durable=durable)
    exchange.run()
    exchange.advance(1_000_000)
    for client, id, text in wanted:
        assert client.got(id) == expected(text), (client.broker, text)


@pytest.mark.parametrize(
    "text", ["lower(x) = 'a'", "x LIKE 'a%b_'", "x < y", "array_contains(tags, 'x')"]
)
def test_replays_compute_expressions(text: str) -> None:
    exchange = network(LINE)
    bob, ann = exchange.client("a", "bob"), exchange.client("c", "ann")
    early = ann.session.subscriptions.subscribe("x IS NOT NULL", durable="all")
    exchange.run()
    for message in MESSAGES:
        bob.publish(message)
    exchange.run()
    late = ann.session.subscriptions.subscribe(text, durable="late", since=0)
    exchange.run()
    exchange.advance(2_000_000)
    assert ann.got(late) == expected(text)
    assert len(ann.got(early)) > len(ann.got(late)) > 0


def test_groups_and_hierarchies() -> None:
    exchange = network(LINE, {"b": "a", "c": "b"}, routing="forwarding")
    bob, ann = exchange.client("c", "bob"), exchange.client("a", "ann")
    members = [ann.session.subscriptions.subscribe("lower(x) = 'a'", group="g") for _ in range(2)]
    down = exchange.client("c", "cy").session.subscriptions.subscribe("x < y")
    exchange.run()
    for message in MESSAGES:
        bob.publish(message, durable=False)
    exchange.run()
    shared = [message for id in members for message in ann.got(id)]
    assert len(shared) == len(expected("lower(x) = 'a'"))
    cy = next(one for one in exchange.clients.values() if one.session.name == "cy")
    assert cy.got(down) == expected("x < y")


@pytest.mark.parametrize(("routing", "advertisements"), ROUTES)
def test_parts_of_patterns_have_expressions(routing: str, advertisements: bool) -> None:
    exchange = network(LINE, routing=routing, advertisements=advertisements)
    bob, ann = exchange.client("c", "bob"), exchange.client("a", "ann")
    advertised(bob)
    exchange.run()
    ann.session.subscriptions.subscribe(
        pattern="[lower(x) = 'a'] then [array_contains(tags, 'x') AND y * 2 > 4] same k"
    )
    exchange.run()
    for message in [
        {"x": "A", "k": 1}, {"x": "b", "k": 2}, {"tags": ["x"], "y": 3, "k": 2},
        {"tags": ["x"], "y": 2, "k": 1}, {"tags": ["q", "x"], "y": 3, "k": 1},
    ]:  # fmt: skip
        exchange.now_us += 10
        bob.publish(message, durable=False)
        exchange.run()
    found = [[item.number % 1000 for item in one.items] for one in ann.heard(Occurred)]  # type: ignore[attr-defined]
    assert found == [[1, 5]]


def granted(text: str) -> Access:
    return Access(
        {token_hash("t"): Identity("ann", parse(text), EVERYTHING)},
        anonymous=Identity("anybody", EVERYTHING, EVERYTHING, admin=True),
    )


def test_grants_cover_expressions() -> None:
    exchange = Exchange()
    exchange.add("a", access=granted("dept = 'x' OR lower(name) IN ('ann', 'bob')"))
    ann = exchange.client("a", "ann", "t")
    for text, is_allowed in [
        ("dept = 'x' AND lower(y) = 'z'", True), ("lower(name) = 'ann'", True), ("lower(y) = 'z'", False),
        ("lower(name) = 'eve'", False), ("LOWER(name) = 'bob' AND a < b", True), ("name = 'ann'", False),
    ]:  # fmt: skip
        id = ann.session.subscriptions.subscribe(text)
        exchange.run()
        answers = [one for one in ann.control_messages if getattr(one, "id", 0) == id]
        assert isinstance(answers[-1], Subscribed if is_allowed else Refused), text


def test_a_grant_to_publish_may_be_an_expression() -> None:
    access = Access(
        {token_hash("t"): Identity("bob", None, parse("lower(x) = 'a'"))},
        anonymous=Identity("anybody", EVERYTHING, EVERYTHING),
    )
    exchange = Exchange()
    exchange.add("a", access=access)
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob", "t")
    all_ = ann.session.subscriptions.subscribe("TRUE")
    exchange.run()
    for message in MESSAGES:
        bob.publish(message, durable=False)
    exchange.run()
    assert ann.got(all_) == expected("lower(x) = 'a'")


def test_explanations_show_what_expressions_are() -> None:
    exchange = Exchange()
    exchange.add("a")
    ann = exchange.client("a", "ann")
    ann.session.subscriptions.subscribe("lower(x) = 'a' AND price * qty > 100")
    exchange.run()
    ann.session.requests.explain('{"x": "A", "price": 30, "qty": 4}', "ann#1")
    exchange.run()
    (told,) = ann.heard(Explained)
    assert "lower(x) is 'a'" in str(told)
    assert "price * qty is 120" in str(told)


def test_quenching_tells_no_constants_of_expressions() -> None:
    exchange = Exchange()
    exchange.add("a", access=Access(
        {token_hash("p"): Identity("bob", None, EVERYTHING)},
        anonymous=Identity("anybody", EVERYTHING, EVERYTHING),
    ))  # fmt: skip
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob", "p")
    for text in [
        "name LIKE 'secret%x_'",
        "lower(who) = 'secret'",
        "abs(lat - 45.3) < 0.1",
        "x < y",
    ]:
        ann.session.subscriptions.subscribe(text)
    bob.session.quenching.switch(True)
    exchange.run()
    exchange.advance(2 * QUENCH_US)
    wanted = bob.session.quenching.wanted
    assert wanted is not None
    assert "secret" not in str(wanted)
    assert "45.3" not in str(wanted)
    for message, is_wanted in [
        ({"name": "secretary xy"}, True), ({"who": "SECRET"}, True), ({"lat": 45.35}, True),
        ({"x": 1, "y": 2}, True), ({"z": 1}, False),
    ]:  # fmt: skip
        assert bob.session.quenching.wants(Message(message)) is is_wanted, message


# ---- bounds


def refusal(exchange: Exchange, client: Client, **options: str) -> RefusalCode | None:
    before = len(client.heard(Refused))
    client.session.subscriptions.subscribe(**options)  # type: ignore[arg-type]
    exchange.run()
    refused = client.heard(Refused)[before:]
    return refused[0].code if refused else None  # type: ignore[attr-defined]


def test_calls_and_steps_are_bounded() -> None:
    exchange = Exchange()
    exchange.add("a", subscriptions=SubscriptionBounds(calls_max=20, steps_max=3000))
    ann = exchange.client("a", "ann")
    long = " + ".join(["x"] * 22)
    for text, code in [
        (f"{long} > 3", RefusalCode.TOO_LARGE), ("exists(a, t -> exists(a, u -> u = t))", RefusalCode.TOO_LARGE),
        ("s RLIKE '[ab]{900}c'", RefusalCode.TOO_LARGE), ("exists(a, t -> t > 1)", None),
        ("exists(a, t -> t > 2)", RefusalCode.LIMIT), ("lower(s) = 'x'", None), ("x < y", None),
    ]:  # fmt: skip
        assert refusal(exchange, ann, predicate=text) is code, text
    for i in range(100):  # one expression, whatever it is compared with
        assert refusal(exchange, ann, predicate=f"lower(s) = 'x{i}'") is None
    assert refusal(exchange, ann, predicate="exists(a, t -> t > 2)", durable="d") is None
    assert (
        refusal(exchange, ann, predicate="exists(a, t -> t > 3)", durable="e") is RefusalCode.LIMIT
    )
    ann.session.subscriptions.unsubscribe(4)
    exchange.run()
    assert refusal(exchange, ann, predicate="exists(a, t -> t > 4)") is None


def test_what_is_judged_message_by_message_has_a_lower_bound() -> None:
    exchange = Exchange()
    exchange.add("a")
    ann = exchange.client("a", "ann")
    costly = "exists(a, t -> t > 1)"
    assert refusal(exchange, ann, pattern=f"[{costly}] then [x = 1]") is RefusalCode.TOO_LARGE
    assert refusal(exchange, ann, pattern="[lower(s) = 'a'] then [x = 1]") is None
    before = len(ann.heard(Refused))
    ann.session.subscriptions.subscribe(costly, durable="d", since=0)
    exchange.run()
    assert ann.heard(Refused)[before:][0].code is RefusalCode.TOO_LARGE  # type: ignore[attr-defined]


# ---- lookups in another thread


@pytest.mark.parametrize("subscriptions", [3, 400])
def test_long_lookups_are_jobs_and_change_nothing(subscriptions: int) -> None:
    """Few filters are evaluated, many are compiled; what comes behind waits, in order."""
    exchange = Exchange(defers=True)
    broker = exchange.add("a", subscriptions=SubscriptionBounds(steps_max=1_000_000))
    ann, bob, cy = (exchange.client("a", name) for name in ("ann", "bob", "cy"))
    texts = ["exists(tags, t -> t = 'q')", "x = 'ab'", "lower(x) = 'a'"]
    ids = [ann.session.subscriptions.subscribe(text) for text in texts]
    for i in range(subscriptions):
        ann.session.subscriptions.subscribe(f"exists(tags, t -> t = {i}) AND z = 1")
    exchange.run()
    jobs = 0
    finish = broker.finished

    def counted(job: object, now_us: int) -> None:
        nonlocal jobs
        jobs += 1
        finish(job, now_us)  # type: ignore[arg-type]

    broker.finished = counted  # type: ignore[method-assign, assignment]
    large = {"tags": ["q"] + [0] * 5000, "x": "ab"}
    bob.publish(large, durable=False)
    bob.session.publisher.publish(b'{"tags": [1', b"", exchange.now_us, False)
    for message in MESSAGES:
        bob.publish(message, durable=False)
    cy.publish({"x": "A"}, durable=False)
    exchange.run()
    assert jobs > 0
    for id, text in zip(ids, texts, strict=True):
        own = [m for m in ann.got(id) if m != {"x": "A"}]
        first = [large] if id != ids[2] else []
        assert own == first + [m for m in expected(text) if m != {"x": "A"}], text
    assert broker.snapshot().live.rejected == 1


def test_a_subscription_may_go_while_its_messages_are_looked_up() -> None:
    exchange = Exchange(defers=True)
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    gone = ann.session.subscriptions.subscribe("exists(tags, t -> t = 'q')")
    stays = ann.session.subscriptions.subscribe("exists(tags, t -> t = 'r') OR x = 1")
    exchange.run()
    bob.publish({"tags": ["q"] + [0] * 5000, "x": 1}, durable=False)
    broker.receive(bob.link, b"".join(bob.session.take()), exchange.now_us)
    effects = broker.take()
    (job,) = effects.jobs
    job.run()
    ann.session.subscriptions.unsubscribe(gone)
    exchange.run()
    broker.finished(job, exchange.now_us)
    exchange.run()
    assert (len(ann.got(gone)), len(ann.got(stays))) == (0, 1)


def test_a_durable_subscription_that_is_made_meanwhile_misses_nothing() -> None:
    """Its replay finds what was stored before it, and the lookup what is stored after it."""
    exchange = Exchange(defers=True)
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    ann.session.subscriptions.subscribe("exists(tags, t -> t = 'q')")
    exchange.run()
    bob.publish({"tags": ["q"] + [0] * 5000, "x": 1})
    broker.receive(bob.link, b"".join(bob.session.take()), exchange.now_us)
    effects = broker.take()
    (job,) = effects.jobs
    job.run()
    made = ann.session.subscriptions.subscribe("x = 1", durable="d")
    exchange.run()
    broker.finished(job, exchange.now_us)
    exchange.run()
    assert len(ann.got(made)) == 1
