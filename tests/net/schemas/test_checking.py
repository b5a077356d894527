"""Valid or not as another validator says, and a sentence about what is wrong."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from palio import Message
from palio.net.schemas.rules import UnusableSchema

jsonschema = pytest.importorskip("jsonschema", reason="the oracle: jsonschema")
pytest.importorskip("jsonschema_rs", reason="needs palio[schemas]")
from palio.net.schemas.checking import JsonSchema, as_object  # noqa: E402

ORDER: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {"amount": {"type": "number", "minimum": 0}},
    "required": ["id"],
    "properties": {
        "kind": True,
        "id": {"type": "string", "pattern": "^[A-Z]+[0-9]*$"},
        "price": {"$ref": "#/$defs/amount"},
        "at": {"type": "string", "pattern": "Z$"},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "ship.to": {"enum": ["home", "work", None]},
    },
    "additionalProperties": False,
    "if": {"properties": {"id": {"const": "X"}}},
    "then": {"required": ["price"]},
}  # fmt: skip

MESSAGES: list[dict[str, object]] = [
    {"id": "A1"},
    {},
    {"id": "a"},
    {"id": 7},
    {"id": "A", "price": 4.5},
    {"id": "A", "price": -1},
    {"id": "A", "price": True},
    {"id": "A", "price": float("nan")},
    {"id": "A", "price": float("inf")},
    {"id": "X"},
    {"id": "X", "price": 0},
    {"id": "A", "ship": {"to": "home"}},
    {"id": "A", "ship": {"to": "sea"}},
    {"id": "A", "ship": {"from": "home"}},
    {"id": "A", "tags": ["a", "b"]},
    {"id": "A", "tags": ["a", "a"]},
    {"id": "A", "tags": ["a", None]},
    {"id": "A", "tags": [{"a": [1]}]},
    {"id": "A", "at": {"$time": "2024-02-29T10:00:00Z"}},
    {"id": "A", "at": {"$binary": "aGk="}},
]

SCHEMAS: list[Any] = [
    ORDER,
    True,
    False,
    {"anyOf": [{"required": ["price"]}, {"properties": {"id": {"maxLength": 1}}}]},
    {"oneOf": [{"required": ["price"]}, {"required": ["tags"]}]},
    {"not": {"required": ["tags"]}},
    {"dependentRequired": {"tags": ["price"]}},
    {"minProperties": 2, "maxProperties": 2},
    {"propertyNames": {"pattern": "^[a-z]+$"}},
    {"patternProperties": {"^t": {"maxItems": 1}}, "additionalProperties": {"type": "string"}},
    {"properties": {"tags": {"contains": {"const": "b"}}}},
    {"properties": {"id": True}, "unevaluatedProperties": False},
    {"$ref": "#/$defs/all", "$defs": {"all": {"properties": {"price": {"type": "integer"}}}}},
    {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"s": {"type": "string"}},
     "properties": {"id": {"$ref": "#/definitions/s"}}},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: str(schema)[:40])
def test_the_same_as_jsonschema(schema: Any) -> None:
    check = JsonSchema(json.dumps(schema))
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    for attributes in MESSAGES:
        message = Message(attributes)
        reason = check(message)
        assert (reason is None) == kind(schema).is_valid(as_object(message)), (message, reason)
        assert reason is None or len(reason) < 600


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"kind": "q"}, 'it has no attribute "id", which is required'),
        ({"id": "a"}, 'the attribute "id" is "a", and must satisfy {"pattern": "^[A-Z]+[0-9]*$"}'),
        ({"id": "A", "price": -1}, 'the attribute "price" is -1, and must satisfy {"minimum": 0}'),
        ({"id": "A", "x": 1}, 'it has the attribute "x", and may have only: ["id",'),
        ({"id": "A", "tags": ["a", 1]}, 'the attribute "tags" is ["a", 1], and must satisfy {"items":'),
        ({"id": "X"}, 'it must satisfy {"if":'),
        ({"id": "A", "ship.to": "x" * 60_000}, 'the attribute "ship.to" is "xxx'),
    ],
)  # fmt: skip
def test_what_is_said(attributes: dict[str, object], said: str) -> None:
    schema = dict(
        ORDER,
        properties={**dict.fromkeys(["id"], ORDER["properties"]["id"]), **ORDER["properties"]},
    )
    reason = JsonSchema(json.dumps(schema))(Message(attributes))
    assert reason is not None
    assert reason.startswith(said)
    assert len(reason) < 600


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[1]", "not a schema"),
        ('{"minimum": NaN}', "not JSON"),
        ('{"a":' * 5000, "too deep"),
        ('{"type": "nope"}', "not a valid schema.*#/type"),
        ('{"properties": {"a": {"minimum": "x"}}}', "#/properties/a/minimum"),
        ('{"format": "nope"}', "Unknown format"),
        ('{"$schema": "http://example.com/s"}', "Unknown meta-schema"),
        ('{"pattern": "(.{1,200}a){5}x"}', "too large"),
    ],
)
def test_what_is_no_schema(text: str, said: str) -> None:
    with pytest.raises(UnusableSchema, match=said):
        JsonSchema(text)


def test_two_of_one_text_are_equal() -> None:
    assert JsonSchema('{"minProperties": 1}') == JsonSchema('{"minProperties": 1}')
    assert JsonSchema('{"minProperties": 1}') != JsonSchema('{"minProperties": 2}')


HOSTILE: dict[str, tuple[object, dict[str, object]]] = {
    "a long text for a pattern": ({"pattern": "(a|b|ab)*c{0,100}(x+x+)+y"}, {"a": "ab" * 16_000 + "x" * 32_000}),
    "many optional parts": ({"pattern": "(x?){50}y"}, {"a": "x" * 64_000}),
    "many fractions": ({"items": {"multipleOf": 0.01}}, {"a": [1e300] * 12_000}),
    "unique arrays": ({"uniqueItems": True}, {"a": [[[i]] for i in range(7_000)]}),
    "unique objects": ({"uniqueItems": True}, {"a": [{} for _ in range(16_000)]}),
    "many alternatives": ({"items": {"anyOf": [{"const": i} for i in range(100)]}}, {"a": [99] * 20_000}),
    "wrong in all alternatives": ({"anyOf": [{"items": {"type": "string"}}] * 3}, {"a": [1] * 32_000}),
    "many attributes": ({"type": "string"}, {f"a{i}": i for i in range(6_000)}),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_no_message_takes_long(name: str) -> None:
    """Processor time; a slow machine may take several times what is usual."""
    schema, attributes = HOSTILE[name]
    check = JsonSchema(json.dumps({"properties": {"a": schema}, "additionalProperties": schema}))
    message = Message(attributes)
    took_s = []
    for _ in range(3):
        began_s = time.thread_time()
        check(message)
        took_s.append(time.thread_time() - began_s)
    assert min(took_s) < 0.05
