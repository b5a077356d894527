"""What a broker does not take of a schema, and why."""

from __future__ import annotations

import json

import pytest

from palio.net.schemas.rules import WORK_MAX, UnusableSchema, work


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"$ref": "http://example.com/x"}, "elsewhere"),
        ({"$ref": "file:///etc/passwd"}, "elsewhere"),
        ({"$ref": "other.json"}, "elsewhere"),
        ({"properties": {"a": {"$ref": "#a"}}}, "elsewhere"),
        ({"$ref": "#/$defs/none"}, "no such part"),
        ({"items": {"$ref": "#"}}, "back to itself"),
        ({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}, "back to itself"),
        ({"$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"not": {"$ref": "#/$defs/a"}}}}, "itself"),
        ({"$dynamicRef": "#a"}, "not supported"),
        ({"properties": {"a": {"$anchor": "a"}}}, "not supported"),
        ({"properties": {"a": {"$id": "http://example.com/"}}}, "only at the top"),
        ({"properties": {"a": {"pattern": "(?=x)"}}}, "RE2"),
        ({"patternProperties": {"(a)\\1": True}}, "RE2"),
        ({"pattern": "x" * 2000}, "up to 1,000"),
    ],
)  # fmt: skip
def test_what_is_refused(schema: object, said: str) -> None:
    with pytest.raises(UnusableSchema, match=said):
        work(schema)


def test_names_and_values_that_look_like_keywords() -> None:
    assert work({"properties": {"$ref": {"const": {"$ref": "x"}}, "$id": True, "pattern": True}})
    assert work({"enum": [{"pattern": "(?=x)"}], "default": {"$id": 1}})


def test_references_that_multiply() -> None:
    """Thirty definitions, each with two references to the next, are a billion."""
    defs = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)}
    with pytest.raises(UnusableSchema, match="takes too long"):
        work({"$defs": defs | {"d30": {"type": "string"}}, "items": {"$ref": "#/$defs/d0"}})


def test_what_is_too_large_or_too_deep() -> None:
    with pytest.raises(UnusableSchema, match="takes too long"):
        work({"anyOf": [{"const": i} for i in range(WORK_MAX)]})
    deep: object = {}
    for _ in range(70):
        deep = {"not": deep}
    with pytest.raises(UnusableSchema, match="too deep"):
        work(json.loads(json.dumps(deep)))
