"""The papers' own notation: one constraint a line, filters separated by a line `or`.

    string class >* finance/exchanges/          type name operator value
    float change > 10.5
    or
    string carrier in ["UA", "AA"]              a list is JSON
    * gate absent                               no type

A text is bare to the end of its line where that can mean only one thing, and a JSON string
elsewhere; so is a name. Only a line feed ends a line; blank lines and lines that start with # do
not count. A filter without constraints is the line `true`, a predicate without filters the line
`false`. Reading what was printed gives the same value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NoReturn

from palio.errors import InvalidPredicate, InvalidValue, ParseError
from palio.model.message import Message
from palio.model.predicate import ORDER_OPS, STRING_OPS, Constraint, Filter, Op, Predicate
from palio.model.values import (
    INT_MAX,
    INT_MIN,
    Type,
    Value,
    as_name,
    as_value,
    format_instant,
    parse_instant,
    type_of,
)

_TYPES = {str(kind): kind for kind in Type}
_TYPES |= {"boolean": Type.BOOL, "integer": Type.INT, "double": Type.FLOAT}
_NO_TYPE = "*"

_SIGNS = {op: str(op) for op in Op} | {
    Op.PREFIX: ">*",
    Op.SUFFIX: "*<",
    Op.CONTAINS: "*",
    Op.NOT_PREFIX: "!>*",
    Op.NOT_SUFFIX: "!*<",
    Op.NOT_CONTAINS: "!*",
}
_OPS = {sign: op for op, sign in _SIGNS.items()}

_OPEN_NAME = re.compile(r"[\"=!<>*]")  # a name with one of these is quoted


def parse_predicate(text: str) -> Predicate:
    """Read a predicate; ParseError points at the character that is wrong.

    >>> parse_predicate("string carrier = UA\\ninteger delay > 60\\nor\\nstring dest any")
    Predicate(carrier = 'UA' AND delay > 60 OR typeof(dest) = 'string')
    """
    blocks: list[list[_Line]] = [[]]
    for line in _lines(text):
        if line.whole != "or":
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
        else:
            line.fail("no constraint stands before this or", line.at)
    if len(blocks) > 1 and not blocks[-1]:
        raise ParseError("no constraint stands behind the last or", text, len(text.rstrip()))
    return Predicate(tuple(f for f in (_filter(text, block) for block in blocks) if f is not None))


def parse_filter(text: str) -> Filter:
    """Read one filter, as `parse_predicate` does."""
    lines = list(_lines(text))
    for line in lines:
        if line.whole == "or":
            line.fail("this separates filters, and one is expected", line.at)
    found = _filter(text, lines)
    if found is None:
        lines[0].fail("false is a predicate, not a filter", lines[0].at)
    return found


def parse_message(text: str) -> Message:
    """Read a message, one attribute a line.

    >>> parse_message("string dest = MXP\\nint price = 450")
    Message({'dest': 'MXP', 'price': 450})
    """
    values: dict[str, Value] = {}
    for line in _lines(text):
        kind, kind_at = line.type()
        name, name_at = line.name()
        op, op_at = line.op()
        if op is not Op.EQ:
            line.fail("in a message an attribute takes =", op_at)
        if kind is None:
            line.fail("an attribute has a type", kind_at)
        if name in values:
            line.fail(f"the attribute {name!r} is there twice", name_at)
        value, value_at = line.operand(kind, op)
        try:
            values[name] = as_value(name, value)
        except InvalidValue as error:
            line.fail(str(error), value_at)
    return Message(values)


def print_predicate(predicate: Predicate) -> str:
    """The lines of a predicate, which `parse_predicate` reads.

    >>> from palio.model.language import parse
    >>> print(print_predicate(parse("class LIKE 'finance/%' OR gate IS NULL")))
    string class >* finance/
    or
    * gate absent
    """
    return "\nor\n".join(map(print_filter, predicate.filters)) or "false"


def print_filter(conjunction: Filter) -> str:
    """The lines of a filter, which `parse_filter` reads."""
    return "\n".join(map(_constraint_line, conjunction.constraints)) or "true"


def print_message(message: Message) -> str:
    """The lines of a message, which `parse_message` reads.

    >>> print(print_message(Message({"dest": "MXP", "note": " now"})))
    string dest = MXP
    string note = " now"
    """
    return "\n".join(
        f"{type_of(value)} {_name_text(name)} = {_value_text(value)}"
        for name, value in message.items()
    )


class _Line:
    """One line, read from left to right; its errors point into the whole text."""

    __slots__ = ("at", "end", "text")

    def __init__(self, text: str, at: int, end: int) -> None:
        self.text, self.at, self.end = text, at, end

    @property
    def whole(self) -> str:
        return self.text[self.at : self.end]

    def fail(self, reason: str, at: int) -> NoReturn:
        raise ParseError(reason, self.text, at)

    def type(self) -> tuple[Type | None, int]:
        word, at = self.word("the type")
        if word != _NO_TYPE and word not in _TYPES:
            self.fail(f"no type {_cut(word)}; there are {', '.join(_TYPES)}, and * for none", at)
        return _TYPES.get(word), at

    def name(self) -> tuple[str, int]:
        at = self.at
        if self.text[at : at + 1] == '"':
            name = self.quoted()
        else:
            name, at = self.word("the attribute's name")
            if _OPEN_NAME.search(name):
                self.fail("put white space around the operator, or quotes around the name", at)
        try:
            return as_name(name), at
        except InvalidValue as error:
            self.fail(str(error), at)

    def op(self) -> tuple[Op, int]:
        word, at = self.word("the operator")
        if word not in _OPS:
            self.fail(f"no operator {_cut(word)}; there are {' '.join(_OPS)}", at)
        return _OPS[word], at

    def operand(self, kind: Type, op: Op) -> tuple[object, int]:
        """What stands between the operator and the end of the line."""
        token, at = self.whole, self.at
        if not token:
            self.fail(f'{_SIGNS[op]} needs a value (an empty string is "")', at)
        try:
            if op is Op.IN:
                return _members(kind, token), at
            if kind is Type.STRING and token[0] == '"':
                return _JSON.decode(token), at
            return _READ[kind](token), at
        except json.JSONDecodeError as error:
            self.fail(f"this is not JSON: {error.msg}", at + error.pos)
        except RecursionError:
            self.fail("the list is nested too deeply", at)
        except InvalidValue as error:
            self.fail(str(error), at)

    def word(self, what: str) -> tuple[str, int]:
        """The next word, and where it stands."""
        at = self.at
        if at == self.end:
            self.fail(f"{what} is missing", at)
        found = _WORD.match(self.text, at, self.end)
        assert found is not None  # a line starts with a word, and so does what is left of it
        self.at = found.end()
        return found[1], at

    def quoted(self) -> str:
        """The next word, which is a JSON string."""
        try:
            value, length = _JSON.raw_decode(self.whole)
        except json.JSONDecodeError as error:
            self.fail(f"the quoted name cannot be read: {error.msg}", self.at + error.pos)
        rest = self.whole[length:]
        self.at = self.end - len(rest.lstrip())
        if rest and not rest[0].isspace():
            self.fail("white space is missing behind the name", self.at)
        return str(value)


_WORD = re.compile(r"(\S+)\s*")


def _lines(text: str) -> Iterator[_Line]:
    """The lines that count, without the white space around them."""
    if not isinstance(text, str):
        raise InvalidPredicate(f"the notation is read from a string, not a {type(text).__name__}")
    start = 0
    for raw in text.split("\n"):
        bare = raw.strip()
        if bare and bare[0] != "#":
            at = start + len(raw) - len(raw.lstrip())
            yield _Line(text, at, at + len(bare))
        start += len(raw) + 1


def _filter(text: str, lines: list[_Line]) -> Filter | None:
    """The conjunction of these lines; None is the line `false`."""
    if not lines:
        raise ParseError("there is no constraint; the line true selects every message", text)
    for line in lines:
        if line.whole in ("true", "false"):
            if len(lines) > 1:
                line.fail(f"{line.whole} stands alone in its filter", line.at)
            return Filter(()) if line.whole == "true" else None
    return Filter(tuple(map(_constraint, lines)))


def _constraint(line: _Line) -> Constraint:
    kind, kind_at = line.type()
    name = line.name()[0]
    op, op_at = line.op()
    if op is Op.ANY or op is Op.ABSENT:
        if line.at < line.end:
            line.fail(f"{op} takes no value", line.at)
        if op is Op.ABSENT and kind is not None:
            line.fail("absent has no type; write * in its place", kind_at)
        return Constraint(name, op, type=kind)
    if kind is None:
        line.fail("only any and absent go without a type", kind_at)
    if op in STRING_OPS and kind is not Type.STRING:
        line.fail(f"{_SIGNS[op]} takes a string, and the type is {kind}", op_at)
    if op in ORDER_OPS and kind is Type.BOOL:
        line.fail(f"{op} does not order booleans; use = or !=", op_at)
    value, value_at = line.operand(kind, op)
    try:
        return Constraint(name, op, value)  # type: ignore[arg-type]  # it checks the value
    except InvalidPredicate as error:
        line.fail(str(error), value_at)


class _Number(str):
    """A number of a JSON list, not read yet."""


def _no_constant(word: str) -> NoReturn:
    raise InvalidValue(f'{word} is not JSON; write "inf" or "-inf" in a list')


_JSON = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_no_constant)

_INT = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL = dict.fromkeys(("inf", "Infinity"), math.inf)
_SPECIAL |= dict.fromkeys(("-inf", "-Infinity"), -math.inf)
_SPECIAL |= dict.fromkeys(("nan", "NaN"), math.nan)
_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?")


def _bool(token: str) -> bool:
    if token not in ("true", "false"):
        raise InvalidValue(f"{_cut(token)} is not a bool; write true or false")
    return token == "true"


def _int(token: str) -> int:
    if not _INT.fullmatch(token):
        raise InvalidValue(f"{_cut(token)} is not an int")
    if len(token) > 4000 or not INT_MIN <= int(token) <= INT_MAX:
        raise InvalidValue(f"the integer {_cut(token)} does not fit in 64 bits")
    return int(token)


def _float(token: str) -> float:
    if token in _SPECIAL:
        return _SPECIAL[token]
    if not _FLOAT.fullmatch(token):
        raise InvalidValue(f"{_cut(token)} is not a float")
    value = float(token)
    if math.isinf(value):
        raise InvalidValue(f"the number {_cut(token)} does not fit in a double")
    return value


def _time(token: str) -> datetime:
    """An instant; a time of day, as in the papers' tables, is of 1970-01-01."""
    return parse_instant(f"1970-01-01 {token}" if _CLOCK.fullmatch(token) else token)


