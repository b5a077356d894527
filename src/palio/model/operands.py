"""The parts of a constraint, checked against each other and brought into normal form.

A constraint is (name, operator, operand, type). The type follows from the operand. The operand of
`in` is a sorted tuple without repeats; `in` with one member is `=`.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TypeAlias

from palio.errors import InvalidPredicate, InvalidValue
from palio.model.exact_operands import exact_parts, is_long
from palio.model.expressions.names import canonical, is_computed
from palio.model.long_decimals import LongDecimal, compared, digits_of
from palio.model.operators import ORDER_OPS, STRING_OPS, Op
from palio.model.values import NUMBERS, Type, Value, as_name, as_value, comparable, type_of

Operand: TypeAlias = Value | tuple[Value, ...] | None


def checked_parts(
    name: str, op: Op | str, value: object, type: Type | str | None
) -> tuple[str, Op, Operand, Type | None]:
    """The parts of a constraint, checked and in normal form."""
    try:
        name = as_name(name)
    except InvalidValue as error:
        raise InvalidPredicate.of_value(error) from None
    if is_computed(name):
        name = canonical(name)
    op = _as_op(name, op)
    if op is Op.ANY or op is Op.ABSENT:
        if value is not None:
            raise InvalidPredicate(f"{op} takes no value, got {value!r}", attribute=name)
        if op is Op.ABSENT and type is not None:
            raise InvalidPredicate(f"absent has no type, got {type!s}", attribute=name)
        return name, op, None, None if type is None else _as_type(name, type)
    if isinstance(value, Decimal) and is_long(found := _decimal(value)):
        return exact_parts(name, op, [found])
    op, operand, kind = _operand(name, op, value)
    if type is not None and not comparable(kind, _as_type(name, type)):
        raise InvalidPredicate(f"{operand!r} is not of type {type!s}", attribute=name)
    return name, op, operand, kind


def _decimal(value: Decimal) -> float | LongDecimal:
    """As a literal that is written so."""
    is_exact = value.is_finite() and digits_of(value) is not None
    return compared(value) if is_exact else 0.0


def _as_op(name: str, op: Op | str) -> Op:
    try:
        return Op(op)
    except ValueError:
        raise InvalidPredicate(
            f"no operator {op!r}", attribute=name, remedy=f"there are {', '.join(Op)}"
        ) from None


def _as_type(name: str, type: Type | str) -> Type:
    try:
        return Type(type)
    except ValueError:
        raise InvalidPredicate(
            f"no type {type!r}", attribute=name, remedy=f"there are {', '.join(Type)}"
        ) from None


def _operand(name: str, op: Op, value: object) -> tuple[Op, Operand, Type]:
    """Check operator and value against each other; give the constraint its normal form."""
    if op is Op.IN:
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise InvalidPredicate(f"in takes a list of values, got {value!r}", attribute=name)
        return in_operand(name, [_checked(name, v) for v in value])
    checked = _checked(name, value)
    kind = type_of(checked)
    if op in STRING_OPS and kind is not Type.STRING:
        raise InvalidPredicate(f"{op} takes a string, got {value!r}", attribute=name)
    if op in ORDER_OPS and kind is Type.BOOL:
        raise InvalidPredicate(
            f"{op} does not order booleans", attribute=name, remedy="use = or !="
        )
    return op, checked, kind


def in_operand(name: str, values: list[Value]) -> tuple[Op, Operand, Type]:
    """The normal form of a set: sorted, without repeats; of one value it is `=`."""
    if not values:
        raise InvalidPredicate("in takes at least one value", attribute=name)
    types = set(map(type_of, values))
    if len(types) > 1 and not types <= NUMBERS:
        raise InvalidPredicate(
            f"the list of in mixes types ({', '.join(sorted(types))})", attribute=name
        )
    if len(types) > 1:  # of two equal numbers the int stays
        values = sorted(values, key=lambda value: type_of(value) is not Type.INT)
    ordered = sorted(dict.fromkeys(values))
    if len(ordered) == 1:
        return Op.EQ, ordered[0], type_of(ordered[0])
    kept = set(map(type_of, ordered))
    return Op.IN, tuple(ordered), kept.pop() if len(kept) == 1 else Type.FLOAT


def _checked(name: str, value: object) -> Value:
    if value is None:
        raise InvalidPredicate(
            "a constraint needs a value", attribute=name, remedy="use absent or any"
        )
    try:
        return constraint_value(name, as_value(name, value))
    except InvalidValue as error:
        raise InvalidPredicate.of_value(error) from None


def constraint_value(name: str, value: Value) -> Value:
    """What a constraint may compare with: any value but NaN; -0.0 is 0.0."""
    if isinstance(value, float):
        if value != value:
            raise InvalidPredicate(
                "NaN is no value of a constraint",
                attribute=name,
                remedy="it is above every number, so > CAST('Infinity' AS DOUBLE) selects it",
            )
        return value + 0.0
    return value
