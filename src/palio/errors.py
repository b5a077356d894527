"""The errors of the library: one small tree rooted at PalioError.

An error is a value. Its fields say what is wrong (`reason`), where (an attribute, a row, a file, a
character) and what to do about it (`remedy`); its text is made of them. Code that knows the place
better than the code that raised copies the error with `at`; nobody reads or edits the text of
another error. Fields survive pickling.

The library raises one of these for every bad input. Anything else that escapes is a bug.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self


class PalioError(Exception):
    """Root of all errors that this library raises on purpose."""

    def __init__(self, reason: str = "", *, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy

    @property
    def detail(self) -> str:
        """The reason and the remedy, without the place."""
        return f"{self.reason}; {self.remedy}" if self.remedy else self.reason

    def at(self, **fields: Any) -> Self:
        """A copy of this error with some fields changed.

        >>> str(InvalidValue("the number does not fit", attribute="x").at(row=3))
        "attribute 'x', row 3: the number does not fit"
        """
        changed = copy.copy(self)
        changed.__dict__.pop("__notes__", None)  # they tell the old fields
        for name, value in fields.items():
            if name not in changed.__dict__:
                raise TypeError(f"{type(self).__name__} has no field {name!r}")
            setattr(changed, name, value)
        return changed

    def __str__(self) -> str:
        return self.detail


class InvalidValue(PalioError, ValueError):
    """A value, attribute or message that the model does not admit."""

    def __init__(
        self,
        reason: str,
        *,
        attribute: str | None = None,
        row: int | None = None,
        remedy: str = "",
    ) -> None:
        super().__init__(reason, remedy=remedy)
        self.attribute = attribute
        self.row = row

    def __str__(self) -> str:
        return _placed(self.detail, _attribute(self.attribute), _row(self.row))


class InvalidMessage(InvalidValue):
    """A row that holds no message. `message` is the text of the row, where it has one."""

    def __init__(
        self,
        reason: str,
        *,
        attribute: str | None = None,
        row: int | None = None,
        message: str = "",
        remedy: str = "",
    ) -> None:
        super().__init__(reason, attribute=attribute, row=row, remedy=remedy)
        self.message = message

    def __str__(self) -> str:
        reason = _placed(self.reason, _attribute(self.attribute))
        found = f", in {self.message}" if self.message else ""
        remedy = f" ({self.remedy})" if self.remedy else ""
        return _placed(f"a row is no message: {reason}{found}{remedy}", _row(self.row))


class InvalidPredicate(PalioError, ValueError):
    """A constraint, filter or predicate that makes no sense, whatever it was made from.

    `row` counts from 0 within `table`. `filter` and `constraint` count from 1 within the predicate,
    which is that of `interface` where it is one of many.
    """

    def __init__(
        self,
        reason: str,
        *,
        attribute: str | None = None,
        row: int | None = None,
        table: str = "",
        filter: int | None = None,
        constraint: int | None = None,
        interface: str | None = None,
        remedy: str = "",
    ) -> None:
        super().__init__(reason, remedy=remedy)
        self.attribute = attribute
        self.interface = interface
        self.row = row
        self.table = table
        self.filter = filter
        self.constraint = constraint

    @classmethod
    def of_value(cls, error: InvalidValue) -> InvalidPredicate:
        """The error of a constraint whose name or value is invalid."""
        return InvalidPredicate(error.reason, attribute=error.attribute, remedy=error.remedy)

    def __str__(self) -> str:
        row = f"{_row(self.row)} of {self.table}" if self.table else _row(self.row)
        filter = "" if self.filter is None else f"filter {self.filter}"
        constraint = "" if self.constraint is None else f"constraint {self.constraint}"
        inner = _placed(self.detail, _attribute(self.attribute))
        own = "" if self.interface is None else f"interface {self.interface!r}"
        return _placed(inner, own, row, filter, constraint)


class InvalidPattern(PalioError, ValueError):
    """A pattern that makes no sense, whatever it was made from."""


class ParseError(InvalidPredicate):
    """A text that is not a predicate, or not a pattern. It points at the character that is wrong.

    `text` is the whole text and `position` a character offset in it; `str()` shows the line with
    a caret below the character.
    """

    def __init__(self, reason: str, text: str = "", position: int = 0) -> None:
        super().__init__(reason)
        self.text = text
        self.position = max(0, min(position, len(text)))

    def __str__(self) -> str:
        return super().__str__() + _caret(self.text, self.position)


class LimitExceeded(ParseError):
    """An answer exists, but it is larger than the limit that was given."""


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row of a table of predicates that holds no predicate."""

    interface: str | None
    predicate: str | None
    error: str

    def __str__(self) -> str:
        return f"interface {self.interface!r}: {self.error}"


