"""Palio against DuckDB: the same predicate on the same row gives the same answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import duckdb
import pyarrow as pa
import pytest
from tests.differential import cases
from tests.differential.agreement import assert_agree
from tests.differential.generate import Text, columns_of, draw_predicates, draw_rows

import palio
from palio.lab.data import flights

COLUMNS_MAX = 250  # predicates in one query


class Engine:
    """One connection, in UTC."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        connection.execute("SET TimeZone = 'UTC'")

    def answers(self, texts: Sequence[str], table: pa.Table) -> list[list[bool]]:
        self.connection.register("messages", table)
        answers: list[list[bool]] = []
        for start in range(0, len(texts), COLUMNS_MAX):
            columns = (f"({text}) IS TRUE" for text in texts[start : start + COLUMNS_MAX])
            rows = self.connection.execute(f"SELECT {', '.join(columns)} FROM messages").fetchall()
            answers += map(list, zip(*rows, strict=True))
        return answers

    def assert_agrees(self, predicates: Sequence[Text], table: pa.Table) -> float:
        answers = self.answers([text.duckdb for text in predicates], table)
        return assert_agree([text.spark for text in predicates], table, answers, "DuckDB")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield Engine(connection)


def check_random(engine: Engine, seed: int, predicates: int, rows: int = 60) -> None:
    rng = random.Random(seed)
    table = draw_rows(rng, rows)
    selected = engine.assert_agrees(draw_predicates(rng, predicates), table)
    assert 0.2 < selected < 0.6, "the generator hits too rarely or too often"


def test_random_predicates(engine: Engine) -> None:
    check_random(engine, seed=2000, predicates=500)


@pytest.mark.parametrize("seed", range(4))
def test_random_predicates_of_other_seeds(engine: Engine, seed: int) -> None:
    check_random(engine, seed, predicates=250)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 125))
def test_many_random_predicates(engine: Engine, seed: int) -> None:
    check_random(engine, seed, predicates=1_000)


def test_cases(engine: Engine) -> None:
    predicates = [Text(text, text) for text in cases.SAME] + list(cases.BOTH)
    engine.assert_agrees(predicates, cases.table())


@pytest.fixture(scope="module")
def departures() -> pa.Table:
    """Departures from all over the year."""
    table = flights.load().table
    return table.take(list(range(0, table.num_rows, table.num_rows // 300)))


def test_subscriptions_to_departures(engine: Engine, departures: pa.Table) -> None:
    # TIMESTAMP '...' is local time to DuckDB, so it is an instant here, where local time is UTC.
    predicates = [Text(text, text) for _, text in flights.subscriptions(400)]
    assert engine.assert_agrees(predicates, departures) > 0


def test_random_predicates_on_departures(engine: Engine, departures: pa.Table) -> None:
    predicates = draw_predicates(random.Random(2013), 250, columns_of(departures))
    assert 0.2 < engine.assert_agrees(predicates, departures) < 0.7


@pytest.mark.parametrize(
    ("text", "duckdb_text", "value"),
    [
        # an integer literal that no double equals, and a double
        ("v = 9007199254740993", "v = 9007199254740993", float(2**53)),
        ("v >= 9223372036854775807", "v >= 9223372036854775807", float(2**63 - 1024)),
        # an integer that no double equals, and a literal that is a double
        ("v = 9007199254740992E0", "v = CAST('9007199254740992' AS DOUBLE)", 2**53 + 1),
        ("v >= 9223372036854775808E0", "v >= CAST('9223372036854775808' AS DOUBLE)", 2**63 - 1),
    ],
)
def test_palio_does_not_round_integers(
    engine: Engine, text: str, duckdb_text: str, value: float
) -> None:
    """A documented difference: numbers compare by exact value."""
    table = pa.table({"v": pa.array([value], pa.int64() if type(value) is int else pa.float64())})
    exact = palio.parse(text).matches({"v": value})
    rounded = engine.answers([duckdb_text], table)[0][0]
    assert exact is False
    assert rounded is ("223372036854775807" not in text)
