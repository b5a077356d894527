"""What a CESQL expression gives for one event: a value and, where there is one, the error.

Evaluation stops at the first error ("fail fast", CESQL 1.0, 4.1): the operator that fails gives a value of
its own, and what is around it gives the zero of its type. Predicates are made elsewhere (`cesql.py`); this is for explaining
an expression, and for the parts of it that are constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from palio.model.dialects.cesql_parser import parse_cesql
from palio.model.dialects.cesql_tree import (
    ARITHMETIC,
    BOOLEAN,
    INTEGER,
    STRING,
    ZERO,
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
    type_of,
    type_of_value,
)
from palio.model.expressions import cesql_functions as casts
from palio.model.expressions.cesql_functions import INTEGER_MAX, CesqlValue
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.patterns import like
from palio.model.expressions.text_functions import concat, concat_ws

WHITESPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""What TRIM removes: the characters that Unicode calls White_Space."""
_CASTS: dict[str, Callable[[CesqlValue], CesqlValue]] = {
    BOOLEAN: casts.cesql_bool,
    INTEGER: casts.cesql_int,
    STRING: casts.cesql_string,
}


@dataclass(frozen=True, slots=True)
class CesqlResult:
    """`error` is math, cast, missingAttribute, missingFunction, functionEvaluation or generic."""

    value: CesqlValue
    error: str | None = None


def evaluate(text: str, attributes: Mapping[str, Any]) -> CesqlResult:
    """What the expression gives for an event. Raises ParseError.

    >>> evaluate("5 / 0", {})
    CesqlResult(value=0, error='math')
    """
    return evaluated(parse_cesql(text), attributes)


def evaluated(node: Node, attributes: Mapping[str, Any]) -> CesqlResult:
    try:
        return CesqlResult(_Evaluation(attributes).value(node))
    except _Failed as error:
        return CesqlResult(error.value, error.kind)


class _Failed(Exception):
    def __init__(self, kind: str, node: Node, value: CesqlValue) -> None:
        super().__init__(kind)
        self.kind, self.node, self.value = kind, node, value


def _fail(kind: str, node: Node, value: CesqlValue | None = None) -> NoReturn:
    raise _Failed(kind, node, ZERO[type_of(node) or BOOLEAN] if value is None else value)


class _Evaluation:
    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self._attributes = attributes

    def value(self, node: Node) -> CesqlValue:
        try:
            return _RULES[type(node)](self, node)
        except _Failed as error:
            if error.node is node:
                raise
            _fail(error.kind, node)

    def _cast(self, node: Node, value: CesqlValue, wanted: str) -> Any:
        """The value as an operand of the node."""
        try:
            return _CASTS[wanted](value)
        except ExpressionError:
            _fail("cast", node)

    def _operand(self, node: Node, operand: Node, wanted: str) -> Any:
        return self._cast(node, self.value(operand), wanted)

    def _literal(self, node: Literal) -> CesqlValue:
        return node.value

    def _attribute(self, node: CesqlAttribute) -> CesqlValue:
        found = self._attributes.get(node.name)
        if found is None:
            _fail("missingAttribute", node)
        try:
            return casts.cesql_value(found)
        except ExpressionError:
            _fail("cast", node)

    def _exists(self, node: CesqlExists) -> CesqlValue:
        return self._attributes.get(node.name) is not None

    def _negation(self, node: Negation) -> CesqlValue:
        if node.operator == "NOT":
            return not self._operand(node, node.operand, BOOLEAN)
        return self._whole(node, -self._operand(node, node.operand, INTEGER))

    def _whole(self, node: Node, value: int) -> int:
        return value if casts.fits(value) else _fail("math", node)

    def _junction(self, node: CesqlJunction) -> CesqlValue:
        decisive = node.operator == "OR"
        for operand in node.operands:
            if self._operand(node, operand, BOOLEAN) == decisive:
                return decisive
        return not decisive

    def _operation(self, node: CesqlOperation) -> CesqlValue:
        left, right = self.value(node.left), self.value(node.right)
        if node.operator in ("=", "!="):
            is_equal: bool = self._cast(node, left, type_of_value(right)) == right
            return is_equal == (node.operator == "=")
        wanted = BOOLEAN if node.operator == "XOR" else INTEGER
        a, b = self._cast(node, left, wanted), self._cast(node, right, wanted)
        if node.operator in ("/", "%") and b == 0:
            _fail("math", node)
        found: int = _COMPUTED[node.operator](a, b)
        return self._whole(node, found) if node.operator in ARITHMETIC else found

    def _like(self, node: Like) -> CesqlValue:
        text = self._operand(node, node.operand, STRING)
        try:
            return bool(like(text, like_pattern(node.pattern)))
        except ExpressionError:
            _fail("generic", node)  # the pattern is too long

    def _in(self, node: In) -> CesqlValue:
        wanted = self.value(node.operand)
        for member in node.members:
            if self._operand(node, member, type_of_value(wanted)) == wanted:
                return True
        return False

    def _invocation(self, node: Invocation) -> CesqlValue:
        signature = node.signature
        if signature is None:
            _fail("missingFunction", node)
        given: list[Any] = []
        for at, argument in enumerate(node.arguments):
            wanted = signature.takes[min(at, len(signature.takes) - 1)] or signature.gives
            given.append(self._operand(node, argument, wanted))
        try:
            return _CALLS[node.name](node, *given)
        except ExpressionError:
            _fail("functionEvaluation", node)  # the text would be too long


