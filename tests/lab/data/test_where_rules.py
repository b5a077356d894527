"""Rules of WHERE clauses on flights: of the shares that are said, each with a plain one beside it."""

from __future__ import annotations

from collections import Counter

import pytest

import palio
from palio.lab.data import flights, where_rules
from palio.model.expressions.names import is_computed

COUNT = 2_000


@pytest.fixture(scope="module")
def rules() -> where_rules.WhereRules:
    return where_rules.draw(flights.load().table, COUNT, seed=3)


def test_the_same_seed_draws_the_same(rules: where_rules.WhereRules) -> None:
    assert where_rules.draw(flights.load().table, COUNT, seed=3) == rules
    assert where_rules.draw(flights.load().table, COUNT, seed=4) != rules


def test_half_of_them_have_expressions(rules: where_rules.WhereRules) -> None:
    wanted = where_rules.EXPRESSIONS + where_rules.RESIDUALS
    computed = sum(any(map(is_computed, _names(text))) for text in rules.mixed.values())
    assert computed / COUNT == pytest.approx(wanted, abs=0.04)
    assert not any(any(map(is_computed, _names(text))) for text in rules.plain.values())
    assert rules.mixed.keys() == rules.plain.keys()


def test_some_become_residuals_and_others_attributes(rules: where_rules.WhereRules) -> None:
    found = palio.ForwardingTable.compile(rules.mixed).expressions
    assert 0.1 * COUNT < found.residuals < 0.3 * COUNT
    assert len(found.shared) > 5


def test_all_attributes_are_columns(rules: where_rules.WhereRules) -> None:
    columns = set(flights.load().table.column_names)
    plain = Counter(name for text in rules.plain.values() for name in _names(text))
    assert plain.keys() <= columns
    assert len(plain) > 8


def _names(text: str) -> set[str]:
    return {one.name for found in palio.parse(text) for one in found}
