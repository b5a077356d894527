"""Errors are values: fields, a text made of them, copies, and pickling."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from palio import errors
from palio.errors import (
    InvalidFile,
    InvalidMessage,
    InvalidPredicate,
    InvalidValue,
    LimitExceeded,
    MissingSoftware,
    PalioError,
    ParseError,
    RejectedPredicates,
    RejectedRow,
    Unreachable,
)

ERRORS = [
    (PalioError("no"), "no"),
    (PalioError("no", remedy="try again"), "no; try again"),
    (InvalidValue("no int", attribute="x"), "attribute 'x': no int"),
    (InvalidValue("no int", row=3), "row 3: no int"),
    (
        InvalidValue("no int", attribute="x", row=3, remedy="cast it"),
        "attribute 'x', row 3: no int; cast it",
    ),
    (
        InvalidMessage("no int", attribute="x", message="{}", remedy="drop it"),
        "a row is no message: attribute 'x': no int, in {} (drop it)",
    ),
    (
        InvalidPredicate("no op", attribute="x", row=2, table="the rules"),
        "row 2 of the rules: attribute 'x': no op",
    ),
    (InvalidPredicate("no op", filter=1, constraint=2), "filter 1, constraint 2: no op"),
    (ParseError("no literal", "x = y", 4), "no literal\n  x = y\n      ^"),
    (LimitExceeded("too large"), "too large"),
    (InvalidFile("damaged", path="a.csv", remedy="restore it"), "a.csv: damaged; restore it"),
    (InvalidFile("damaged", path=Path("a.csv")), "a.csv: damaged"),
    (
        RejectedPredicates(
            3, [RejectedRow("ann", "x =", "ends early")], remedy="fix them", source="a.csv"
        ),
        "a.csv: 3 rows are no predicates; fix them\ninterface 'ann': ends early\n... and 2 more",
    ),
    (Unreachable("nobody is there"), "nobody is there"),
    (MissingSoftware("no Java", remedy="install it"), "no Java; install it"),
]
each_error = pytest.mark.parametrize(
    ("error", "text"), ERRORS, ids=[f"{i}-{type(e).__name__}" for i, (e, _) in enumerate(ERRORS)]
)


@each_error
def test_the_text_is_made_of_the_fields(error: PalioError, text: str) -> None:
    assert str(error) == text


@each_error
def test_fields_survive_pickling(error: PalioError, text: str) -> None:
    other = pickle.loads(pickle.dumps(error))
    assert type(other) is type(error)
    assert other.__dict__ == error.__dict__
    assert str(other) == text


@each_error
def test_a_copy_differs_in_the_fields_that_are_given(error: PalioError, text: str) -> None:
    other = error.at(remedy="ask somebody")
    assert type(other) is type(error)
    fields = {name: value for name, value in error.__dict__.items() if name != "__notes__"}
    assert other.__dict__ == {**fields, "remedy": "ask somebody"}
    assert str(error) == text


def test_a_field_that_an_error_does_not_have() -> None:
    with pytest.raises(TypeError, match="PalioError has no field 'row'"):
        PalioError("no").at(row=3)


def test_every_error_is_of_the_tree() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    raised = [kind for kind in kinds if issubclass(kind, BaseException)]
    assert len(raised) > 15
    assert all(issubclass(kind, PalioError) for kind in raised)
