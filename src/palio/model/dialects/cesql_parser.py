"""Reads the text of a CESQL expression (CESQL 1.0, 2 and 3.6): text, tokens, recursive descent, tree.

Unary operators bind tightest, then LIKE and IN, then arithmetic, then comparisons; AND, OR and XOR bind alike, from the
left. Keywords, and names of functions and attributes, are read in any case. Length and nesting are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from palio.errors import InvalidPredicate, LimitExceeded, ParseError
from palio.model.dialects.cesql_tree import (
    EQUALITY,
    MANY,
    ORDERS,
    CesqlAttribute,
    CesqlExists,
    CesqlJunction,
    CesqlOperation,
    In,
    Invocation,
    Like,
    Literal,
    Negation,
    Node,
)
from palio.model.expressions.cesql_functions import fits

TEXT_MAX = 1_000_000
"""Characters of an expression."""
TOKENS_MAX = 40_000
"""Names, literals and operators of an expression."""
NESTING_MAX = 50
"""Operators, calls and parentheses within each other."""
NAME_MAX = 200
"""Characters of the name of an attribute."""
_KEYWORDS = frozenset("NOT AND OR XOR LIKE IN EXISTS TRUE FALSE".split())
_TOKEN = re.compile(
    r"""\s*+(?:
        (?P<word>[A-Za-z0-9_]++)
      | (?P<string>'(?:\\'|[^'])*'|"(?:\\"|[^"])*")
      | (?P<operator><>|<=|>=|!=|[=<>+*/%(),-])
      | (?P<end>\Z))""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class CesqlToken:
    """`kind` is a keyword, an operator, or word, number, string, end."""

    kind: str
    text: str
    position: int


def parse_cesql(text: str) -> Node:
    """The tree of an expression. Raises ParseError, which points at the character."""
    if not isinstance(text, str):
        raise InvalidPredicate(f"a CESQL expression is a string, not a {type(text).__name__}")
    if len(text) > TEXT_MAX:
        raise LimitExceeded(
            f"the expression has {len(text):,} characters, the limit is {TEXT_MAX:,}"
        )
    return _Parser(text).whole()


def _tokens_of(text: str) -> list[CesqlToken]:
    found: list[CesqlToken] = []
    at, kind = 0, ""
    while kind != "end":
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            reason = "this string is not closed" if text[at] in "'\"" else "this has no meaning"
            raise ParseError(reason, text, at)
        kind, at = str(match.lastgroup), match.end()
        found.append(_token(kind, match[kind], match.start(kind)))
        if len(found) > TOKENS_MAX:
            raise LimitExceeded(
                f"the expression has more than {TOKENS_MAX:,} names, literals and operators",
                text,
                at,
            )
    return found


def _token(kind: str, raw: str, at: int) -> CesqlToken:
    if kind == "word":
        if raw.isdigit():
            return CesqlToken("number", raw, at)
        return CesqlToken(raw.upper() if raw.upper() in _KEYWORDS else "word", raw, at)
    if kind == "operator":
        return CesqlToken("!=" if raw == "<>" else raw, raw, at)
    if kind == "string":
        return CesqlToken("string", raw[1:-1].replace(f"\\{raw[0]}", raw[0]), at)
    return CesqlToken("end", "", at)


class _Parser:
    """Reads the tokens from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens_of(text)
        self._next = 0
        self._open = 0
        self._depths: dict[int, int] = {}

    def whole(self) -> Node:
        found = self._logic()
        if self._token.kind != "end":
            self._fail("an operator or the end of the expression is expected here")
        return found

    @property
    def _token(self) -> CesqlToken:
        return self._tokens[self._next]

    def _take(self, *kinds: str) -> CesqlToken | None:
        token = self._token
        if token.kind not in kinds:
            return None
        self._next += 1
        return token

    def _want(self, kind: str, reason: str) -> CesqlToken:
        token = self._take(kind)
        return token if token is not None else self._fail(reason)

    def _fail(self, reason: str, position: int | None = None) -> NoReturn:
        raise ParseError(reason, self._text, self._token.position if position is None else position)

    def _nested(self, node: Node, *parts: Node) -> Node:
        """The node, if it is not nested too deeply."""
        depth = 1 + max((self._depths.get(id(part), 1) for part in parts), default=0)
        if depth > NESTING_MAX:
            self._fail(f"operators are nested more than {NESTING_MAX} deep", node.position)
        self._depths[id(node)] = depth
        return node

    # ---- operators, the loosest first

    def _logic(self) -> Node:
        found = self._comparison()
        while (token := self._take("AND", "OR", "XOR")) is not None:
            kind, operands, at = token.kind, [found, self._comparison()], token.position
            if kind == "XOR":
                found = self._nested(CesqlOperation(kind, operands[0], operands[1], at), *operands)
                continue
            while self._take(kind):
                operands.append(self._comparison())
            found = self._nested(CesqlJunction(kind, tuple(operands), at), *operands)
        return found

    def _comparison(self) -> Node:
        return self._operations(self._sum, *EQUALITY, *ORDERS)

    def _sum(self) -> Node:
        return self._operations(self._product, "+", "-")

    def _product(self) -> Node:
        return self._operations(self._test, "*", "/", "%")

    def _operations(self, read: Callable[[], Node], *operators: str) -> Node:
        found = read()
        while (token := self._take(*operators)) is not None:
            right = read()
            operation = CesqlOperation(token.kind, found, right, token.position)
            found = self._nested(operation, found, right)
        return found

    def _test(self) -> Node:
        """LIKE and IN."""
        found = self._unary(0)
        while True:
            negation = self._take("NOT")
            if (token := self._take("LIKE")) is not None:
                pattern = self._want("string", "the pattern of LIKE is a string").text
                found = self._nested(Like(found, pattern, token.position), found)
            elif (token := self._take("IN")) is not None:
                self._want("(", "IN takes a list in parentheses")
                members = tuple(self._listed("the list"))
                if not members:
                    self._fail("the list of IN is not empty")
                found = self._nested(In(found, members, token.position), found, *members)
            elif negation is not None:
                self._fail("behind this NOT stands LIKE or IN", negation.position)
            else:
                return found
            if negation is not None:
                found = self._nested(Negation("NOT", found, negation.position), found)

    def _unary(self, depth: int) -> Node:
        if depth > NESTING_MAX:
            self._fail(f"operators are nested more than {NESTING_MAX} deep")
        token = self._take("NOT", "-", "+")
        if token is None:
            return self._primary()
        follower = self._token
        is_joined = follower.position == token.position + 1
        if token.kind in "+-" and follower.kind == "number" and is_joined:
            self._next += 1
            return self._integer(token.text + follower.text, token.position)
        if token.kind == "+":
            self._fail("a + stands between two operands, or before digits", token.position)
        operand = self._unary(depth + 1)
        return self._nested(Negation(token.kind, operand, token.position), operand)

    def _integer(self, digits: str, position: int) -> Node:
        if len(digits) > 40 or not fits(int(digits)):
            self._fail(f"the integer {digits[:40]} does not fit in 32 bits", position)
        return Literal(int(digits), position)

    def _primary(self) -> Node:
        token = self._token
        self._next += token.kind != "end"
        if token.kind == "(":
            return self._enclosed(token)
        if token.kind == "number":
            return self._integer(token.text, token.position)
        if token.kind == "string":
            return Literal(token.text, token.position)
        if token.kind in ("TRUE", "FALSE"):
            return Literal(token.kind == "TRUE", token.position)
        if token.kind == "EXISTS":
            name = self._want("word", "behind EXISTS stands the name of an attribute")
            return CesqlExists(self._name(name), token.position)
        if token.kind == "word":
            return self._invocation(token) if self._take("(") else self._attribute(token)
        return self._fail("an attribute, a literal or ( is expected here", token.position)

    def _enclosed(self, opening: CesqlToken) -> Node:
        """Parentheses count as nesting while they are read: the parser is recursive."""
        self._enter(opening)
        found = self._logic()
        self._leave()
        self._want(")", "this or something before it is not closed by a )")
        return found

    def _enter(self, opening: CesqlToken) -> None:
        self._open += 1
        if self._open > NESTING_MAX:
            self._fail(f"operators are nested more than {NESTING_MAX} deep", opening.position)

    def _leave(self) -> None:
        self._open -= 1

    def _invocation(self, token: CesqlToken) -> Node:
        arguments = tuple(self._listed("the arguments"))
        if not token.text.replace("_", "a").isalpha() or token.text.startswith("_"):
            self._fail("the name of a function is letters and underscores", token.position)
        call = Invocation(token.text.upper(), arguments, token.position)
        return self._nested(call, *arguments)

    def _listed(self, what: str) -> list[Node]:
        """What stands between commas, up to the closing parenthesis."""
        found: list[Node] = []
        if self._take(")"):
            return found
        self._enter(self._token)
        while not found or self._take(","):
            if len(found) >= MANY:
                self._fail(f"{what} are more than {MANY}")
            found.append(self._logic())
        self._leave()
        self._want(")", f"a comma or the end of {what} is expected here")
        return found

    def _attribute(self, token: CesqlToken) -> Node:
        return CesqlAttribute(self._name(token), token.position)

    def _name(self, token: CesqlToken) -> str:
        if "_" in token.text:
            self._fail("the name of an attribute is letters and digits", token.position)
        if len(token.text) > NAME_MAX:
            self._fail(f"a name has up to {NAME_MAX} characters", token.position)
        return token.text.lower()
