"""Functions of strings, with the meaning that Spark SQL gives them. Positions count from 1."""

from __future__ import annotations

from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.number_functions import Computed, whole
from palio.model.values import INT_MAX

LENGTH_MAX = 1 << 20
"""Characters of a string that a function makes."""


def text(value: Computed) -> str:
    """The argument of a function that takes a string; nothing is cast."""
    if isinstance(value, str):
        return value
    raise ExpressionError(f"a string is needed, not {value!r}")


def lower(value: Computed) -> str:
    return text(value).lower()


def upper(value: Computed) -> str:
    return text(value).upper()


def trim(value: Computed, characters: Computed = " ") -> str:
    return text(value).strip(text(characters))


def ltrim(value: Computed, characters: Computed = " ") -> str:
    return text(value).lstrip(text(characters))


def rtrim(value: Computed, characters: Computed = " ") -> str:
    return text(value).rstrip(text(characters))


def length(value: Computed) -> int:
    """In characters."""
    return len(text(value))


def substring(value: Computed, position: Computed, count: Computed = INT_MAX) -> str:
    """From a position; a negative one counts from the end, and 0 is 1."""
    found, start = text(value), whole(position)
    begin = start - 1 if start > 0 else len(found) + start if start < 0 else 0
    end = begin + whole(count)
    return found[max(0, begin) : max(0, end)]


def left(value: Computed, count: Computed) -> str:
    return text(value)[: max(0, whole(count))]


def right(value: Computed, count: Computed) -> str:
    wanted, found = whole(count), text(value)
    return found[max(0, len(found) - wanted) :] if wanted > 0 else ""


def concat(*values: Computed) -> str:
    parts = [text(value) for value in values]
    _check_length(sum(map(len, parts)))
    return "".join(parts)


def replace(value: Computed, wanted: Computed, other: Computed = "") -> str:
    """An empty string is found nowhere."""
    whole_text, found, replacement = text(value), text(wanted), text(other)
    if not found:
        return whole_text
    added = whole_text.count(found) * (len(replacement) - len(found))
    _check_length(len(whole_text) + added)
    return whole_text.replace(found, replacement)


def _check_length(characters: int) -> None:
    """Before the string is made: `replace` in `replace` could make any number of characters."""
    if characters > LENGTH_MAX:
        raise ExpressionError(f"a string of {characters:,} characters; the limit is {LENGTH_MAX:,}")


def split_part(value: Computed, delimiter: Computed, number: Computed) -> str:
    """A part between delimiters; a negative number counts from the end."""
    found, between, wanted = text(value), text(delimiter), whole(number)
    if wanted == 0:
        raise ExpressionError("parts are counted from 1")
    parts = found.split(between) if between else [found]
    at = wanted - 1 if wanted > 0 else len(parts) + wanted
    return parts[at] if 0 <= at < len(parts) else ""


def position(wanted: Computed, value: Computed, start: Computed = 1) -> int:
    """Where a string begins in another; 0: nowhere."""
    found, begin = text(value), whole(start)
    return found.find(text(wanted), begin - 1) + 1 if begin > 0 else 0


def startswith(value: Computed, other: Computed) -> bool:
    return text(value).startswith(text(other))


def endswith(value: Computed, other: Computed) -> bool:
    return text(value).endswith(text(other))


def contains(value: Computed, other: Computed) -> bool:
    return text(other) in text(value)
