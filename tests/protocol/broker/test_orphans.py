"""Durable subscriptions of identities that are gone from the configuration."""

from __future__ import annotations

import msgspec

from palio.protocol.broker.effects import Notice
from palio.protocol.wire.control import Published
from tests.protocol.broker.operators import access, enter, office, queues, restart, subscribe
from tests.protocol.exchange import Exchange

HOUR_US = 3_600_000_000
STEP_US = HOUR_US // 4


class Logged:
    """Collects what a broker says for the log."""

    def __init__(self, exchange: Exchange) -> None:
        self.notices: list[Notice] = []
        self._exchange = exchange
        self.follow()

    def follow(self) -> None:
        core = self._exchange.brokers["a"]
        take = core.take

        def taken() -> object:
            effects = take()
            self.notices += effects.notices
            return effects

        core.take = taken  # type: ignore[method-assign, assignment]

    def events(self) -> list[tuple[str, object]]:
        found = [(one.event, one.fields.get("identity")) for one in self.notices]
        self.notices.clear()
        return found


def configure(exchange: Exchange, *names: str) -> None:
    """The identities of the configuration are these, for a restart too."""
    exchange.settings["a"] = msgspec.structs.replace(exchange.settings["a"], access=access(*names))
    exchange.brokers["a"].reload_access(access(*names), exchange.now_us)
    exchange.run()


GONE = "identity is gone: its durable subscriptions end"
BACK = "identity is back: its durable subscriptions stay"
ENDED = "durable subscription ended: its identity is gone"


def test_they_end_after_the_grace() -> None:
    exchange = office(orphans_us=2 * HOUR_US)
    logged = Logged(exchange)
    subscribe(enter(exchange, "ann"), "one")
    subscribe(enter(exchange, "ann", "other"), "two")
    subscribe(enter(exchange, "bob"), "kept")
    root = enter(exchange, "root")
    configure(exchange, "bob", "root")
    assert logged.notices[0].fields == {"identity": "ann", "subscriptions": 2, "end": "in 2.0 h"}
    assert logged.events() == [(GONE, "ann")]
    exchange.advance(2 * HOUR_US - STEP_US, STEP_US)
    assert len(queues(enter(exchange, "root", "r2"))) == 3
    exchange.advance(2 * STEP_US, STEP_US)
    assert logged.events() == [(ENDED, "ann"), (ENDED, "ann")]
    root = enter(exchange, "root", "r3")
    assert list(queues(root)) == ["bob/kept"]
    restart(exchange, root)
    assert list(queues(root)) == ["bob/kept"]


def test_publishers_that_waited_for_an_orphan_go_on() -> None:
    exchange = office(orphans_us=HOUR_US)
    ann, bob = enter(exchange, "ann"), enter(exchange, "bob")
    ann.acks = False
    subscribe(ann, "lazy", credit=1)
    numbers = [bob.publish({"x": x}) for x in range(1, 9)]
    exchange.run()
    configure(exchange, "bob")
    exchange.advance(2 * HOUR_US, STEP_US)
    restart(exchange, bob)
    assert max(one.number for one in bob.heard(Published)) == numbers[-1]  # type: ignore[attr-defined]


def test_the_grace_counts_across_restarts_and_begins_anew_when_the_identity_was_back() -> None:
    exchange = office(orphans_us=2 * HOUR_US)
    subscribe(enter(exchange, "ann"), "q")
    configure(exchange, "bob", "root")
    exchange.advance(HOUR_US, STEP_US)
    restart(exchange)
    logged = Logged(exchange)
    exchange.run()
    assert logged.events() == [(GONE, "ann")]
    configure(exchange, "ann", "bob", "root")
    assert logged.events() == [(BACK, "ann")]
    configure(exchange, "bob", "root")
    exchange.advance(HOUR_US + STEP_US, STEP_US)
    restart(exchange)
    root = enter(exchange, "root")
    assert list(queues(root)) == ["ann/q"], "the grace began anew"
    exchange.advance(HOUR_US, STEP_US)
    assert queues(enter(exchange, "root", "r2")) == {}


def test_a_grace_that_ends_while_the_broker_is_down() -> None:
    exchange = office(orphans_us=HOUR_US)
    subscribe(enter(exchange, "ann"), "q")
    configure(exchange, "root")
    restart(exchange)
    exchange.run()
    exchange.now_us += 2 * HOUR_US
    restart(exchange)
    exchange.advance(STEP_US, STEP_US)
    assert queues(enter(exchange, "root")) == {}


def test_without_a_grace_they_stay() -> None:
    exchange = office(orphans_us=None)
    logged = Logged(exchange)
    subscribe(enter(exchange, "ann"), "q")
    configure(exchange, "root")
    assert [one.fields["end"] for one in logged.notices] == ["never"]
    exchange.advance(1000 * HOUR_US, 100 * HOUR_US)
    assert list(queues(enter(exchange, "root"))) == ["ann/q"]
