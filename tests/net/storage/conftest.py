"""Stores of every kind for tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.net.storage.kinds import PostgresKind, SqliteKind, StoreKind


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> Iterator[StoreKind]:
    made: StoreKind
    if request.param == "sqlite":
        made = SqliteKind()
    else:
        made = PostgresKind(request.getfixturevalue("postgres"))
    yield made
    made.close()
