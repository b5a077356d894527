"""Constants within an expression are computed when it is made: abs(x - (2 + 3)) is abs(x - 5).

So equal expressions have one name, and what asks for literals finds them. Only what a literal says as
well is folded, for Spark computes with the types of what is written:

    2 + 3           5        an INT as its operands are, and as the literal is
    7 DIV 2         stays    a BIGINT, and 3 is an INT
    9.5 + 0.5       10.0     DECIMAL(3, 1), both
    1.0 + 1         stays    DECIMAL(3, 1), and 2.0 is DECIMAL(2, 1)
    d / (1 + 2)     stays    of a decimal d the digits depend on whether an INT is a literal

What cannot be computed, or is NULL, stays as well: for every message it is NULL, and counted. So does
what depends on a time zone.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from palio.model.expressions.decimals import Exact
from palio.model.expressions.evaluation import evaluator
from palio.model.expressions.number_functions import Computed, IntLiteral
from palio.model.expressions.tree import Call, Constant, Expression

_Arguments: TypeAlias = tuple[Expression, ...]
_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1
_GROWN_MAX = 1_000
"""Characters of a text that is longer than what it is made of."""
_PARTS_MAX = 32
"""Calls and literals of what is folded."""
_OF_DIGITS = frozenset({"multiply", "divide"})
_TO_INT = frozenset(
    "add subtract multiply mod pmod negative abs length octet_length bit_length locate find_in_set "
    "ascii".split()
) | {"cast as INT"}
_OTHERS = frozenset(
    "divide sqrt equal not_equal less less_or_equal greater greater_or_equal same in between and or not "
    "startswith endswith contains lower upper initcap trim ltrim rtrim left right substring "
    "substring_index split_part concat concat_ws translate reverse chr hex bin md5 sha1 sha2".split()
) | {"is null", "cast as STRING", "cast as DOUBLE", "cast as BOOLEAN"}
_CHOOSING = frozenset({"coalesce", "least", "greatest", "case"})
"""They have the type that all that can be chosen has."""
_FOLDED = _TO_INT | _OTHERS | _CHOOSING


def with_constants(function: str, given: _Arguments) -> _Arguments:
    """The arguments of a function, computed where that changes no type."""
    if not any(isinstance(one, Call) for one in given):
        return given
    are_ints_literal = function not in _OF_DIGITS and not (
        function in _TO_INT and any(map(_has_decimal, given))
    )
    return tuple(_folded(one, are_ints_literal) for one in given)


def _folded(expression: Expression, are_ints_literal: bool) -> Expression:
    found = _constant(expression) if _is_small_constant(expression) else None
    if found is None or (isinstance(found.value, IntLiteral) and not are_ints_literal):
        return expression
    return found


def _is_small_constant(expression: Expression) -> bool:
    """What could not be folded is looked at again in each call around it, so this is bounded."""
    left, seen = [expression], 0
    while left:
        found = left.pop()
        seen += 1
        if isinstance(found, Call):
            left += found.arguments[: _PARTS_MAX + 1]
        elif not isinstance(found, Constant):
            return False
        if seen + len(left) > _PARTS_MAX:
            return False
    return True


def _constant(expression: Expression) -> Constant | None:
    """The literal that says the same as an expression; None: there is none."""
    if isinstance(expression, Constant):
        return expression
    if not isinstance(expression, Call) or expression.function not in _FOLDED:
        return None
    given = [_constant(one) for one in expression.arguments]
    values = [one.value for one in given if one is not None]
    if len(values) < len(given) or not _is_of_one_type(expression.function, values):
        return None
    failures: list[str] = []
    found = evaluator(expression)({}, failures.append)
    return None if failures else _literal(expression.function, found, values)


def _literal(
    function: str, found: Computed | None, values: list[Computed | None]
) -> Constant | None:
    if isinstance(found, bool):
        return Constant(found)
    if isinstance(found, str):
        read = sum(len(one) for one in values if isinstance(one, str))
        return Constant(found) if len(found) <= max(read, _GROWN_MAX) else None
    if isinstance(found, int):
        is_int = function in _TO_INT or function in _CHOOSING
        are_ints = all(_is_int(one) for one in (found, *values) if isinstance(one, int))
        return Constant(IntLiteral(found)) if is_int and are_ints else None
    if isinstance(found, float):
        return Constant(found) if math.isfinite(found) else None
    if isinstance(found, Exact):
        written = Exact.of_text(f"{found.value:f}")
        is_same = (written.precision, written.scale) == (found.precision, found.scale)
        return Constant(found) if is_same else None
    return None


def _is_int(value: int) -> bool:
    return _INT_MIN <= value <= _INT_MAX


def _is_of_one_type(function: str, values: list[Computed | None]) -> bool:
    if function not in _CHOOSING:
        return True
    chosen = [*values[1::2], values[-1]] if function == "case" else values
    return len({type(one) for one in chosen}) == 1 and not isinstance(chosen[0], Exact)


def _has_decimal(expression: Expression) -> bool:
    if isinstance(expression, Constant):
        return isinstance(expression.value, Exact)
    return isinstance(expression, Call) and any(map(_has_decimal, expression.arguments))