_READ: dict[Type, Callable[[str], Value]] = {
    Type.BOOL: _bool,
    Type.INT: _int,
    Type.FLOAT: _float,
    Type.STRING: str,
    Type.TIME: _time,
}


def _members(kind: Type, token: str) -> list[Value]:
    if token[0] != "[":
        raise InvalidValue('in takes a JSON list, such as ["UA", "AA"]')
    values = [_member(kind, member) for member in _JSON.decode(token)]
    if kind is Type.FLOAT and all(type(value) is int for value in values):
        return [float(value) for value in values]  # type: ignore[arg-type]
    return values


def _member(kind: Type, member: Any) -> Value:
    """A value of a list. Beside a float an int stays one, so that it stays exact."""
    if type(member) is _Number:
        if kind is Type.INT:
            return _int(member)
        if kind is Type.FLOAT:
            short = _INT.fullmatch(member) and len(member) <= 20
            return _int(member) if short and INT_MIN <= int(member) <= INT_MAX else _float(member)
    elif type(member) is str:
        if kind is Type.STRING:
            return member
        if kind is Type.TIME or (kind is Type.FLOAT and member in _SPECIAL):
            return _READ[kind](member)
    elif type(member) is bool and kind is Type.BOOL:
        return member
    shown = member[:40] if type(member) is _Number else _cut(member)
    raise InvalidValue(f"the list holds {shown}, which is not of type {kind}")


def _constraint_line(constraint: Constraint) -> str:
    kind = constraint.type or _NO_TYPE
    line = f"{kind} {_name_text(constraint.name)} {_SIGNS[constraint.op]}"
    operand = constraint.value
    if operand is None:
        return line
    if isinstance(operand, tuple):
        return f"{line} [{', '.join(map(_member_text, operand))}]"
    return f"{line} {_value_text(operand)}"


def _name_text(name: str) -> str:
    open_ = not name.isprintable() or " " in name or _OPEN_NAME.search(name)
    return _json_text(name) if open_ else name


def _value_text(value: Value) -> str:
    if isinstance(value, str):
        bare = value and value.isprintable() and value == value.strip() and value[0] != '"'
        return value if bare else _json_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return format_instant(value)
    return repr(value)


def _member_text(value: Value) -> str:
    text = value if isinstance(value, str) else _value_text(value)
    quoted = isinstance(value, str | datetime) or text in _SPECIAL
    return _json_text(text) if quoted else text


def _json_text(text: str) -> str:
    """A JSON string in which nothing is invisible."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _cut(value: object, width: int = 40) -> str:
    text = repr(str(value) if isinstance(value, str) else value)
    return text if len(text) <= width else text[: width - 3] + "..."
