"""Values and objects that an attribute holds, through arrays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.model.expressions.element_functions import (
    DEPTH_MAX,
    is_array,
    is_nested,
    leaves,
    objects,
)
from palio.model.expressions.errors import ExpressionError
from palio.model.language import parse

EMPLOYEES = (
    ({"name": "John", "ids": (1, 2)}, {"name": "Anna"}),
    ({"name": "Peter", "ids": (), "home": {"city": "Bern"}},),
)


@pytest.mark.parametrize(
    ("value", "path", "found"),
    [
        (None, (), ()),
        (5, (), (5,)),
        ((), (), ()),
        ((5, (6, None), {"a": 7}), (), (5, 6, None)),
        ({"a": 7}, (), ()),
        ({"a": 7}, ("a",), (7,)),
        (5, ("a",), ()),
        (EMPLOYEES, ("name",), ("John", "Anna", "Peter")),
        (EMPLOYEES, ("ids",), (1, 2)),
        (EMPLOYEES, ("home", "city"), ("Bern",)),
        (EMPLOYEES, ("home",), ()),
        (EMPLOYEES, ("nothing", "here"), ()),
        (({"a": None}, {"a": (None,)}), ("a",), (None,)),
    ],
)
def test_leaves(value: Any, path: tuple[str, ...], found: tuple[Any, ...]) -> None:
    assert leaves(value, *path) == found


def test_objects() -> None:
    john, anna, peter = EMPLOYEES[0][0], EMPLOYEES[0][1], EMPLOYEES[1][0]
    assert objects(EMPLOYEES) == (john, anna, peter)
    assert objects(EMPLOYEES, "home") == ({"city": "Bern"},)
    assert objects(john) == (john,)
    assert objects(5) == objects(None) == objects((5, ())) == ()


def test_depth_is_bounded() -> None:
    nested: Any = 5
    for _ in range(DEPTH_MAX):
        nested = (nested,)
    assert leaves(nested) == (5,)
    with pytest.raises(ExpressionError, match="nested more than 64 deep"):
        leaves((nested,))


VALUES = st.recursive(
    st.none() | st.integers(0, 3),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
)


@given(VALUES, st.sampled_from("ab"))
def test_a_path_is_taken_step_by_step(value: Any, name: str) -> None:
    found = [leaf for one in objects(value) for leaf in leaves(one.get(name))]
    assert list(leaves(value, name)) == found


@pytest.mark.parametrize(
    ("text", "message", "holds"),
    [
        ("is_array(a)", {"a": []}, True),
        ("is_array(a)", {"a": "x"}, False),
        ("is_array(a)", {}, False),
        ("NOT is_array(a)", {}, False),
        ("is_nested(a)", {"a": [1, [2]]}, True),
        ("is_nested(a)", {"a": [1, 2]}, False),
        ("size(leaves(a)) = 0", {}, True),
        ("array_contains(leaves(a), 'x')", {"a": "x"}, True),
        ("array_contains(leaves(a), 'x')", {"a": [["y"], ["x"]]}, True),
        ("exists(leaves(a, 'b'), t -> t > 1)", {"a": [{"b": 1}, {"b": [0, 2]}]}, True),
        ("exists(objects(a), t -> size(leaves(t, 'b')) = 0)", {"a": [{"b": 1}, {"c": 1}]}, True),
        ("ip_key(a) >= '40a000000' AND ip_key(a) <= '40affffff'", {"a": "10.1.2.3"}, True),
    ],
)
def test_in_predicates(text: str, message: dict[str, object], holds: bool) -> None:
    predicate = parse(text)
    assert predicate.matches(message) is holds
    assert parse(str(predicate)) == predicate


def test_only_a_tuple_is_an_array() -> None:
    assert is_array(())
    assert not is_array("abc")


def test_an_array_of_arrays_is_nested() -> None:
    assert is_nested((1, ()))
    assert not any(map(is_nested, [(), (1, {"a": (2,)}), "abc", {"a": ((),)}]))
