"""The errors of the library: one small tree rooted at PalioError.

A message names the thing, the place and the remedy. Everything that the library raises on
bad input is one of these; anything else that escapes is a bug.
"""

from __future__ import annotations


class PalioError(Exception):
    """Root of all errors that this library raises on purpose."""


class InvalidValue(PalioError, ValueError):
    """A value, attribute or message that the model does not admit."""


class InvalidPredicate(PalioError, ValueError):
    """A constraint, filter or predicate that makes no sense, whatever it was made from."""


class InvalidPattern(PalioError, ValueError):
    """A pattern that makes no sense, whatever it was made from."""


class ParseError(InvalidPredicate):
    """A text that is not a predicate, or not a pattern. It points at the character where it goes wrong.

    `text`, `position` (a character offset) and `reason` are there for programs; `str()` shows
    the line with a caret below it.
    """

    def __init__(self, reason: str, text: str = "", position: int = 0) -> None:
        self.reason = reason
        self.text = text
        self.position = max(0, min(position, len(text)))
        super().__init__(reason + _caret(text, self.position))

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, str, int]]:
        return (type(self), (self.reason, self.text, self.position))


class LimitExceeded(ParseError):
    """An answer exists, but it is larger than the limit that was given."""


class InvalidTopology(PalioError, ValueError):
    """Edges that are no network, or a processor that is not in it."""


class InvalidFile(PalioError):
    """A file that cannot be read as what it is said to be."""


class RoutingError(PalioError):
    """An event that a router cannot take: from somebody who is not there, or a second master."""


class NetworkError(PalioError):
    """Something went wrong between a client and its broker."""


class Unreachable(NetworkError, ConnectionError):
    """No broker answers there, or none did for too long."""


class RefusedByBroker(NetworkError):
    """The broker said no: to the client, to a subscription, a message or a request."""


class SubscriptionEnded(NetworkError):
    """The broker, or the program itself, ended a subscription that is still in use."""


class ClientClosed(NetworkError):
    """The client is closed, or was never opened."""


class MissingSoftware(PalioError, ImportError):
    """Java or a package that is not installed, or too old."""


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
