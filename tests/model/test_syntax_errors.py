"""What is said of texts that the parser refuses: the place, in the words of SQL, and what to write."""

from __future__ import annotations

import re

import pytest

from palio.errors import ParseError
from palio.model.language import parse


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("from = 'x'", 0, "`from`"),
        ("x = 1 AND select > 5", 10, "`select`"),
        ("case = 1", 0, "`case`"),
        ("order = 5 AND values IN (6)", 14, "`values`"),
        ("price > 5 LIMIT 10", 10, "LIMIT has no meaning here: a predicate is a condition"),
        ("x = 'a' GROUP BY x", 8, "GROUP has no meaning here"),
        ("WHERE price > 5", 0, "leave WHERE out"),
        ("name ~ 'a.*'", 5, "RLIKE"),
        ("x = 1 && y = 2", 6, "write AND"),
        ("x => 5", 2, "write >="),
        ("x =< 5", 2, "write <="),
        ("x ! = 5", 2, "write != or NOT"),
        ("AND x = 1", 0, "AND lacks an operand"),
        ("x = 1 y = 2", 8, "an operator, such as AND, or the end is expected here"),
        ("CASE WHEN x = 1 THEN 2 = 2", 25, "CASE takes WHEN ... THEN ... END"),
        ("body->>'$.a' = 'x'", 4, "get_json_object"),
        ("body -> 'a' = 'x'", 5, "get_json_object"),
        ("at > DATE '2024-01-01' - 5", 10, "date_add"),
        ("x -> 1", 2, "get_json_object"),
        ("(x -> 1)", 1, "get_json_object"),
        ("x ** 2 = 4", 2, "power(x, 2)"),
        ("y = 1 AND x MOD 3 = 1", 12, "x % 3"),
        ("x === 5", 2, "x = 5"),
        ("name MATCHES 'a'", 5, "RLIKE"),
        ("name STARTS WITH 'a'", 5, "startswith"),
        ("tags CONTAINS 'a'", 5, "array_contains"),
        ("x = ?", 4, "write the literal"),
        ("x = :name", 4, "write the literal"),
        ("tags @> array('a')", 5, "array_contains"),
        ("x = 0xFF", 4, "write 255"),
        ("x = 0b101", 4, "write 5"),
        ("x = E'abc'", 4, "without a letter"),
        ("[x] = 5", 0, "array(1, 2)"),
        ("x = 1 AND [y] = 5", 10, "array(1, 2)"),
    ],
)
def test_the_place_and_the_remedy(text: str, at: int, says: str) -> None:
    with pytest.raises(ParseError, match=re.escape(says)) as caught:
        parse(text)
    assert caught.value.position == at, caught.value


@pytest.mark.parametrize("operator", ["=", ">", "IN", "LIKE", "IS", "AND", "~", "-", ""])
@pytest.mark.parametrize("word", ["from", "select", "case", "where", "a b", "x ? y", "not", "("])
def test_no_words_of_the_parser(word: str, operator: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(f"x = 1 AND {word} {operator} 5 )")
    for inner in ("Expect", "Token", "PAREN", "<class", "sqlglot", "keyword"):
        assert inner not in str(caught.value)


def test_several_semicolons_end_a_text() -> None:
    assert str(parse("price < 500 ;;\n")) == "price < 500"
