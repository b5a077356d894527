"""Large link states: brokers stay linked, what is applied is whole, and no turn takes all of it."""

from __future__ import annotations

from typing import Any

import pytest

from palio.protocol.broker import network_view, remote_durable
from palio.protocol.broker.broker import Broker
from palio.protocol.broker.effects import BackgroundJob
from palio.protocol.broker.stored_facts import StoredFacts
from palio.protocol.policies.state_parts import state_parts
from palio.protocol.wire import parts
from palio.protocol.wire.control import (
    ControlMessage,
    Digest,
    Durable,
    LinkState,
    LinkStates,
    Missing,
)
from palio.protocol.wire.frames import FrameReader, Limits, control_frame
from tests.protocol.exchange import Exchange, network

NOW = 1_000_000_000


def wanted(broker: Broker, name: str) -> set[str]:
    return {str(found) for found in broker.parts.view.database.wanted(name)}


class OneTurn:
    """A broker of an exchange that defers, turn by turn, and its neighbour, played by a test."""

    def __init__(self) -> None:
        self.exchange = Exchange(defers=True)
        self.exchange.add("a", ["b", "c"])
        self.exchange.add("b", ["a"])
        self.exchange.add("c", ["a"])
        self.exchange.join("a", "b")
        self.core = self.exchange.brokers["a"]
        self.link = next(one for one in self.core.parts.links if one.neighbour == "b")
        self.heard: list[ControlMessage] = []
        self._reader = FrameReader()
        self._jobs: list[BackgroundJob[Any]] = []

    def say(self, *messages: ControlMessage) -> None:
        self.core.receive(self.link.number, b"".join(map(control_frame, messages)), NOW)

    def turn(self, jobs: bool = True) -> bool:
        effects = self.core.take()
        data = b"".join(effects.writes.get(self.link.number, []))
        self.heard += self._reader.feed(data)  # type: ignore[arg-type]
        self._jobs += effects.jobs
        is_busy = bool(effects.has_more or self._jobs)
        while jobs and self._jobs:
            job = self._jobs.pop(0)
            job.run()
            self.core.finished(job, NOW)
        return is_busy

    def run(self) -> int:
        turns = 1
        while self.turn():
            turns += 1
        return turns


def state(number: int, count: int, durable: int = 0) -> LinkState:
    return LinkState(
        *("zoe", "e", number, 0, ()),
        wanted=tuple(f"x = {i}" for i in range(count)),
        durable={f"z/{i}": Durable(f"y = {i}", NOW, i + 1) for i in range(durable)},
    )


def in_parts(whole: LinkState) -> list[LinkStates]:
    return [LinkStates((part,)) for part in state_parts(whole)]


