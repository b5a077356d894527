import json
from datetime import UTC, datetime
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import InvalidPredicate
from palio.model.json_form import from_json, from_object, to_json, to_object
from palio.model.predicate import Constraint, Filter, Predicate
from tests.strategies import predicates


def one(**item: Any) -> Constraint:
    ((constraint,),) = from_json(json.dumps([[item]]))
    return constraint


@settings(max_examples=300, deadline=None)
@given(predicates)
def test_a_predicate_comes_back(predicate: Predicate) -> None:
    text = to_json(predicate)
    assert from_json(text) == predicate
    assert from_json(text.encode()) == predicate
    assert from_object(to_object(predicate)) == predicate
    assert to_json(from_json(text)) == text  # 1 equals 1.0, and yet they differ


def test_form() -> None:
    found = Predicate(
        (
            Filter((Constraint("price", "<", 500), Constraint("gate", "absent"))),
            Filter((Constraint("t", ">", datetime(2013, 1, 31, tzinfo=UTC)),)),
            Filter((Constraint("f", "in", [1, 2.0, -inf]), Constraint("u", "any", type="bool"))),
            Filter(()),
        )
    )
    assert to_object(found) == [
        [
            {"name": "price", "op": "<", "type": "int", "value": 500},
            {"name": "gate", "op": "absent"},
        ],
        [{"name": "t", "op": ">", "type": "time", "value": "2013-01-31T00:00:00Z"}],
        [
            {"name": "f", "op": "in", "type": "float", "value": ["-Infinity", 1, 2.0]},
            {"name": "u", "op": "any", "type": "bool"},
        ],
        [],
    ]
    assert to_json(Predicate(())) == "[]"


@pytest.mark.parametrize(
    ("item", "constraint"),
    [
        ({"op": "=", "value": 3}, Constraint("x", "=", 3)),
        ({"op": "=", "value": 3.0}, Constraint("x", "=", 3.0)),
        ({"op": "=", "type": "float", "value": 3}, Constraint("x", "=", 3.0)),
        ({"op": "=", "type": "float", "value": 10**30}, Constraint("x", "=", 1e30)),
        ({"op": "=", "type": "float", "value": "Infinity"}, Constraint("x", "=", inf)),
        ({"op": "=", "value": "Infinity"}, Constraint("x", "=", "Infinity")),
        ({"op": "=", "value": True}, Constraint("x", "=", True)),
        ({"op": "=", "value": "2013-01-31"}, Constraint("x", "=", "2013-01-31")),
        (
            {"op": "=", "type": "time", "value": "2013-01-31T10:00:00+01:00"},
            Constraint("x", "=", datetime(2013, 1, 31, 9, tzinfo=UTC)),
        ),
        ({"op": "in", "value": ["b", "a"]}, Constraint("x", "in", ["a", "b"])),
        ({"op": "in", "type": "float", "value": [1, 2]}, Constraint("x", "in", [1.0, 2.0])),
        (
            {"op": "in", "type": "float", "value": [2**53 + 1, 0.5, 2**70]},
            Constraint("x", "in", [2**53 + 1, 0.5, 2.0**70]),
        ),
        ({"op": "not prefix", "value": "a"}, Constraint("x", "not prefix", "a")),
        ({"op": "any"}, Constraint("x", "any")),
        ({"op": "any", "type": "int", "value": None}, Constraint("x", "any", type="int")),
        ({"op": "absent", "type": None}, Constraint("x", "absent")),
    ],
)
def test_reading(item: dict[str, Any], constraint: Constraint) -> None:
    got = one(name="x", **item)
    assert got == constraint
    assert type(got.value) is type(constraint.value)


