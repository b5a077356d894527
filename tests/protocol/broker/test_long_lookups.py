"""Lookups in jobs: what is subscribed while a job runs gets its messages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from palio.model.language import parse
from palio.protocol.broker import long_lookups
from palio.protocol.broker.long_lookups import LongLookups
from palio.protocol.broker.schemas import SchemaChecks
from palio.protocol.wire.batch import Entry, MessageBatch
from palio.protocol.wire.message_headers import NO_HEADERS
from palio.routing.interest_table import InterestTable
from palio.routing.lookups_ahead import ROUNDS_MAX


@pytest.fixture(autouse=True)
def everything_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_lookups, "SHORT_UNITS", -1)


def added(table: InterestTable, interface: str, text: str) -> None:
    table.change(interface, dict.fromkeys(parse(text), True))


def messages() -> MessageBatch:
    entries = [Entry("eve", n, 0, b'{"x": %d}' % n, NO_HEADERS) for n in range(1, 4)]
    return MessageBatch.of(entries)


def found_while(
    table: InterestTable, changes: Iterator[tuple[str, str]]
) -> tuple[list[list[str]], int]:
    """What messages match, if a subscription comes while each of the jobs runs; and how many jobs there are."""
    found: list[list[str]] = []

    def take(part: MessageBatch) -> None:
        matches = table.lookup(part)
        found.extend(
            [table.interfaces[slot] for slot in matches.slots(row)] for row in range(part.count)
        )

    jobs = 0
    for job in LongLookups(table, SchemaChecks(table), lambda: None, defers=True).slices(
        messages(), take
    ):
        jobs += 1
        job.run()  # type: ignore[union-attr]
        for interface, text in islice(changes, 1):
            added(table, interface, text)
    return found, jobs


@pytest.mark.parametrize("rows", [0, 600])
def test_what_is_added_while_a_job_runs(rows: int) -> None:
    table = InterestTable(defers=True)
    added(table, "old", "x >= 1")
    for n in range(rows):  # more than are evaluated one by one
        added(table, f"other {n}", f"x = {1000 + n}")
    found, jobs = found_while(table, iter([("new", "x % 2 = 1"), ("newer", "x > 1")]))
    assert found == [["old", "new"], ["old", "newer"], ["old", "new", "newer"]]
    assert jobs == 3


def test_subscriptions_that_come_all_the_time() -> None:
    table = InterestTable(defers=True)
    added(table, "old", "x >= 1")
    found, jobs = found_while(table, ((f"new {n}", "x = 2") for n in range(1000)))
    assert jobs == 1 + ROUNDS_MAX
    assert [len(one) for one in found] == [1, 1 + jobs, 1]
