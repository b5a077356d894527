"""What a table tells of its constraints."""

from __future__ import annotations

from palio.matching.table import ForwardingTable

RULES = {
    "a": "x = 1 AND y > 2.5 AND z",
    "b": "at > DATE '2024-01-01' AND s LIKE 'a%' AND u NOT IN ('a', 'b')",
    "c": "x IN (1, 2.5) OR x = '5'",
    "d": "lower(s) = 'a' AND k != 5",
    "e": "p IS NOT NULL OR q IS NULL",
    "all": "TRUE",
}
COMPARED = {
    "x": {"number", "string"},
    "y": {"number"},
    "z": {"bool"},
    "at": {"time"},
    "s": {"string"},
    "u": {"string"},
    "=lower(s)": {"string"},
    "k": {"number"},
}


def test_the_types_of_literals() -> None:
    """Also with a filter that is filed under no name, and in a later version."""
    table = ForwardingTable.compile(RULES)
    assert table.expressions.compared == COMPARED
    newer = table.updated(add={"f": "y = 'a'"}, remove=["b"])
    assert newer.expressions.compared["y"] == {"number", "string"}


def test_a_table_that_compares_nothing() -> None:
    assert ForwardingTable.compile({"all": "TRUE"}).expressions.compared == {}
    assert ForwardingTable.compile({}).expressions.compared == {}