@pytest.mark.parametrize("routing", ["PSF", "DRP", "forwarding"])
def test_brokers_with_more_interests_than_a_frame_holds_stay_linked(
    routing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that one wants is larger than what the other takes at once, and reaches it nevertheless."""
    monkeypatch.setattr(parts, "PART_BYTES", 16 << 10)
    exchange = network([("a", "b")], routing=routing, limits=Limits(control=64 << 10))
    ann = exchange.client("b", "ann")
    lists = [", ".join(str(i * 10**6 + j) for j in range(2000)) for i in range(6)]
    for i, values in enumerate(lists):
        ann.session.subscriptions.subscribe(f"x IN ({values})", durable=f"d{i}")
    exchange.run()
    exchange.part("a", "b")
    exchange.crash("a")
    exchange.start("a")
    exchange.join("a", "b")
    assert exchange.brokers["a"].is_linked("b")
    bob = exchange.client("a", "bob")
    for i in range(6):
        bob.publish({"x": i * 10**6 + 7}, durable=True)
    exchange.run()
    exchange.advance(1_000_000)
    assert sorted(note["x"] for id in range(1, 7) for note in ann.got(id)) == [  # type: ignore[type-var]
        i * 10**6 + 7 for i in range(6)
    ]


def test_a_large_state_is_applied_in_many_turns() -> None:
    one = OneTurn()
    one.say(*in_parts(state(5, 3000, 300)))
    one.turn(jobs=False)
    assert not wanted(one.core, "zoe")
    turns = one.run()
    assert turns > 300 // remote_durable.AT_ONCE // 4
    assert turns > 3000 // network_view.FILTERS_AT_ONCE // 4
    assert len(wanted(one.core, "zoe")) == 3000
    assert len(one.core.parts.table) == 300  # zoe is not reachable: no entry has its filters
    assert len(one.core.parts.interests.remote.known) == 3000
    assert len(one.core.parts.messages.subscriptions()) == 300
    one.say(LinkStates((state(6, 2, 1),)))
    assert one.run() > 10
    assert len(one.core.parts.table) == 1
    assert len(one.core.parts.interests.remote.known) == 2
    assert len(one.core.parts.messages.subscriptions()) == 1


def test_other_links_are_served_meanwhile() -> None:
    one = OneTurn()
    client = one.exchange.client("a", "ann")
    one.say(*in_parts(state(5, 3000)))
    client.session.subscriptions.subscribe("x > 1")
    one.core.receive(client.link, b"".join(client.session.take()), NOW)
    one.turn(jobs=False)
    assert len(list(one.core.parts.subscriptions)) == 1
    assert not wanted(one.core, "zoe")


def test_a_link_that_dies_in_the_middle_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 2000)
    one = OneTurn()
    some = in_parts(state(5, 200))
    one.say(*some[:-1])
    one.run()
    assert not wanted(one.core, "zoe")
    one.exchange.part("a", "b")
    one.exchange.join("a", "b")
    one.link = next(x for x in one.core.parts.links if x.neighbour == "b")
    one.say(some[-1])  # of nothing: the complete state is requested
    one.run()
    assert not wanted(one.core, "zoe")
    assert Missing(("zoe",)) in one.heard
    one.say(*some)
    one.run()
    assert len(wanted(one.core, "zoe")) == 200


def test_a_newer_state_that_comes_while_an_older_one_is_applied() -> None:
    one = OneTurn()
    one.exchange.join("a", "c")
    other = next(x for x in one.core.parts.links if x.neighbour == "c")
    one.say(*in_parts(state(5, 1000)))
    for _ in range(30):
        effects = one.core.take()
        for job in effects.jobs:
            job.run()
        # the job that makes the record has run, and is not over, when the newer state arrives
        newer = LinkState("zoe", "e", 6, 0, (), wanted=("y = 1",))
        one.core.receive(other.number, control_frame(LinkStates((newer,))), NOW)
        for job in effects.jobs:
            one.core.finished(job, NOW)
    one.run()
    assert wanted(one.core, "zoe") == {"y = 1"}
    assert [str(f) for f in one.core.parts.view.database.wanted("zoe")] == ["y = 1"]
    assert len(one.core.parts.interests.remote.known) == 1


def test_a_state_with_an_invalid_predicate_ends_the_link_and_changes_nothing() -> None:
    one = OneTurn()
    broken = LinkState("zoe", "e", 5, 0, (), wanted=(*(f"x = {i}" for i in range(500)), "x >"))
    one.say(LinkStates((broken,)))
    one.run()
    assert not one.core.is_linked("b")
    assert not wanted(one.core, "zoe")


def test_a_neighbour_that_does_not_read_is_sent_no_more_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 2000)
    one = OneTurn()
    one.say(*in_parts(state(5, 500)))
    one.run()
    one.heard.clear()
    one.core.congest(one.link.number, True, NOW)
    one.say(Digest(()))
    one.run()
    assert not [x for x in one.heard if isinstance(x, LinkStates)]
    one.core.congest(one.link.number, False, NOW)
    assert one.turn()
    sent = [s for x in one.heard if isinstance(x, LinkStates) for s in x.states]
    assert sent[-1].more  # it goes on in the next turn
    change = LinkState("zoe", "e", 6, 5, (), wanted=("y = 1",))
    link = one.exchange
    link.join("a", "c")
    other = next(x for x in one.core.parts.links if x.neighbour == "c")
    one.core.receive(other.number, control_frame(LinkStates((change,))), NOW)
    one.run()
    sent = [
        s for x in one.heard if isinstance(x, LinkStates) for s in x.states if s.broker == "zoe"
    ]
    assert [s.part for s in sent[:-1]] == list(range(len(sent) - 1))
    assert sent[-1] == change  # after the last part of what it changes


def test_a_crash_between_two_slices_keeps_exactly_what_was_applied() -> None:
    exchange = network([("a", "b")])
    exchange.defers = True
    exchange.crash("a")
    core = exchange.start("a")
    exchange.join("a", "b")
    link = next(one for one in core.parts.links if one.neighbour == "b")
    core.receive(link.number, control_frame(LinkStates((state(5, 0, 400),))), exchange.now_us)
    while not core.parts.messages.subscriptions():
        exchange.round()
    applied = {one.name for one in core.parts.messages.subscriptions()}
    assert 0 < len(applied) < 400
    for _ in range(3):  # what is applied is committed, and a little more is
        ticket = exchange.commits.pop("a", None)
        if ticket is not None:
            exchange.stores["a"].end()
            core.committed(ticket, exchange.now_us)
        effects = core.take()
        if effects.commit is not None:
            exchange.stores["a"].begin()
            exchange.commits["a"] = effects.commit
    exchange.crash("a")
    core = exchange.start("a")
    stored = {one.name for one in core.parts.messages.subscriptions()}
    (known,) = StoredFacts(exchange.stores["a"]).states()
    assert set(known.durable) == stored
    assert len(core.parts.table) == len(stored)
    assert applied <= stored
    assert known.number == 1  # so that the complete state is requested
    exchange.join("a", "b")
    link = next(one for one in core.parts.links if one.neighbour == "b")
    core.receive(link.number, control_frame(LinkStates((state(5, 0, 400),))), exchange.now_us)
    exchange.run(2000)
    assert len(core.parts.messages.subscriptions()) == 400
    assert StoredFacts(exchange.stores["a"]).states()[0].number == 5


@pytest.mark.parametrize("number", [1 << 62, 10**18])
def test_a_false_state_of_a_broker_does_not_cut_it_off(number: int) -> None:
    """A neighbour sends it to the broker itself, and to others."""
    exchange = network([("a", "b"), ("b", "c")])
    ann = exchange.client("a", "ann")
    ann.session.subscriptions.subscribe("x > 1")
    exchange.run()
    false = LinkStates((LinkState("a", "zzz", number, 0, ()),))
    reports: list[str] = []
    for victim, liar in (("a", "b"), ("b", "c")):
        core = exchange.brokers[victim]
        link = next(one for one in core.parts.links if one.neighbour == liar)
        for _ in range(3):
            core.receive(link.number, control_frame(false), exchange.now_us)
        effects = core.take()
        reports += [str(notice.fields["reason"]) for notice in effects.notices]
        assert not effects.closes
    assert len(reports) == 2, "one line for each link"
    assert "a link state of the broker 'a' has the number" in reports[0]
    ann.session.subscriptions.subscribe("y > 1")
    exchange.run()
    assert not exchange.closed
    for other in ("b", "c"):
        assert wanted(exchange.brokers[other], "a") == {"x > 1", "y > 1"}
