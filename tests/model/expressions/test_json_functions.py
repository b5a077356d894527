"""get_json_object at its edges: the answers are Spark's."""

from __future__ import annotations

import pytest

from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.json_functions import get_json_object


@pytest.mark.parametrize(
    ("text", "path", "found"),
    [
        ('{"a":{"b":1.0}}', "$.a", '{"b":1.0}'),
        ('{"a":1e5}', "$.a", "100000.0"),
        ('{"a":12345678901234567890}', "$.a", "12345678901234567890"),
        ('{"a":[1.10, 1E3, "x\\u00e9", null, true]}', "$.a", '[1.1,1000.0,"xé",null,true]'),
        ('{"a":1, bad', "$.a", None),
        ('{"a":1,"a":2}', "$.a", "1"),
        ('{"a":null,"a":2}', "$.a", "2"),
        ('{"a":{"x":1}, "a":{"y":2}}', "$.a.y", "2"),
        ('{"a":null}', "$.a", None),
        ("[1,2,3]", "$[1]", "2"),
        ('{"a b":1}', "$['a b']", "1"),
        ('{"a b":1}', "$.a b", "1"),
        ('{"b":1,"a":2,"b":3}', "$", '{"b":1,"a":2,"b":3}'),
        ("5", "$", "5"),
        ('"x"', "$", "x"),
        ('{"a":1} trailing', "$.a", "1"),
        ('{"a":NaN}', "$.a", None),
        ('{"a":01}', "$.a", None),
        ('{"a":-0}', "$.a", "0"),
        ('{"a":1e400}', "$.a", '"Infinity"'),
        ('{"a":[[1,2],[3]]}', "$.a[1][0]", "3"),
        ('{"a":[1]}', "$.a[5]", None),
        ('{"a":"b"}', "$.a.b", None),
        ('{"a.b":"b"}', "$.a.b", None),
        ("", "$.a", None),
    ],
)
def test_values(text: str, path: str, found: str | None) -> None:
    assert get_json_object(text, path) == found


@pytest.mark.parametrize("path", ["a", "$..a", "$.a[*]", "$.*", "$.a[", "$" + ".a" * 1000])
def test_paths_that_are_not_read(path: str) -> None:
    with pytest.raises(ExpressionError, match="path"):
        get_json_object('{"a":1}', path)


def test_what_a_stranger_makes_deep_or_long_is_null() -> None:
    assert get_json_object("[" * 100_000, "$[0]") is None
    assert get_json_object(f'{{"a":{"1" * 5000}}}', "$.a") is None
    with pytest.raises(ExpressionError, match="nested"):
        get_json_object("[" * 300 + "]" * 300, "$")
