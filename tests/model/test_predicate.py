"""Constraints and predicates: what is refused, the normal form, and explanations."""

from __future__ import annotations

import math
import pickle

import pytest

import palio
from palio import Constraint, InvalidPredicate


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("x", "=", math.nan), "NaN"),
        (("x", "=", None), "needs a value"),
        (("x", "~", 1), "no operator"),
        (("x", "<", True), "booleans"),
        (("x", "prefix", 5), "takes a string"),
        (("x", "in", []), "at least one"),
        (("x", "in", [1, "a"]), "mixes"),
        (("x", "in", "abc"), "list"),
        (("x", "any", 5), "no value"),
        (("x", "absent", None, "int"), "no type"),
        (("x", "=", 5, "string"), "not of type"),
        (("x", "any", None, "decimal"), "no type"),
        (("", "=", 5), "empty"),
        (("x", "=", 2**70), "64 bits"),
    ],
)
def test_bad_constraints(arguments: tuple[object, ...], says: str) -> None:
    with pytest.raises(InvalidPredicate, match=says):
        Constraint(*arguments)  # type: ignore[arg-type]


def test_constraints_have_a_normal_form() -> None:
    assert Constraint("x", "in", [3, 1, 3]) == Constraint("x", "in", (1, 3))
    assert Constraint("x", "in", [3]) == Constraint("x", "=", 3)
    assert Constraint("x", "in", [1.0, 1, 2]) == Constraint("x", "in", [1, 1.0, 2])
    assert Constraint("x", "=", -0.0) == Constraint("x", "=", 0.0)
    assert Constraint("x", "=", 1) != Constraint("x", "=", 1.0)
    made = Constraint("x", "in", ["b", "a"])
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(AttributeError):
        made.name = "y"


def test_explanations_agree_with_matching() -> None:
    p = palio.parse("dest = 'MXP' AND price < 500 OR gate IS NULL")
    told = p.explain({"dest": "MXP", "price": 600.5, "gate": 4})
    assert not told.matches
    assert [v.holds for v in told.filters] == [False, False]
    assert [str(c.constraint) for c in told.filters[0].deciding] == ["price < 500"]
    assert "price is the float 600.5" in str(told)
    assert "price is not there" in str(p.explain({"dest": "MXP"}))
    assert p.explain({"dest": "MXP"}).matches
