"""The interest table: whatever was said and taken back, it answers as each filter by itself."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import palio
from palio import Filter, Message
from palio.matching.versions import updates
from palio.routing import (
    Joined,
    Received,
    Role,
    Router,
    Subscribe,
    Unsubscribe,
    interest_buckets,
    interest_table,
)
from palio.routing.interest_table import InterestTable
from tests.routing.network import check_destinations
from tests.routing.test_router_machine import FILTERS, MESSAGES


class Texts:
    """Messages as the table takes them."""

    def __init__(self, texts: list[bytes]) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def message(self, row: int) -> Message:
        return Message.from_json(self._texts[row])

    def attributes(self, row: int) -> bytes:
        return self._texts[row]

    def column(self) -> pa.Array:
        return pa.array([text.decode() for text in self._texts])


PEERS = st.sampled_from(["ann", "bob", "cy", "router 2"])


@pytest.fixture(params=[(256, 256, 50_000), (0, 2, 0), (4, 2, 10)], ids=str)
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are, always compiled, and back and forth between both ways."""
    evaluated, bucket, evaluations = request.param
    monkeypatch.setattr(interest_table, "EVALUATED_MAX", evaluated)
    monkeypatch.setattr(interest_buckets, "BUCKET_MAX", bucket)
    monkeypatch.setattr(interest_table, "EVALUATIONS_MAX", evaluations)
    monkeypatch.setattr(interest_table, "BATCH_MIN", 2)


@pytest.mark.usefixtures("limits")
def test_it_answers_as_the_filters() -> None:
    @settings(max_examples=10, deadline=None)
    @given(st.lists(st.tuples(PEERS, FILTERS, MESSAGES | st.none()), max_size=12), st.data())
    def check(steps: list[tuple[str, Filter, Message | None]], data: st.DataObject) -> None:
        table, known = InterestTable(), dict[str, dict[Filter, None]]()
        for peer, filter, message in steps:
            own = known.setdefault(peer, {})
            gone = data.draw(st.sampled_from(sorted(own, key=str))) if own and message else None
            news = {filter: True} if filter not in own else {}
            own.update(dict.fromkeys(news))
            if gone is not None and gone not in news:
                news[gone] = False
                del own[gone]
            table.change(peer, news)
            assert len(table) == sum(map(len, known.values()))
            if message is not None:
                wanted = {p for p, fs in known.items() if any(f.matches(message) for f in fs)}
                assert set(table.interfaces_of(message)) == wanted
                matches = table.lookup(Texts([message.to_json().encode()] * 3))
                for row in range(3):
                    slots = matches.slots(row)
                    assert sorted(table.interfaces[slot] for slot in slots) == sorted(wanted)
                    assert len(set(slots)) == len(slots)
                grouped = matches.grouped(table.interfaces.__getitem__)
                assert [set(one) for one in grouped] == [wanted] * 3

    check()


@pytest.mark.usefixtures("limits")
def test_a_lookup_in_another_thread_answers_as_one_now_whatever_changes_meanwhile() -> None:
    """One change before it, one during each round, and more rounds than there may be."""
    changes = st.tuples(PEERS, FILTERS, st.booleans())

    @settings(max_examples=40, deadline=None)
    @given(
        st.lists(changes, max_size=8),
        st.lists(st.lists(changes, max_size=3), max_size=12),
        st.lists(MESSAGES, min_size=1, max_size=4),
    )
    def check(
        before: list[tuple[str, Filter, bool]],
        meanwhile: list[list[tuple[str, Filter, bool]]],
        messages: list[Message],
    ) -> None:
        table = InterestTable()
        change(table, before)
        texts = Texts([message.to_json().encode() for message in messages])
        lookup = table.look_up_ahead(texts)
        news = iter(meanwhile)
        for compute in lookup.rounds():
            change(table, next(news, []))
            lookup.note(compute())
        table.note_ahead(lookup)
        ahead = table.lookup(texts)
        table.forget_ahead(lookup)
        now = table.lookup(texts)
        for row in range(len(texts)):
            assert sorted(ahead.slots(row)) == sorted(now.slots(row))

    def change(table: InterestTable, steps: list[tuple[str, Filter, bool]]) -> None:
        for peer, filter, is_added in steps:
            if is_added != (filter in table.filters_of(peer)):
                table.change(peer, {filter: is_added})

    check()


@pytest.mark.usefixtures("limits")
def test_the_router_uses_it() -> None:
    @settings(max_examples=10, deadline=None)
    @given(st.lists(st.tuples(PEERS, FILTERS, st.booleans()), max_size=20), st.lists(MESSAGES))
    def check(steps: list[tuple[str, Filter, bool]], messages: list[Message]) -> None:
        router = Router("1")
        for peer in ("ann", "bob", "cy"):
            router.step(Joined(peer))
        router.step(Joined("router 2", Role.NEIGHBOUR))
        for peer, filter, is_said in steps:
            packet: Callable[[Filter], Subscribe | Unsubscribe] = (
                Subscribe if is_said else Unsubscribe
            )
            router.step(Received(peer, packet(filter)))
        for message in messages:
            check_destinations(router, message)

    check()


def test_upkeep_is_given_away_and_changes_go_on_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are those of the filters before, during and after merges and compactions."""
    monkeypatch.setattr(interest_table, "EVALUATED_MAX", 0)
    monkeypatch.setattr(interest_table, "_LEAST", 100)
    monkeypatch.setattr(updates, "RECENT_MAX", 4)
    table, known = InterestTable(defers=True), dict[str, Filter]()

    def add(n: int) -> None:
        (known[f"i{n}"],) = palio.parse(f"x >= {n}")
        table.change(f"i{n}", {known[f"i{n}"]: True})
        table.settle()

    def remove(n: int) -> None:
        table.change(f"i{n}", {known.pop(f"i{n}"): False})

    def check() -> None:
        for x in (0, 7, 150, 400):
            message = Message({"x": x})
            wanted = {name for name, found in known.items() if found.matches(message)}
            assert set(table.interfaces_of(message)) == wanted

    kinds: set[str] = set()
    for n in range(400):
        add(n)
        if n % 3 == 2:
            remove(n - 2)
        work = table.upkeep() if n % 5 == 0 else None
        if work is not None:
            kinds.add(type(work).__name__)
            work.run()
            check()
            add(1000 + n)
            if n % 2:
                work.finish()
            else:
                work.abandon()
            check()
    assert kinds == {"Merge", "Compaction"}


def test_failures_of_expressions_are_counted_with_a_table_and_without() -> None:
    table = InterestTable()
    wanted = palio.parse("10 / x > 1 OR y = 1")
    table.change("ann", dict.fromkeys(wanted, True))
    assert table.interfaces_of(Message({"x": 0, "y": 1})) == ["ann"]
    assert table.expression_failures == 1
    many = palio.parse(
        " OR ".join(f"a = {i} AND b = {i}" for i in range(interest_table.EVALUATED_MAX + 10))
    )
    table.change("bob", dict.fromkeys(many, True))
    assert table.interfaces_of(Message({"x": 0, "y": 1})) == ["ann"]
    assert table.expression_failures == 2
    table.change("bob", dict.fromkeys(many, False))
    assert table.interfaces_of(Message({"x": 0})) == []
    assert table.expression_failures == 3
