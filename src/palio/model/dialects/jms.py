"""Message selectors of JMS (Jakarta Messaging 3.1, 3.8.1) and of AMQP brokers, read as predicates.

    text --tokens_of--> tokens --recursive descent--> Palio's SQL --parse--> predicate

A selector is nearly SQL: the logic has three values, a missing property is NULL, and properties are
never cast. docs/reference/dialects.md says where brokers differ. Length and nesting are bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from palio.errors import InvalidPredicate, InvalidValue, LimitExceeded, ParseError
from palio.model.dialects.jms_tokens import KEYWORDS, JmsToken, tokens_of
from palio.model.dialects.translation import (
    FALSE,
    SQL_MAX,
    TRUE,
    Binding,
    Sql,
    all_of,
    any_of,
    called,
    comparison,
    negation,
    predicate_of,
)
from palio.model.language import FILTERS_MAX
from palio.model.predicate import Predicate
from palio.model.sql_text import name_sql, value_sql
from palio.model.values import INT_MAX, as_name, as_value

TEXT_MAX = 1_000_000
"""Characters of a selector."""
NESTING_MAX = 50
"""Parentheses, NOTs and signs around each other."""


def read(selector: str | None, *, limit: int = FILTERS_MAX, shape_max: int = SQL_MAX) -> Predicate:
    """The predicate of a message selector; an empty one selects every message.

    `limit` bounds the number of filters, `shape_max` the SQL without its literals. Raises ParseError, which points at the character.

    >>> read("color = 'red' AND weight NOT BETWEEN 10 AND 20")
    Predicate(color = 'red' AND weight < 10 OR color = 'red' AND weight > 20)
    """
    if selector is None:
        return predicate_of(TRUE, "")
    if not isinstance(selector, str):
        raise InvalidPredicate(f"a selector is a string, not a {type(selector).__name__}")
    if len(selector) > TEXT_MAX:
        raise LimitExceeded(
            f"the selector has {len(selector):,} characters, the limit is {TEXT_MAX:,}"
        )
    if not selector.strip():
        return predicate_of(TRUE, "")
    return predicate_of(_Selector(selector).condition(), selector, limit, shape_max)


@dataclass(frozen=True, slots=True)
class JmsTerm:
    """Part of a selector: a name, number, string, boolean or null, or a condition."""

    kind: str
    sql: Sql
    position: int


_ORDERS = frozenset({"<", "<=", ">", ">="})
_COMPARISONS = _ORDERS | {"=", "<>"}
_REFUSED_FUNCTIONS = (
    "a selector calls no functions; ActiveMQ's REGEX(pattern, name) is RLIKE in SQL"
)


class _Selector:
    """Reads the tokens from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._next = 0
        self._depth = 0

    # ---- tokens

    @property
    def _token(self) -> JmsToken:
        return self._tokens[self._next]

    def _take(self, *kinds: str) -> JmsToken | None:
        """The next token, if it is of these kinds."""
        token = self._token
        if token.kind not in kinds:
            return None
        self._next += 1
        return token

    def _want(self, kind: str, reason: str) -> JmsToken:
        token = self._take(kind)
        return token if token is not None else self._fail(reason, self._token.position)

    def _fail(self, reason: str, position: int) -> NoReturn:
        raise ParseError(reason, self._text, position)

    def _nested(self, read: Callable[[], JmsTerm]) -> JmsTerm:
        self._depth += 1
        if self._depth > NESTING_MAX:
            self._fail(f"the selector is nested more than {NESTING_MAX} deep", self._token.position)
        found = read()
        self._depth -= 1
        return found

    # ---- conditions

    def condition(self) -> Sql:
        found = self._truth(self._or())
        token = self._token
        if token.kind == "end":
            return found
        if token.kind == "(" and self._tokens[self._next - 1].kind == "name":
            self._fail(_REFUSED_FUNCTIONS, self._tokens[self._next - 1].position)
        if token.kind in _COMPARISONS:
            self._fail("comparisons are joined by AND, not chained", token.position)
        return self._fail("AND, OR or the end of the selector is expected here", token.position)

    def _or(self) -> JmsTerm:
        return self._junction("OR", self._and, any_of)

    def _and(self) -> JmsTerm:
        return self._junction("AND", self._not, all_of)

    def _junction(
        self, word: str, read: Callable[[], JmsTerm], join: Callable[[list[Sql]], Sql]
    ) -> JmsTerm:
        first = read()
        if self._token.kind != word:
            return first
        parts = [self._truth(first)]
        while self._take(word):
            parts.append(self._truth(read()))
        return JmsTerm("condition", join(parts), first.position)

    def _not(self) -> JmsTerm:
        if (token := self._take("NOT")) is None:
            return self._comparison()
        inner = self._nested(self._not)
        return JmsTerm("condition", negation(self._truth(inner)), token.position)

    def _truth(self, term: JmsTerm) -> Sql:
        """A term where a condition stands."""
        if term.kind in ("condition", "name", "boolean"):
            return term.sql
        return self._fail(
            f"{_ARTICLE[term.kind]} is no condition; compare it with something", term.position
        )

    def _comparison(self) -> JmsTerm:
        left = self._sum()
        if (operator := self._take(*_COMPARISONS)) is not None:
            found = self._compared(left, operator, self._sum())
            return JmsTerm("condition", found, left.position)
        is_negated = self._take("NOT") is not None
        test = self._take("BETWEEN", "IN", "LIKE", *([] if is_negated else ["IS"]))
        if test is None:
            if is_negated:
                self._fail("behind this NOT stands BETWEEN, IN or LIKE", self._token.position)
            return left
        found = _TESTS[test.kind](self, left, is_negated)
        return JmsTerm("condition", found, left.position)

    def _compared(self, left: JmsTerm, operator: JmsToken, right: JmsTerm) -> Sql:
        for side in (left, right):
            if side.kind == "condition":
                self._fail("a condition is not compared; use AND, OR and NOT", side.position)
            if side.kind == "null":
                self._fail("NULL is not compared; write IS NULL", side.position)
            if operator.kind in _ORDERS and side.kind in ("string", "boolean"):
                self._fail(f"{_ARTICLE[side.kind]} is compared by = and <> only", side.position)
        kinds = {left.kind, right.kind}
        if len(kinds) > 1 and "name" not in kinds:
            return FALSE  # of unlike types
        return comparison(left.sql, operator.kind, right.sql)

    def _between(self, value: JmsTerm, is_negated: bool) -> Sql:
        low = self._sum()
        self._want("AND", "BETWEEN has two bounds: x BETWEEN 1 AND 5")
        high = self._sum()
        for bound in (value, low, high):
            if bound.kind not in ("name", "number"):
                self._fail("BETWEEN compares numbers only", bound.position)
        below, above = ("<", ">") if is_negated else (">=", "<=")
        bounds = [comparison(value.sql, below, low.sql), comparison(value.sql, above, high.sql)]
        return any_of(bounds) if is_negated else all_of(bounds)

    def _in(self, value: JmsTerm, is_negated: bool) -> Sql:
        name = self._name(value, "IN")
        self._want("(", "IN takes a list of strings in parentheses")
        members = [self._member()]
        while self._take(","):
            members.append(self._member())
        self._want(")", "a comma or the end of the list is expected here")
        listed = f"({', '.join(members)})"
        return Sql(f"{name.text} {'NOT ' * is_negated}IN {listed}", Binding.COMPARISON)

    def _member(self) -> str:
        term = self._sign()
        if term.kind not in ("string", "number") or term.sql.binding is not Binding.ATOM:
            self._fail("the members of this list are strings or numbers", term.position)
        return term.sql.text

    def _like(self, value: JmsTerm, is_negated: bool) -> Sql:
        name = self._name(value, "LIKE")
        pattern = self._want("string", "LIKE takes a string")
        escape = ""
        if self._take("ESCAPE"):
            mark = self._want("string", "ESCAPE takes a string of one character")
            escape = str(mark.value)
            if len(escape) != 1:
                self._fail("ESCAPE takes a string of one character", mark.position)
        wanted = self._literal(like_pattern(str(pattern.value), escape), pattern.position)
        return Sql(f"{name.text} {'NOT ' * is_negated}LIKE {wanted}", Binding.COMPARISON)

    def _is(self, value: JmsTerm, _is_negated: bool) -> Sql:
        name = self._name(value, "IS")
        is_there = self._take("NOT") is not None
        self._want("NULL", "behind IS stands NULL or NOT NULL")
        return Sql(f"{name.text} IS {'NOT ' * is_there}NULL", Binding.COMPARISON)

    def _name(self, term: JmsTerm, word: str) -> Sql:
        if term.kind != "name":
            self._fail(f"before {word} stands the name of a property", term.position)
        return term.sql

    # ---- values

    def _sum(self) -> JmsTerm:
        left = self._product()
        while (operator := self._take("+", "-")) is not None:
            right = self._product()
            if operator.kind == "+" and "string" in (left.kind, right.kind):
                left = JmsTerm("string", self._concatenated(left, right), left.position)
            else:
                left = self._arithmetic(left, operator.kind, right, Binding.SUM)
        return left

    def _product(self) -> JmsTerm:
        left = self._sign()
        while (operator := self._take("*", "/", "%")) is not None:
            left = self._arithmetic(left, operator.kind, self._sign(), Binding.PRODUCT)
        return left

    def _arithmetic(self, left: JmsTerm, sign: str, right: JmsTerm, binding: Binding) -> JmsTerm:
        for side in (left, right):
            if side.kind not in ("name", "number"):
                self._fail(f"{_ARTICLE[side.kind]} is no number", side.position)
        tighter = Binding(binding + 1)
        text = f"{left.sql.within(binding)} {sign} {right.sql.within(tighter)}"
        return JmsTerm("number", Sql(text, binding), left.position)

    def _concatenated(self, left: JmsTerm, right: JmsTerm) -> Sql:
        """As brokers do: 'a' + name. Properties that are no strings give NULL."""
        for side in (left, right):
            if side.kind not in ("name", "string"):
                self._fail(f"{_ARTICLE[side.kind]} is no string", side.position)
        return called("concat", left.sql, right.sql)

    def _sign(self) -> JmsTerm:
        token = self._take("+", "-")
        if token is None:
            return self._primary()
        number = self._token
        if token.kind == "-" and self._take("number"):
            return self._number(number, token.position, negative=True)
        inner = self._nested(self._sign)
        if inner.kind not in ("name", "number"):
            self._fail(f"{_ARTICLE[inner.kind]} has no sign", inner.position)
        if token.kind == "+":
            return JmsTerm("number", inner.sql, token.position)
        text = f"-{inner.sql.within(Binding.ATOM)}"
        if text.startswith("--"):
            text = f"-({inner.sql.text})"
        return JmsTerm("number", Sql(text, Binding.SIGN), token.position)

    def _number(self, token: JmsToken, position: int, *, negative: bool = False) -> JmsTerm:
        value = token.value
        assert isinstance(value, int | float)
        if isinstance(value, int) and value > INT_MAX and not negative:
            self._fail(f"the integer {value} does not fit in 64 bits", token.position)
        text = f"{value!r}D" if isinstance(value, float) else str(value)
        return JmsTerm("number", Sql(f"-{text}" if negative else text), position)

    def _primary(self) -> JmsTerm:
        token = self._token
        self._next += token.kind != "end"
        if token.kind == "(":
            inner = self._nested(self._or)
            self._want(")", "this or something before it is not closed by a )")
            return JmsTerm(inner.kind, inner.sql, token.position)
        if token.kind == "number":
            return self._number(token, token.position)
        if token.kind == "string":
            literal = self._literal(str(token.value), token.position)
            return JmsTerm("string", Sql(literal), token.position)
        if token.kind in ("TRUE", "FALSE"):
            return JmsTerm("boolean", Sql(token.kind), token.position)
        if token.kind == "NULL":
            return JmsTerm("null", Sql("NULL"), token.position)
        if token.kind == "name":
            return JmsTerm("name", Sql(self._attribute(token)), token.position)
        return self._fail(_missing(token), token.position)

    def _attribute(self, token: JmsToken) -> str:
        if self._token.kind == "string":
            self._fail(
                f"a selector has no {token.value}; it tests properties, not the body",
                token.position,
            )
        try:
            return name_sql(as_name(token.value))
        except InvalidValue as error:
            self._fail(error.detail, token.position)

    def _literal(self, value: str, position: int) -> str:
        try:
            return value_sql(as_value("literal", value))
        except InvalidValue as error:
            self._fail(error.reason, position)