class RejectedPredicates(InvalidPredicate):
    """Rows of a table of predicates that hold no predicate: how many, and the first few of them."""

    def __init__(
        self, count: int, rows: Sequence[RejectedRow], *, remedy: str = "", source: str = ""
    ) -> None:
        what = "row is no predicate" if count == 1 else "rows are no predicates"
        super().__init__(f"{count:,} {what}", remedy=remedy)
        self.count = count
        self.rows = tuple(rows)
        self.source = source

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.count, self.rows), self.__dict__)

    def __str__(self) -> str:
        more = self.count - len(self.rows)
        lines = [_placed(self.detail, self.source), *map(str, self.rows)]
        return "\n".join(lines + ([f"... and {more:,} more"] if more else []))


class InvalidTopology(PalioError, ValueError):
    """Edges that are no network, or a processor that is not in it."""


class InvalidFile(PalioError):
    """A file or a directory that cannot be read or written as what it is said to be."""

    def __init__(self, reason: str, *, path: str | Path | None = None, remedy: str = "") -> None:
        super().__init__(reason, remedy=remedy)
        self.path = path

    def __str__(self) -> str:
        return _placed(self.detail, "" if self.path is None else str(self.path))


class RoutingError(PalioError):
    """An event that a router cannot take: from somebody who is not there, or a second master."""


class NetworkError(PalioError):
    """Something went wrong between a client and its broker.

    `code` is the broker's, for programs: a value of `CloseCode`, `EndCode` or `RefusalCode`
    (palio.protocol.wire.codes). It is empty where the broker did not say anything.
    """

    def __init__(self, reason: str = "", *, code: str = "", remedy: str = "") -> None:
        super().__init__(reason, remedy=remedy)
        self.code = code


class Unreachable(NetworkError, ConnectionError):
    """No broker answers there, or none did for too long."""


class RefusedByBroker(NetworkError):
    """The broker said no: to the client, to a subscription, a message or a request."""


class LivesElsewhere(RefusedByBroker):
    """A durable subscription lives at another broker, which the client cannot reach by itself."""

    def __init__(self, reason: str, broker: str, address: str) -> None:
        super().__init__(reason, code="elsewhere")
        self.broker = broker
        self.address = address
        """At which clients reach it; empty: nobody has said."""


class SubscriptionEnded(NetworkError):
    """The broker, or the program itself, ended a subscription that is still in use."""


class NoReply(NetworkError, TimeoutError):
    """Nobody answered a request in time. It may have been processed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"no reply came within {seconds:g} s",
            remedy="check that somebody subscribes to the request and calls `note.reply`, or give a "
            "larger timeout",
        )
        self.seconds = seconds


class ClientClosed(NetworkError):
    """The client is closed, or was never opened."""


class MissingSoftware(PalioError, ImportError):
    """Java or a package that is not installed, or too old."""


# ---- texts


def _placed(text: str, *place: str) -> str:
    where = ", ".join(part for part in place if part)
    return f"{where}: {text}" if where else text


def _attribute(name: str | None) -> str:
    return "" if name is None else f"attribute {name!r}"


def _row(row: int | None) -> str:
    return "" if row is None else f"row {row}"


def _caret(text: str, position: int, width: int = 72) -> str:
    """The line around `position` with a caret under the character, cut to `width`."""
    if not text:
        return ""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)]
    column = position - start
    cut = max(0, min(column - width // 2, len(line) - width))
    shown = line[cut : cut + width]
    before = "..." if cut else ""
    after = "..." if cut + width < len(line) else ""
    pad = "".join("\t" if c == "\t" else " " for c in before + shown[: column - cut])
    number = text.count("\n", 0, start)
    place = f" (line {number + 1})" if number else ""
    return f"{place}\n  {before}{shown}{after}\n  {pad}^"
