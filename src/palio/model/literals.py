"""Literals of the language: finding them in a text, lifting them out, reading their values.

Rule sets have many predicates of few shapes. `lift` takes the literals out of a text and puts
small numbered ones in their place, so that each shape is parsed once:

    dest = 'MXP' AND price < 500          dest = '0' AND price < 1       ["'MXP'", "500"]
    id IN (3, -5, 8) OR id > 10           id IN (0) OR id > 1            [["3", "-5", "8"], "10"]

A list of literals behind IN becomes one slot, so a set of a million values costs one token of the
parser. Bytes, X'FF', stay in the shape.
Strings are escaped as in Spark SQL.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from decimal import Decimal
from math import isinf
from typing import TypeAlias

from palio.errors import InvalidValue
from palio.model.long_decimals import LongDecimal, compared, digits_of
from palio.model.values import Value, as_value

Literal: TypeAlias = str | list[str]

_DIGITS = frozenset("0123456789.")
_NOT_LITERAL = frozenset("`-/xX")  # how a quoted name, a comment or bytes begin
_STAYS = frozenset("`xX")  # in the shape; a comment does not

# One set of first characters, so that the engine skips quickly to the next candidate. Strings and
# comments that are not closed take the rest: else each quote in it would search to the end again.
_TOKEN = re.compile(
    r"""(['"`0-9./rRxX-](?:
      (?<=')[^'\\]*(?:(?:\\.|'')[^'\\]*)*+(?:'|\\?\Z)           # string
    | (?<=")[^"\\]*(?:(?:\\.|"")[^"\\]*)*+(?:"|\\?\Z)           # string too, as in Spark
    | (?<=[0-9])(?<![\w$.][0-9])[0-9]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?\w*      # number
    | (?<=\.)(?<![\w$.]\.)[0-9]+(?:[eE][+-]?[0-9]+)?\w*
    | (?<=`)[^`]*(?:``[^`]*)*`                                   # quoted name
    | (?<=[rR])(?<![\w$][rR])(?:'[^']*'|"[^"]*")                 # raw string
    | (?<=[xX])(?<![\w$][xX])'[0-9A-Fa-f]*'                      # bytes, which only Spark compares
    | (?<=-)-[^\n]* | (?<=/)\*(?:.*?\*/|.*)                       # comment
    ))""",
    re.VERBOSE | re.DOTALL,
)
_CLOSED = re.compile(
    r"""'[^'\\]*(?:(?:\\.|'')[^'\\]*)*+' | "[^"\\]*(?:(?:\\.|"")[^"\\]*)*+" | /\*.*\*/ | [^'"/].*""",
    re.VERBOSE | re.DOTALL,
)


class BadLiteral(Exception):
    """A literal that cannot stand where it stands."""

    def __init__(self, reason: str, slot: int) -> None:
        super().__init__(reason)
        self.reason, self.slot = reason, slot


def _split(text: str) -> list[str]:
    """Tokens, and what stands before, between and behind them. What is not closed is no token."""
    parts = _TOKEN.split(text)
    if len(parts) > 1 and not parts[-1] and not _CLOSED.fullmatch(parts[-2]):
        parts[-3:] = ["".join(parts[-3:])]
    return parts


def lift(text: str) -> tuple[str, list[Literal]]:
    """The shape of a text, and its literals."""
    parts = _split(text)
    pieces = [parts[0]]
    literals: list[Literal] = []
    listing = _Listing()
    for token, gap in zip(parts[1::2], parts[2::2], strict=True):
        first = token[0]
        if first in _NOT_LITERAL:
            listing.skip(pieces[-1])
            pieces.append(token if first in _STAYS else " ")
        elif listing.continues(pieces[-1], gap):
            _extend(literals, (_separator(pieces.pop()) or "") + token)
        else:
            slot = len(literals)
            pieces.append(str(slot) if first in _DIGITS else f"'{slot}'")
            literals.append(token)
        pieces.append(gap)
    return "".join(pieces), literals


_OPENS_LIST = re.compile(r"\b[iI][nN]\s*+\((?:\s*+[nN][uU][lL][lL]\s*+,)*+\s*+-?\s*+\Z")


class _Listing:
    """Where in a text the list of an IN is, as its literals come by."""

    __slots__ = ("_is_open", "_was_member")

    def __init__(self) -> None:
        self._is_open = self._was_member = False

    def continues(self, before: str, behind: str) -> bool:
        """Whether a literal between these two gaps is a member of a list, and so was the last one."""
        is_next = self._was_member and _separator(before) is not None
        if not is_next:
            is_inside = self._is_open and "(" not in before and ")" not in before
            is_first = _OPENS_LIST.search(before) is not None
            self._is_open = is_inside or is_first
        is_member = (is_next or is_first or (is_inside and _separator(before) is not None)) and (
            behind[:1] in _ENDS_MEMBER or behind.lstrip()[:1] in _ENDS_MEMBER
        )
        self._was_member, was_member = is_member, self._was_member
        return is_member and was_member and is_next

    def skip(self, before: str) -> None:
        """A quoted name, a comment or bytes."""
        self._is_open = self._is_open and "(" not in before and ")" not in before
        self._was_member = False


_ENDS_MEMBER = frozenset(",)")


def _separator(gap: str) -> str | None:
    """What stands between two members of a list: a comma, and perhaps a sign."""
    bare = gap.strip()
    if bare == ",":
        return ""
    if bare[:1] == "," and bare[1:].strip() == "-":
        return "-"
    return None


def _extend(literals: list[Literal], token: str) -> None:
    last = literals[-1]
    if isinstance(last, list):
        last.append(token)
    else:
        literals[-1] = [last, token]


def origin(text: str, offset: int) -> int:
    """Where in the text the character at `offset` of its shape came from."""
    best = 0
    for here, there, length, _ in _walk(text):
        if here > offset:
            break
        best = there + min(offset - here, length)
    return best


def slot_origin(text: str, slot: int) -> int:
    """Where in the text the literal of that slot begins."""
    return next((there for _, there, _, found in _walk(text) if found == slot), 0)


def _walk(text: str) -> Iterator[tuple[int, int, int, int | None]]:
    """Each piece of the text: its place in the shape, its place in the text, length, slot."""
    here = there = 0
    slots = -1
    listing = _Listing()
    parts = _split(text)
    for i, part in enumerate(parts):
        shown, slot = len(part), None
        if i % 2 and part[0] in _NOT_LITERAL:
            listing.skip(parts[i - 1])
            shown = len(part) if part[0] in _STAYS else 1
        elif i % 2:
            if listing.continues(parts[i - 1], parts[i + 1]):
                here -= len(parts[i - 1])
                shown = 0
            else:
                slots += 1
                slot, shown = slots, len(str(slots)) + 2 * (part[0] not in _DIGITS)
        yield here, there, len(part), slot
        here += shown
        there += len(part)


def read(token: str, negative: bool = False) -> Value | LongDecimal:
    """The value of a literal; `negative` for a minus sign in front of it."""
    if token[0] == "'":
        body = token[1:-1]
        if body.isascii() and "\\" not in body and "'" not in body and not negative:
            return body
    elif len(token) < 19 and token.isascii() and token.isdigit():
        return -int(token) if negative else int(token)
    return _read_unusual(token, negative)


def read_integer(text: str) -> int:
    """The integer that a text says, as CAST('...' AS BIGINT) reads it."""
    found = re.fullmatch(r"\s*([+-]?)([0-9]+)\s*", text)
    if not found:
        raise InvalidValue(f"{text[:40]!r} is not an integer")
    value = _number(found[2], found[1] == "-")
    assert isinstance(value, int)
    return value


def read_double(text: str) -> float:
    """The double that a text says, as CAST('...' AS DOUBLE) reads it."""
    bare = text.strip()
    if bare.lower() in _SPECIAL:
        return float(bare)
    if not re.fullmatch(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", bare):
        raise InvalidValue(f"{text[:40]!r} is not a double")
    if isinf(value := float(bare)):
        raise InvalidValue(f"the number {bare[:40]} does not fit in a double")
    return value


_SPECIAL = frozenset(sign + word for sign in ("", "+", "-") for word in ("inf", "infinity", "nan"))


def _read_unusual(token: str, negative: bool) -> Value | LongDecimal:
    first = token[0]
    if first == "-":
        return read(token[1:], not negative)
    if first in "'\"rR":
        if negative:
            raise InvalidValue("a minus sign stands before a string")
        return as_value("literal", token[2:-1] if first in "rR" else _string(token))
    return _number(token, negative)


def _number(token: str, negative: bool) -> Value | LongDecimal:
    if token.isascii() and token.isdigit():
        if len(token) > 25:
            raise InvalidValue(f"the integer {token[:20]}... does not fit in 64 bits")
        whole = -int(token) if negative else int(token)
        return _in_range(whole, token)
    found = _SUFFIXED.fullmatch(token)
    if not found and _HEXADECIMAL.fullmatch(token):
        raise InvalidValue(
            f"SQL has no hexadecimal numbers; write {_in_decimal(token)} for {token[:20]}"
        )
    if not found:
        raise InvalidValue(
            f"{token[:40]!r} is neither a number nor a name", remedy="put `backticks` around a name"
        )
    digits, suffix = found[1], found[2].upper()
    if suffix in ("L", "S", "Y"):
        if not digits.isdigit():
            raise InvalidValue(f"{token[:40]!r} is not an integer")
        return _number(digits, negative)
    value = float(digits)
    if isinf(value):
        raise InvalidValue(f"the number {token[:40]} does not fit in a double")
    if suffix == "F":
        value = _single(value, token)
    elif len(digits) > _PLAIN_MAX and _is_decimal(digits, suffix):
        return _decimal(Decimal(digits), negative)
    return -value if negative else value


_PLAIN_MAX, _DECIMAL_MAX = 15, 1_000
"""Characters: those of a decimal that is a double in any case, and of one that is read as a decimal."""


def _is_decimal(digits: str, suffix: str) -> bool:
    is_exact = suffix == "BD" or (suffix != "D" and "e" not in digits.lower())
    return is_exact and len(digits) <= _DECIMAL_MAX


def _decimal(value: Decimal, negative: bool) -> float | LongDecimal:
    """A decimal of up to 38 digits is what is written; of one with more the double counts."""
    signed = value.copy_negate() if negative else value  # a minus would round it
    return float(signed) if digits_of(signed) is None else compared(signed)


_SUFFIXED = re.compile(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)(|[lLsSyYdDfF]|[bB][dD])")
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]+|0[bB][01]+")


def _in_decimal(token: str) -> str:
    return str(int(token, 0)) if len(token) < 18 else "it in decimal"


def _single(value: float, token: str) -> float:
    """1.5F has 32 bits."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        raise InvalidValue(f"the number {token[:40]} does not fit in 32 bits") from None


def _in_range(value: int, token: str) -> int:
    if -(2**63) <= value < 2**63:
        return value
    raise InvalidValue(f"the integer {token} does not fit in 64 bits")


_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))|''|\"\"", re.DOTALL
)
_CONTROLS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def _string(token: str) -> str:
    body = token[1:-1]
    if "\\" in body or token[0] in body:
        quote = token[0]
        body = _ESCAPE.sub(lambda found: _unescape(found, quote), body)
        if not body.isascii():  # \uD83D\uDE00 is one character, as in Spark
            body = body.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return body


def _unescape(found: re.Match[str], quote: str) -> str:
    whole = found[0]
    if whole[0] != "\\":
        return quote if whole[0] == quote else whole
    short, long, octal, char = found.groups()
    if short or long:
        code = int(short or long, 16)
        if code > 0x10FFFF:
            raise InvalidValue(f"{whole} is not a character")
        return chr(code)
    if octal:
        return chr(int(octal, 8))
    if char in "%_":  # kept for LIKE
        return whole
    return _CONTROLS.get(char, str(char))
