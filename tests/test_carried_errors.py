"""Errors that pass through another program as text come back with their fields."""

from __future__ import annotations

import traceback

import pytest

from palio.carried_errors import carried, from_fields, note, recovered, to_fields
from palio.errors import InvalidValue, PalioError, RejectedPredicates
from palio.protocol.broker.access import Forbidden
from tests.test_errors import ERRORS

CARRIED = [error for error, _ in ERRORS if not isinstance(error, RejectedPredicates)]


def trace_of(error: PalioError) -> str:
    """What a worker of Spark sends to the driver."""
    try:
        with carried():
            raise error
    except PalioError:
        return traceback.format_exc()


@pytest.mark.parametrize("error", CARRIED, ids=lambda error: type(error).__name__)
def test_an_error_comes_back(error: PalioError) -> None:
    text = f"Task 3 failed: {trace_of(error)}\n\tat org.apache.spark.Task.run\nCaused by: {error}"
    found = recovered(RuntimeError(text))
    assert type(found) is type(error)
    assert str(found) == str(error)


def test_one_of_ours_is_itself() -> None:
    error = InvalidValue("no")
    assert recovered(error) is error


def test_another_type_keeps_its_text() -> None:
    found = recovered(RuntimeError(trace_of(Forbidden("not for you"))))
    assert type(found) is PalioError
    assert str(found) == "not for you"


@pytest.mark.parametrize(
    "text",
    [
        "java.lang.OutOfMemoryError",
        note(InvalidValue("no", row=3))[:-4],
        note(InvalidValue("no")).replace("InvalidValue", "SomethingElse"),
        note(InvalidValue("no")).replace("reason", "season"),
    ],
)
def test_what_holds_none(text: str) -> None:
    assert recovered(RuntimeError(text)) is None


def test_the_note_is_made_once() -> None:
    error = InvalidValue("no", attribute="x")
    with pytest.raises(InvalidValue), carried(), carried():
        raise error
    assert error.__notes__ == [note(InvalidValue("no", attribute="x"))]


def test_fields_are_json() -> None:
    fields = to_fields(InvalidValue("no", attribute="x", row=2))
    assert fields == {
        "type": "InvalidValue",
        "reason": "no",
        "remedy": "",
        "attribute": "x",
        "row": 2,
    }
    assert from_fields(fields).__dict__ == InvalidValue("no", attribute="x", row=2).__dict__
