"""The tokens of a message selector: names, literals, operators, and where each begins.

Beside those of the specification (Jakarta Messaging 3.1, 3.8.1) there are what brokers take too: names
in double quotes, names with dots, `!=`, `%`, and comments as in SQL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isinf
from typing import TypeAlias

from palio.errors import ParseError
from palio.model.values import INT_MAX

KEYWORDS = frozenset("NOT AND OR BETWEEN LIKE ESCAPE IN IS TRUE FALSE NULL".split())

_BLANKS = r"(?:\s++|--[^\r\n]*+|/\*.*?\*/)*+"
_SKIPPED = re.compile(_BLANKS, re.DOTALL)
_TOKEN = re.compile(
    _BLANKS
    + r"""(?:
        (?P<name>(?:[^\W\d]|\$)[\w$]*+(?:\.(?:[^\W\d]|\$)[\w$]*+)*+)
      | (?P<string>'(?:[^']|'')*+')
      | (?P<radix>0[xXbB]\w*+)
      | (?P<number>(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?\w*+)
      | (?P<operator><>|<=|>=|!=|=(?!=)|/(?!\*)|[<>+*%(),-])
      | (?P<quoted>"(?:[^"]|"")++")
      | (?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"([0-9_]+)([lL]?)|((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")
_RADIX = re.compile(r"0[xX]([0-9a-fA-F]+)[lL]?|0[bB]([01]+)[lL]?")
_UNCLOSED = {
    "'": "this string is not closed",
    '"': "this name is not closed, or empty",
    "/*": "this comment is not closed",
}
_ELSEWHERE = {"==": "=", "&&": "AND", "||": "OR", "!": "NOT"}


@dataclass(frozen=True, slots=True)
class JmsToken:
    """A keyword or an operator is its text (`kind`); names and literals have a value."""

    kind: str
    value: str | int | float
    position: int


Tokens: TypeAlias = list[JmsToken]


def tokens_of(text: str) -> Tokens:
    """All tokens of a selector, and one of the kind "end"."""
    found: Tokens = []
    at, kind = 0, ""
    while kind != "end":
        match = _TOKEN.match(text, at)
        if match is None:
            skipped = _SKIPPED.match(text, at)
            at = skipped.end() if skipped else at
            raise ParseError(_unreadable(text, at), text, at)
        kind, at = str(match.lastgroup), match.end()
        found.append(_token(text, kind, match[kind], match.start(kind)))
    return found


def _token(text: str, kind: str, raw: str, at: int) -> JmsToken:
    if kind == "name":
        word = raw.upper()
        return JmsToken(word if word in KEYWORDS else "name", raw, at)
    if kind == "operator":
        return JmsToken("<>" if raw == "!=" else raw, raw, at)
    if kind == "string":
        return JmsToken("string", raw[1:-1].replace("''", "'"), at)
    if kind == "quoted":
        return JmsToken("name", raw[1:-1].replace('""', '"'), at)
    if kind == "end":
        return JmsToken("end", "", len(text))
    try:
        return JmsToken("number", _radix(raw) if kind == "radix" else _number(raw), at)
    except ValueError as error:
        raise ParseError(str(error), text, at) from None


def _number(raw: str) -> int | float:
    found = _NUMBER.fullmatch(raw)
    if found is None:
        raise ValueError(f"{raw[:40]!r} is neither a number nor a name")
    if found[1] is None:
        value = float(found[3])
        if isinf(value):
            raise ValueError(f"the number {raw[:40]} does not fit in a double")
        return value
    digits = found[1].replace("_", "")
    if len(digits) > 1 and digits[0] == "0":
        if not set(digits) <= set("01234567"):
            raise ValueError(f"{raw[:40]} begins with 0, so it is octal, and has other digits")
        return _fitting(int(digits, 8) if len(digits) < 30 else INT_MAX + 2, raw)
    return _fitting(int(digits) if len(digits) < 30 else INT_MAX + 2, raw)


def _radix(raw: str) -> int:
    found = _RADIX.fullmatch(raw)
    if found is None:
        raise ValueError(f"{raw[:40]!r} is neither a number nor a name")
    if len(raw) > 80:
        return _fitting(INT_MAX + 2, raw)
    return _fitting(int(found[1], 16) if found[1] else int(found[2], 2), raw)


def _fitting(value: int, raw: str) -> int:
    """One more than the largest may stand behind a minus sign."""
    if value > INT_MAX + 1:
        raise ValueError(f"the integer {raw[:40]} does not fit in 64 bits")
    return value


def _unreadable(text: str, at: int) -> str:
    for opening, reason in _UNCLOSED.items():
        if text.startswith(opening, at):
            return reason
    for written, meant in _ELSEWHERE.items():
        if text.startswith(written, at):
            return f"a selector has no {written}; write {meant}"
    return f"{text[at]} has no meaning here"
