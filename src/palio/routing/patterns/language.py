"""The text of patterns: predicates in brackets, words between them.

    pattern   := chain [within] [same]                      same: of the whole pattern only
    chain     := unit | unit then unit ... | unit and unit ... | unit with unit ... | unit or unit ...
    unit      := '[' predicate ']' | '(' chain [within] ')'
    within    := 'within' NUMBER UNIT                       microseconds ... days
    same      := 'same' NAME {',' NAME}

Predicates stand in brackets, so that the AND and OR of SQL stay apart from those of patterns. A
chain has one kind of word: there is no precedence to remember, whoever mixes writes parentheses.
Every error points at the character.
"""

from __future__ import annotations

import re
from typing import NoReturn

from palio.errors import InvalidPattern, LimitExceeded, ParseError
from palio.model import language
from palio.model.predicate import Predicate
from palio.model.shapes import BRACKETS_MAX
from palio.routing.patterns.pattern import (
    CLASH,
    PARTS_MAX,
    UNITS,
    And,
    Node,
    Or,
    Part,
    Pattern,
    Then,
    With,
    Within,
    check_effort,
    clash,
    effort,
    flat,
    node_text,
)

NESTING_MAX = 50

_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[^\W\d]\w*|`(?:[^`]|``)+`")
_OPERATORS: dict[str, type[Then | And | With | Or]] = {
    "then": Then,
    "and": And,
    "with": With,
    "or": Or,
}
# A predicate up to its bracket: a bracket inside of a string, a quoted name or a comment is none, and that of
# tags[0] is closed within.
_PIECE = r"""(?<![\w$])[rR](?:'[^']*'|"[^"]*")
        | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `[^`]*`
        | --[^\n]* | /\*(?:.*?\*/|.*)
        | [^]['"`]"""


def _bracketed(levels: int) -> str:
    inner = rf" | \[ {_bracketed(levels - 1)} \]" if levels else ""
    return f"(?: {_PIECE}{inner} )*+"


_PREDICATE = re.compile(_bracketed(BRACKETS_MAX), re.VERBOSE | re.DOTALL)


def parse(text: str | Pattern, *, limit: int | None = None, zone: str | None = None) -> Pattern:
    """Read a pattern. `limit` bounds the number of filters of all its parts together; None: each part
    has the limit of a predicate. `zone` is the time zone of the predicates' texts, UTC by default. Raises
    ParseError, which points at the character, or its child LimitExceeded.

    >>> parse("[what = 'login'] then [level > 3] within 10 minutes same host")
    Pattern([what = 'login'] then [level > 3] within 10 minutes same host)
    """
    if isinstance(text, Pattern):
        return text
    if not isinstance(text, str):
        raise InvalidPattern(f"a pattern is a text, not a {type(text).__name__}")
    if len(text) > language.TEXT_MAX:
        raise LimitExceeded(
            f"the pattern has {len(text):,} characters, the limit is {language.TEXT_MAX:,}"
        )
    reader = _PatternReader(text, limit, zone)
    node = reader.chain(0)
    bounded = reader.bounded
    names = reader.same()
    if not bounded:
        node = reader.within(node)  # either order
    if reader.at < len(text):
        reader.fail(reader.expected())
    return Pattern(node, names)


class _PatternReader:
    """A text and how far it has been read; `at` is always on a token or at the end."""

    def __init__(self, text: str, limit: int | None, zone: str | None) -> None:
        self.text = text
        self.at = 0
        self.parts = 0
        self._filters = 0
        self._limit, self._zone = limit, zone
        self._compared = 0  # constraints, by all of `and` so far
        self.bounded = False  # the chain read last ended in a `within`
        self._skip(0)

    def chain(self, depth: int) -> Node:
        starts = [self.at]
        nodes = [self._unit(depth)]
        word = self._word()
        if word not in _OPERATORS:
            return self.within(nodes[0])
        while (operator := self._word()) in _OPERATORS:
            if operator != word:
                self.fail(f"`{word}` and `{operator}` are mixed: put one of them in parentheses")
            self._skip(self.at + len(operator))
            starts.append(self.at)
            nodes.append(self._unit(depth))
        kind = _OPERATORS[word]
        if kind is And:
            self._check_exclusive(tuple(nodes), starts)
        return self.within(kind(tuple(nodes)))

    def _check_exclusive(self, nodes: tuple[Node, ...], starts: list[int]) -> None:
        """Each `and` around another compares the parts of that again, so the effort is added up."""
        self._compared += max(effort(nodes), effort(flat(And, nodes)))
        try:
            check_effort(self._compared)
        except LimitExceeded as error:
            raise LimitExceeded(error.reason, self.text, starts[0]) from None
        if pair := clash(nodes):
            reason = CLASH.format(*(node_text(nodes[i], nested=True) for i in pair))
            self.fail(reason, starts[pair[1]])

    def _unit(self, depth: int) -> Node:
        opening = self.text[self.at : self.at + 1]
        if opening == "[":
            return self._part()
        if opening != "(":
            ends = "" if self.at < len(self.text) else ", and the pattern ends"
            self.fail(f"here must be a predicate in brackets, [...], or a parenthesis{ends}")
        if depth == NESTING_MAX:
            self.fail(f"parentheses are nested more than {NESTING_MAX} deep")
        opened = self.at
        self._skip(self.at + 1)
        node = self.chain(depth + 1)
        if self._word() == "same":
            self.fail("`same` belongs to the whole pattern: write it at the end")
        if self.text[self.at : self.at + 1] != ")":
            if self.at < len(self.text):
                self.fail(self.expected())
            self.fail("this parenthesis is not closed", opened)
        self._skip(self.at + 1)
        return node

    def _part(self) -> Part:
        opened = self.at
        self.parts += 1
        if self.parts > PARTS_MAX:
            raise LimitExceeded(f"the pattern has more than {PARTS_MAX} parts", self.text, opened)
        match = _PREDICATE.match(self.text, opened + 1)
        if match is None or self.text[match.end() : match.end() + 1] != "]":
            stopped = opened if match is None else match.end()
            if stopped < len(self.text):
                self.fail(f"this {self.text[stopped]} is not closed", stopped)
            self.fail("this bracket is not closed", opened)
        if not match[0].strip():
            self.fail("the predicate is empty; [TRUE] selects every message", opened)
        try:
            predicate = self._predicate(match[0])
        except ParseError as error:
            at = opened + 1 + error.position
            raise type(error)(error.reason, self.text, at) from None
        self._skip(match.end() + 1)
        return Part(predicate)

    def _predicate(self, text: str) -> Predicate:
        """Parse a predicate. It may have as many filters as the limit leaves for it."""
        if self._limit is None:
            return language.parse(text, zone=self._zone)
        left = self._limit - self._filters
        predicate = language.parse(text, limit=left, zone=self._zone) if left > 0 else None
        self._filters += 1 if predicate is None else len(predicate.filters)
        if predicate is None or self._filters > self._limit:
            raise LimitExceeded(
                f"the pattern has {self._filters:,} filters or more in its parts; "
                f"the limit is {self._limit:,}"
            )
        return predicate

    def within(self, node: Node) -> Node:
        self.bounded = self._word() == "within"
        if not self.bounded:
            return node
        self._skip(self.at + len("within"))
        number = self._word()
        if not (number.isascii() and number.isdigit()):
            self.fail("within takes a whole number and a unit, such as 10 minutes")
        count, stood = int(number[:30]), self.at
        self._skip(self.at + len(number))
        unit = self._word()
        size = UNITS.get(unit.removesuffix("s"))
        if size is None:
            self.fail(f"no unit of time; there are {', '.join(f'{u}s' for u in reversed(UNITS))}")
        if not 0 < count * size < 2**63:
            self.fail("a duration is above zero and below 300,000 years", stood)
        self._skip(self.at + len(unit))
        return Within(node, count * size)

    def same(self) -> tuple[str, ...]:
        if self._word() != "same":
            return ()
        names: list[str] = []
        self._skip(self.at + len("same"))
        while True:
            match = _NAME.match(self.text, self.at)
            if match is None:
                self.fail("same takes the names of attributes; quote unusual ones with backticks")
            name = match[0]
            names.append(name[1:-1].replace("``", "`") if name[0] == "`" else name)
            self._skip(match.end())
            if self.text[self.at : self.at + 1] != ",":
                return tuple(names)
            self._skip(self.at + 1)

    def expected(self) -> str:
        """Why what stands here cannot follow."""
        if self.text[self.at] == ")":
            return "this parenthesis closes nothing"
        if self._word() in ("within", "same"):
            return f"`{self._word()}` is there already; the inner one goes into parentheses"
        return "here may stand then, and, with, or, within, same, or the end"

    def fail(self, reason: str, at: int | None = None) -> NoReturn:
        raise ParseError(reason, self.text, self.at if at is None else at)

    def _word(self) -> str:
        match = _WORD.match(self.text, self.at)
        return match[0].lower() if match else ""

    def _skip(self, to: int) -> None:
        match = _SPACE.match(self.text, to)
        self.at = match.end() if match else to