def _divided(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "XOR": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divided,
    "%": lambda a, b: a - b * _divided(a, b),
}


def _abs(node: Node, value: int) -> int:
    return abs(value) if abs(value) <= INTEGER_MAX else _fail("math", node, INTEGER_MAX)


def _left(node: Node, text: str, count: int) -> str:
    return text[:count] if count >= 0 else _fail("functionEvaluation", node, text)


def _right(node: Node, text: str, count: int) -> str:
    if count < 0:
        _fail("functionEvaluation", node, text)
    return text[max(0, len(text) - count) :]


def _substring(node: Node, text: str, position: int, count: int = INTEGER_MAX) -> str:
    if abs(position) > len(text) or count < 0:
        _fail("functionEvaluation", node)
    if position == 0:
        return ""
    begin = position - 1 if position > 0 else len(text) + position
    return text[begin : begin + count]


_CALLS: dict[str, Callable[..., CesqlValue]] = {
    "INT": lambda _node, value: value,
    "BOOL": lambda _node, value: value,
    "STRING": lambda _node, value: value,
    "ABS": _abs,
    "LENGTH": lambda _node, text: len(text),
    "CONCAT": lambda _node, *texts: concat(*texts),
    "CONCAT_WS": lambda _node, between, *texts: str(concat_ws(between, *texts)),
    "LOWER": lambda _node, text: text.lower(),
    "UPPER": lambda _node, text: text.upper(),
    "TRIM": lambda _node, text: text.strip(WHITESPACE),
    "LEFT": _left,
    "RIGHT": _right,
    "SUBSTRING": _substring,
}
_RULES: dict[type[Any], Callable[[_Evaluation, Any], CesqlValue]] = {
    Literal: _Evaluation._literal,
    CesqlAttribute: _Evaluation._attribute,
    CesqlExists: _Evaluation._exists,
    Negation: _Evaluation._negation,
    CesqlJunction: _Evaluation._junction,
    CesqlOperation: _Evaluation._operation,
    Like: _Evaluation._like,
    In: _Evaluation._in,
    Invocation: _Evaluation._invocation,
}


def pattern_parts(pattern: str) -> list[tuple[str, bool]]:
    r"""Each character of a pattern of LIKE, and whether it is a wildcard; `\` escapes `%` and `_` only."""
    found: list[tuple[str, bool]] = []
    at = 0
    while at < len(pattern):
        is_escape = pattern[at] == "\\" and pattern[at + 1 : at + 2] in ("%", "_")
        at += is_escape
        found.append((pattern[at], not is_escape and pattern[at] in "%_"))
        at += 1
    return found


def like_pattern(pattern: str) -> str:
    """The pattern as Palio's LIKE reads it, where a backslash escapes itself too."""
    parts = pattern_parts(pattern)
    return "".join(
        char if is_wild or char not in "%_\\" else f"\\{char}" for char, is_wild in parts
    )
