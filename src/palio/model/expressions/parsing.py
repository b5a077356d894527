"""The text of an expression, read back to the expression. Each shape is parsed once."""

from __future__ import annotations

from palio.errors import ParseError
from palio.model.caches import cached, text_bytes
from palio.model.expressions.reading import (
    NotAnExpression,
    filled,
    read_expression,
    slots_of,
)
from palio.model.expressions.text import TEXT_MAX
from palio.model.expressions.tree import Expression
from palio.model.literals import BadLiteral, Literal, lift, origin, slot_origin
from palio.model.shapes import UNREAD, lengths, parsed
from palio.model.sql_tree import described, name_of, position_of


def expression_of_text(text: str) -> Expression:
    """Read an expression; ParseError points at the character."""
    shape, literals = shape_of_text(text)
    try:
        return filled(shape, literals)
    except BadLiteral as error:
        raise ParseError(error.reason, text, slot_origin(text, error.slot)) from None
    except RecursionError:
        raise ParseError(_TOO_DEEP, text[:100], 0) from None


_TOO_DEEP = "the expression is nested too deeply"


def shape_of_text(text: str) -> tuple[Expression, list[Literal]]:
    """An expression with slots, and the literals that belong there."""
    if len(text) > TEXT_MAX:
        raise ParseError(f"an expression has at most {TEXT_MAX:,} characters", text[:100], 0)
    shape, literals = lift(text)
    try:
        return _expression((shape, len(literals))), literals
    except ParseError:
        return _read(
            text, shape, len(literals)
        ), literals  # once more, for an error that points into this text
    except RecursionError:
        raise ParseError(_TOO_DEEP, text[:100], 0) from None


def _key_bytes(key: tuple[str, int]) -> int:
    return text_bytes(key[0])


@cached(4096, _key_bytes)
def _expression(key: tuple[str, int]) -> Expression:
    """Of a shape with so many literals."""
    shape, literals = key
    return _read(shape, shape, literals)


def _read(text: str, shape: str, literals: int) -> Expression:
    try:
        found = read_expression(parsed(text, shape, foreign=True), name_of, foreign=True)
    except NotAnExpression as error:
        reason = error.reason or f"{described(error.node)} cannot stand here"
        raise ParseError(reason, text, origin(text, position_of(error.node))) from None
    unread = set(range(literals)) - slots_of(found) - lengths(shape)
    if unread:
        raise ParseError(UNREAD, text, slot_origin(text, min(unread)))
    return found
