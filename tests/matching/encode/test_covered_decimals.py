"""What rows lose by reduction no decimal misses: of neighbouring doubles, large integers, and decimals between."""

from __future__ import annotations

import palio
from palio.matching.encode.column_reduction import reduce_columns
from palio.matching.encode.columns import from_predicates
from palio.matching.encode.covered import uncovered
from palio.matching.encode.decoding import column_predicates
from palio.matching.encode.strings import build_strings
from palio.model.predicate import Predicate
from tests.model.test_covering_decimals import NumberDrawing
from tests.seeds import sizes


@sizes(300, 20_000)
def test_reduced_columns_select_the_same(size: int) -> None:
    drawing, saved = NumberDrawing(21), 0
    for _ in range(size):
        messages, numbers = drawing.pool()
        given = Predicate(tuple(drawing.filter(numbers) for _ in range(6)))
        columns = from_predicates([("a", given)])
        expected = [given.matches(message) for message in messages]
        for fewer in (reduce_columns(columns)[0], uncovered(columns, build_strings(columns))):
            kept = Predicate(tuple(f for p in column_predicates(fewer) for f in p.filters))
            saved += len(given) - len(kept)
            assert [kept.matches(message) for message in messages] == expected, (given, kept)
    assert saved > size


@sizes(20, 400)
def test_reduced_tables_select_the_same(size: int) -> None:
    drawing = NumberDrawing(22)
    for _ in range(size):
        messages, numbers = drawing.pool()
        rules = {name: Predicate(tuple(drawing.filter(numbers) for _ in range(4))) for name in "ab"}
        for entries in (rules, from_predicates(rules.items())):
            table = palio.ForwardingTable.compile(entries, reduce=True)
            for message in messages:
                expected = [name for name, rule in rules.items() if rule.matches(message)]
                assert sorted(table.forward(message)) == expected, (rules, message)
