"""name=value on a command line: attributes, typed as SQL types a literal, and types of columns.

    450, -3          int            450.0, 1e3      float        true, FALSE     bool
    TIMESTAMP '2026-01-31 10:00'    time            '450', MXP   string

A value that looks like none of these is the string that it is, so that a shell's quotes are enough;
SQL's own quotes make a string of anything.
"""

from __future__ import annotations

import re

from palio.errors import InvalidValue, PalioError
from palio.model.message import Message
from palio.model.values import Value, as_value, parse_instant

_INT = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][+-]?[0-9]+)?")
_TIME = re.compile(r"timestamp\s*'([^']*)'", re.IGNORECASE)
_QUOTED = re.compile(r"'((?:[^']|'')*)'", re.DOTALL)


def message_of(words: list[str]) -> Message:
    """The message of these attributes.

    >>> message_of(["price=450", "dest=MXP", "zip='00501'", "direct=true"])
    Message({'price': 450, 'dest': 'MXP', 'zip': '00501', 'direct': True})
    """
    attributes: dict[str, Value] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise InvalidValue(
                f"an attribute is written name=value, such as price=450, not {word!r}"
            )
        if name in attributes:
            raise InvalidValue(f"the attribute {name!r} is given twice")
        attributes[name] = _value(name, text)
    return Message(attributes)


def types_of(entries: list[str] | None) -> dict[str, str]:
    """The types that are given by name.

    >>> types_of(["zip=string", "price=float"])
    {'zip': 'string', 'price': 'float'}
    """
    types: dict[str, str] = {}
    for entry in entries or []:
        name, equals, type = entry.partition("=")
        if not equals:
            raise PalioError(f"--types takes name=type, got {entry!r}")
        types[name] = type
    return types


def _value(name: str, text: str) -> Value:
    if _INT.fullmatch(text):
        return as_value(name, int(text))
    if _FLOAT.fullmatch(text):
        return float(text)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if (time := _TIME.fullmatch(text)) is not None:
        return parse_instant(time[1])
    if (quoted := _QUOTED.fullmatch(text)) is not None:
        return as_value(name, quoted[1].replace("''", "'"))
    return as_value(name, text)
