"""Errors that another program carries as text: Spark, between its workers and the driver.

    in the worker    with carried(): ...     a PalioError gets its fields as a note
    another program  puts the trace of it into the text of an exception of its own
    in the driver    recovered(exception)    the PalioError again, or None when there is none

The note is one line of JSON behind a mark. Python prints it below the error in every trace. Only
that line is read back, so no sentence is ever taken apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from palio import errors
from palio.errors import PalioError

_MARK = "palio-error-fields: "


@contextmanager
def carried() -> Iterator[None]:
    """Around code that another program calls. Also a decorator, but not of generators."""
    try:
        yield
    except PalioError as error:
        if not hasattr(error, "__notes__"):
            error.add_note(note(error))
        raise


def note(error: PalioError) -> str:
    """The line by which `recovered` makes the error again."""
    return _MARK + json.dumps(to_fields(error))


def recovered(error: BaseException) -> PalioError | None:
    """The PalioError behind an exception of another program.

    >>> line = note(errors.InvalidValue("no integer", attribute="x", row=2))
    >>> recovered(RuntimeError(f"task 7 failed\\n{line}\\n  at org.apache.spark.Task")).row
    2
    """
    if isinstance(error, PalioError):
        return error
    _, mark, rest = str(error).rpartition(_MARK)
    if not mark:
        return None
    try:
        fields, _ = json.JSONDecoder().raw_decode(rest)
        return from_fields(fields)
    except (ValueError, LookupError, TypeError):  # cut off on the way
        return None


def to_fields(error: PalioError) -> dict[str, Any]:
    """The type and the fields of an error, as JSON has them.

    An error of another type than those below becomes a PalioError with the same text.
    """
    kind = type(error).__name__
    if _TYPES.get(kind) is not type(error):
        return {"type": "PalioError", "reason": str(error)}
    fields = {n: v for n, v in error.__dict__.items() if v is not None and n != "__notes__"}
    plain = {n: str(v) if isinstance(v, Path) else v for n, v in fields.items()}
    return {"type": kind, **plain}


def from_fields(fields: dict[str, Any]) -> PalioError:
    """The error that `to_fields` was given."""
    given = dict(fields)
    kind = _TYPES[given.pop("type")]
    return kind(given.pop("reason")).at(**given)


_TYPES: dict[str, type[PalioError]] = {
    "PalioError": PalioError,
    "InvalidValue": errors.InvalidValue,
    "InvalidMessage": errors.InvalidMessage,
    "InvalidPredicate": errors.InvalidPredicate,
    "InvalidPattern": errors.InvalidPattern,
    "ParseError": errors.ParseError,
    "LimitExceeded": errors.LimitExceeded,
    "InvalidFile": errors.InvalidFile,
    "NetworkError": errors.NetworkError,
    "Unreachable": errors.Unreachable,
    "RefusedByBroker": errors.RefusedByBroker,
    "SubscriptionEnded": errors.SubscriptionEnded,
    "ClientClosed": errors.ClientClosed,
    "MissingSoftware": errors.MissingSoftware,
}