_TESTS: dict[str, Callable[[_Selector, JmsTerm, bool], Sql]] = {
    "BETWEEN": _Selector._between,
    "IN": _Selector._in,
    "LIKE": _Selector._like,
    "IS": _Selector._is,
}
_ARTICLE = {
    "number": "a number",
    "string": "a string",
    "boolean": "a boolean",
    "null": "NULL",
    "condition": "a condition",
    "name": "a property",
}


def _missing(token: JmsToken) -> str:
    if token.kind == "end":
        return "the selector ends too early"
    if token.kind in KEYWORDS:
        return (
            f'{token.value} is a reserved word; a property of that name is written "{token.value}"'
        )
    return f"a property, a literal or ( is expected here, not {token.value}"


def like_pattern(pattern: str, escape: str) -> str:
    """The pattern with a backslash as its escape character.

    As in brokers, an escape character before anything but %, _ and itself is an ordinary one.

    >>> like_pattern("100!%", "!")
    '100\\\\%'
    """
    made: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        following = pattern[at + 1 : at + 2]
        if char == escape and following and following in ("%", "_", escape):
            made.append(f"\\{following}" if following in "%_\\" else following)
            at += 2
            continue
        made.append("\\\\" if char == "\\" else char)
        at += 1
    return "".join(made)