GOOD = {"name": "x", "op": "=", "value": 1}


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ([], "a constraint is an object, not a list"),
        (None, "a constraint is an object, not null"),
        ({"op": "=", "value": 1}, "name is missing"),
        ({"name": 5, "op": "=", "value": 1}, "name is a string, not a number"),
        ({"name": "", "op": "=", "value": 1}, "name is empty"),
        ({"name": "x", "value": 1}, "op is missing"),
        ({"name": "x", "op": ["="], "value": 1}, "op is a string, not a list"),
        ({"name": "x", "op": "==", "value": 1}, "no operator '=='"),
        ({**GOOD, "values": 1}, "no key 'values'; there are name, op, type, value"),
        ({**GOOD, "type": "text"}, "no type 'text'"),
        ({**GOOD, "type": 5}, "no type 5"),
        ({**GOOD, "type": "string"}, "1 is not of type string"),
        ({**GOOD, "type": "bool"}, "1 is not of type bool"),
        ({**GOOD, "type": "time"}, "1 is not of type time"),
        ({**GOOD, "type": "int", "value": True}, "True is not of type int"),
        ({**GOOD, "type": "int", "value": 3.0}, "3.0 is not of type int"),
        ({**GOOD, "type": "float", "value": "3"}, "'3' is not of type float"),
        ({**GOOD, "type": "float", "value": 10**400}, "does not fit in a double"),
        ({**GOOD, "type": "time", "value": "soon"}, "'soon' is not an instant"),
        ({**GOOD, "value": 2**63}, "64 bits"),
        ({**GOOD, "value": None}, "needs a value"),
        ({**GOOD, "value": []}, "a list is not a value"),
        ({**GOOD, "value": {}}, "an object is not a value"),
        ({**GOOD, "op": "<", "value": True}, "does not order booleans"),
        ({**GOOD, "op": "prefix"}, "takes a string"),
        ({**GOOD, "op": "in"}, "in takes a list of values, not a number"),
        ({**GOOD, "op": "in", "value": "ab"}, "in takes a list of values, not a string"),
        ({**GOOD, "op": "in", "value": []}, "at least one value"),
        ({**GOOD, "op": "in", "value": [1, "a"]}, "mixes types"),
        ({**GOOD, "op": "in", "value": [1, None]}, "null is not a value"),
        ({**GOOD, "op": "in", "type": "float", "value": [1, "a"]}, "'a' is not of type float"),
        ({**GOOD, "op": "any"}, "any takes no value"),
        ({**GOOD, "op": "absent"}, "absent takes no value"),
        ({"name": "x", "op": "absent", "type": "int"}, "absent has no type"),
        ({"name": "x\ud800", "op": "any"}, "lone surrogate"),
        ({**GOOD, "value": "\ud800"}, "lone surrogate"),
    ],
)
def test_error_names_the_place(item: object, reason: str) -> None:
    with pytest.raises(InvalidPredicate) as caught:
        from_json(json.dumps([[GOOD], [item, GOOD]]))
    assert str(caught.value).startswith("filter 2, constraint 1: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "JSON"),
        ("[[", "JSON"),
        ("[] x", "JSON"),
        (b"\xff\xff", "JSON"),
        ('[[{"name": "x", "op": "=", "value": NaN}]]', "NaN is not JSON"),
        ('[[{"name": "x", "op": "=", "value": -Infinity}]]', "-Infinity is not JSON"),
        ('[[{"name": "x", "op": "=", "value": 1e999}]]', "does not fit in a double"),
        ('[[{"name": "x", "op": "=", "value": %s}]]' % ("9" * 5000), "JSON"),
        (
            '[[{"name": "x", "op": "any", "op": "any"}]]',
            "constraint 1: the key 'op' is there twice",
        ),
        ("[" * 100_000, "too deeply"),
        ("{}", "a list of filters, not an object"),
        ("5", "a list of filters, not a number"),
        ("null", "a list of filters, not null"),
        ('[{"name": "x", "op": "any"}]', "filter 1: a filter is a list of constraints, not an obj"),
        (5, "not a int"),
    ],
)
def test_what_is_no_predicate(text: Any, reason: str) -> None:
    with pytest.raises(InvalidPredicate) as caught:
        from_json(text)
    assert reason in str(caught.value)


OBJECTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "op", "type", "value", "x"]),
            inner | st.sampled_from(["=", "in", "any", "int", "time", "prefix"]),
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(OBJECTS | st.lists(st.lists(OBJECTS, max_size=2), max_size=2))
def test_any_object_is_read_or_refused(document: object) -> None:
    try:
        made = from_object(document)
    except InvalidPredicate:
        return
    assert from_object(to_object(made)) == made
