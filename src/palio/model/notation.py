"""The papers' own notation: one constraint a line, filters separated by a line `or`.

    string class >* finance/exchanges/          type name operator value
    float change > 10.5
    or
    string carrier in ["UA", "AA"]              a list is JSON
    * gate absent                               no type

A text stands bare up to the end of its line where that is unambiguous, and is a JSON string
elsewhere; so is a name. Only a line feed ends a line. Blank lines and lines that start with # are
skipped. A filter without constraints is the line `true`, a predicate without filters the line
`false`. Reading what was printed gives the same value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NoReturn

from palio.errors import InvalidPredicate, InvalidValue, ParseError
from palio.model.message import Message
from palio.model.notation_values import (
    JSON,
    READ,
    json_text,
    member_text,
    read_members,
    value_text,
)
from palio.model.operators import ORDER_OPS, STRING_OPS, Op
from palio.model.predicate import Constraint, Filter, Predicate
from palio.model.values import (
    Type,
    Value,
    as_name,
    as_value,
    shortened,
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
            line.fail(error.detail, value_at)
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
        f"{type_of(value)} {_name_text(name)} = {value_text(value)}"
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
            self.fail(
                f"no type {shortened(word, 40)}; there are {', '.join(_TYPES)}, and * for none", at
            )
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
            self.fail(error.detail, at)

    def op(self) -> tuple[Op, int]:
        word, at = self.word("the operator")
        if word not in _OPS:
            self.fail(f"no operator {shortened(word, 40)}; there are {' '.join(_OPS)}", at)
        return _OPS[word], at

    def operand(self, kind: Type, op: Op) -> tuple[object, int]:
        """What stands between the operator and the end of the line."""
        token, at = self.whole, self.at
        if not token:
            self.fail(f'{_SIGNS[op]} needs a value (an empty string is "")', at)
        try:
            if op is Op.IN:
                return read_members(kind, token), at
            if kind is Type.STRING and token[0] == '"':
                return JSON.decode(token), at
            return READ[kind](token), at
        except json.JSONDecodeError as error:
            self.fail(f"this is not JSON: {error.msg}", at + error.pos)
        except RecursionError:
            self.fail("the list is nested too deeply", at)
        except InvalidValue as error:
            self.fail(error.detail, at)

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
            value, length = JSON.raw_decode(self.whole)
        except json.JSONDecodeError as error:
            self.fail(f"the quoted name cannot be read: {error.msg}", self.at + error.pos)
        rest = self.whole[length:]
        self.at = self.end - len(rest.lstrip())
        if rest and not rest[0].isspace():
            self.fail("white space is missing behind the name", self.at)
        return str(value)


_WORD = re.compile(r"(\S+)\s*")


def _lines(text: str) -> Iterator[_Line]:
    """The lines that are not skipped, without the white space around them."""
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
        line.fail(error.detail, value_at)


def _constraint_line(constraint: Constraint) -> str:
    kind = constraint.type or _NO_TYPE
    line = f"{kind} {_name_text(constraint.name)} {_SIGNS[constraint.op]}"
    operand = constraint.value
    if operand is None:
        return line
    if isinstance(operand, tuple):
        return f"{line} [{', '.join(map(member_text, operand))}]"
    return f"{line} {value_text(operand)}"


def _name_text(name: str) -> str:
    open_ = not name.isprintable() or " " in name or _OPEN_NAME.search(name)
    return json_text(name) if open_ else name
