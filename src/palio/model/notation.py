"""The papers' own notation: one constraint a line, filters separated by a line `or`.

    string class >* finance/exchanges/          type name operator value
    float change > 10.5
    or
    string carrier in ["UA", "AA"]              a list is JSON
    number level > 3                            an int or a float, as in SQL
    * gate absent                               no type

Types are strict (2000, 3.1): `float change > 10.5` is not satisfied by an int. In the model this is
two constraints, `typeof(change) = 'float' AND change > 10.5`, so nothing else needs to know of it;
`number` compares by value. In an advertisement, where constraints on one name are alternatives,
there is no place for the first of the two: there int and float compare by value too.

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
from palio.model.advertisement import Advertisement
from palio.model.arrays import Content
from palio.model.message import Message
from palio.model.notation_values import (
    JSON,
    NUMBER,
    READ,
    json_text,
    member_text,
    read_members,
    value_text,
)
from palio.model.operators import ORDER_OPS, STRING_OPS, Op
from palio.model.predicate import Constraint, Filter, Predicate
from palio.model.values import (
    NUMBERS,
    Type,
    Value,
    as_name,
    as_value,
    shortened,
    type_of,
)

_TYPES: dict[str, str] = {str(kind): kind for kind in Type}
_TYPES |= {"boolean": Type.BOOL, "integer": Type.INT, "double": Type.FLOAT, NUMBER: NUMBER}
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
    Predicate(carrier = 'UA' AND typeof(delay) = 'int' AND delay > 60 OR typeof(dest) = 'string')
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


def parse_advertisement(text: str) -> Advertisement:
    """Read an advertisement, one allowed attribute a line; int and float compare by value.

    >>> parse_advertisement("string what = alarm\\nstring what = login\\ninteger level > 3")
    Advertisement(what = 'alarm', what = 'login', level > 3)
    """
    return Advertisement(tuple(_constraint(line)[1] for line in _lines(text)))


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
        if kind is None or kind == NUMBER:
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
    constraints = conjunction.constraints
    lines: list[str] = []
    typed: set[Constraint] = set()  # what a line that was printed says of a type
    for constraint, following in zip(constraints, (*constraints[1:], None), strict=False):
        if constraint.op is not Op.ANY:
            strict = _of_type(constraint) in typed
            lines.append(_constraint_line(constraint, strict))
            continue
        implied = following is not None and constraint == _of_type(following)
        if constraint in typed or not implied:  # the next line does not say it
            lines.append(_constraint_line(constraint, strict=True))
        typed.add(constraint)
    return "\n".join(lines) or "true"


def print_message(message: Message) -> str:
    """The lines of a message, which `parse_message` reads.

    >>> print(print_message(Message({"dest": "MXP", "note": " now"})))
    string dest = MXP
    string note = " now"

    Raises InvalidValue of an array.
    """
    return "\n".join(_attribute_line(name, value) for name, value in message.items())


def _attribute_line(name: str, value: Content) -> str:
    if isinstance(value, tuple | bytes):
        raise InvalidValue(
            "the papers' notation has no arrays, and no bytes", attribute=name, remedy="use JSON"
        )
    return f"{type_of(value)} {_name_text(name)} = {value_text(value)}"


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

    def type(self) -> tuple[str | None, int]:
        """A type, NUMBER, or None for the * of no type."""
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

    def operand(self, kind: str, op: Op) -> tuple[object, int]:
        """What stands between the operator and the end of the line."""
        token, at = self.whole, self.at
        if not token:
            self.fail(f'{_SIGNS[op]} needs a value (an empty string is "")', at)
        if kind is Type.STRING and _continues(op, token):
            sign = _SIGNS[op]
            self.fail(
                f"is this {sign}{token[0]}, or {sign} and a text that begins with {token[0]}? "
                f"Write {sign}{token[0]} without white space, or quote the text",
                at,
            )
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
    constraints: list[Constraint] = []
    typed: set[Constraint] = set()
    for kind, constraint in map(_constraint, lines):
        if constraint.op is Op.ANY:
            typed.add(constraint)
        elif kind in NUMBERS:
            of_type = Constraint(constraint.name, Op.ANY, type=kind)
            if of_type not in typed:
                typed.add(of_type)
                constraints.append(of_type)
        constraints.append(constraint)
    return Filter(tuple(constraints))


def _constraint(line: _Line) -> tuple[str | None, Constraint]:
    """The type that a line begins with, and its constraint, which may be less strict."""
    kind, kind_at = line.type()
    name = line.name()[0]
    op, op_at = line.op()
    if op is Op.ANY or op is Op.ABSENT:
        if line.at < line.end:
            line.fail(f"{op} takes no value", line.at)
        if op is Op.ABSENT and kind is not None:
            line.fail("absent has no type; write * in its place", kind_at)
        if kind == NUMBER:
            line.fail("any takes one type, or * for all", kind_at)
        return kind, Constraint(name, op, type=kind)
    if kind is None:
        line.fail("only any and absent go without a type", kind_at)
    if op in STRING_OPS and kind is not Type.STRING:
        line.fail(f"{_SIGNS[op]} takes a string, and the type is {kind}", op_at)
    if op in ORDER_OPS and kind is Type.BOOL:
        line.fail(f"{op} does not order booleans; use = or !=", op_at)
    value, value_at = line.operand(kind, op)
    try:
        return kind, Constraint(name, op, value)  # type: ignore[arg-type]  # it checks the value
    except InvalidPredicate as error:
        line.fail(error.detail, value_at)


def _of_type(constraint: Constraint) -> Constraint | None:
    """What the line of a strict constraint says of the attribute's type."""
    if constraint.op is Op.ANY or constraint.type not in NUMBERS:
        return None
    return Constraint(constraint.name, Op.ANY, type=constraint.type)


def _continues(op: Op, text: str) -> bool:
    """Does a bare text look like the end of a longer operator? Figure 1 of 2000 prints > * for >*."""
    return _SIGNS[op] + text[0] in _OPS


def _constraint_line(constraint: Constraint, strict: bool) -> str:
    kind = constraint.type or _NO_TYPE
    if kind in NUMBERS and not strict:
        kind = NUMBER
    line = f"{kind} {_name_text(constraint.name)} {_SIGNS[constraint.op]}"
    operand = constraint.value
    if operand is None:
        return line
    if isinstance(operand, tuple):
        return f"{line} [{', '.join(map(member_text, operand))}]"
    if isinstance(operand, str) and operand and _continues(constraint.op, operand):
        return f"{line} {json_text(operand)}"
    return f"{line} {value_text(operand)}"


def _name_text(name: str) -> str:
    open_ = not name.isprintable() or " " in name or _OPEN_NAME.search(name)
    return json_text(name) if open_ else name
