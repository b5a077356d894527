"""Templates: parsed shapes that become predicates when their literals are filled in.

    shape      dest = '0' AND price < 1 OR NOT id IN (2)
    leaves     [dest = #0]  [price < #1]  [id != each of #2]      functions of the literals
    filters    (0, 1)  (2,)                                       which leaves each filter takes

A leaf makes a constraint, or a conjunction of them. Its errors name the slot of the literal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NoReturn, TypeAlias

from palio.errors import InvalidPredicate, InvalidValue, PalioError
from palio.model.expressions.evaluation import value as evaluate
from palio.model.expressions.reading import filled, first_slot
from palio.model.expressions.tree import Expression
from palio.model.like import like_operand
from palio.model.literals import BadLiteral, Literal, read, read_double, read_integer
from palio.model.operands import constraint_value, in_operand
from palio.model.operators import OPPOSITE, ORDER_OPS, STRING_OPS, Op
from palio.model.predicate import Constraint, Filter, Predicate, trusted_constraint
from palio.model.values import Type, Value, parse_instant, type_of

Literals: TypeAlias = list[Literal]
Constraints: TypeAlias = Constraint | tuple[Constraint, ...] | None  # one, a conjunction, or FALSE
Leaf: TypeAlias = Callable[[Literals], Constraints]


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed shape. It is `reusable` unless its normal form depends on its literals."""

    leaves: tuple[Leaf, ...]
    filters: tuple[Callable[[list[Constraints]], Any], ...]
    reusable: bool

    def fill(self, literals: Literals) -> Predicate:
        """The predicate of this shape with these literals."""
        made = [leaf(literals) for leaf in self.leaves]
        filters = [pick(made) for pick in self.filters]
        if None in made:  # such a leaf compares with NULL
            filters = [own for own in filters if None not in own]
        return Predicate(tuple([Filter(own) for own in filters]))


def picker(leaves: tuple[int, ...], plain: bool) -> Any:
    """A function from the constraints of all leaves to those of one filter.

    `plain` says that each leaf makes one constraint.
    """
    if plain and len(leaves) > 1:
        return itemgetter(*leaves)

    def pick(made: list[Constraints]) -> tuple[Constraint | None, ...]:
        parts = [made[leaf] for leaf in leaves]
        return tuple(c for part in parts for c in (part if isinstance(part, tuple) else (part,)))

    return pick


@dataclass(frozen=True, slots=True)
class OperandReader:
    """How to read one value from the literals; slot -1: it needs none."""

    slot: int
    read: Callable[[Literals], Value | None]


@dataclass(frozen=True, slots=True)
class MembersReader:
    """How to read the members of a list."""

    slot: int
    read: Callable[[Literals], Sequence[Value | None]]


def fixed(value: Value) -> OperandReader:
    """A value that stands in the shape itself: TRUE, FALSE."""
    return OperandReader(-1, lambda _literals: value)


def literal(slot: int, negative: bool) -> OperandReader:
    """The literal of a slot, perhaps behind a minus sign."""

    def value(literals: Literals) -> Value:
        token = literals[slot]
        try:
            if isinstance(token, str):
                return read(token, negative)
        except InvalidValue as error:
            raise _bad_literal(slot, error) from None
        raise BadLiteral("a list stands only behind IN", slot)

    return OperandReader(slot, value)


def constant(expression: Expression) -> OperandReader:
    """What literals alone compute."""
    slot = first_slot(expression)

    def value(literals: Literals) -> Value | None:
        def failed(reason: str) -> NoReturn:
            raise BadLiteral(reason, slot)

        try:
            return evaluate(filled(expression, literals), {}, failed)
        except InvalidValue as error:
            raise _bad_literal(slot, error) from None

    return OperandReader(slot, value)


def members(slot: int, negative: bool) -> MembersReader:
    """The list of a slot; a sign before it belongs to its first member."""

    def values(literals: Literals) -> list[Value]:
        tokens = literals[slot]
        if isinstance(tokens, str):
            tokens = [tokens]
        try:
            return [read(tokens[0], negative), *map(read, tokens[1:])]
        except InvalidValue as error:
            raise _bad_literal(slot, error) from None

    return MembersReader(slot, values)


def member(operand: OperandReader) -> MembersReader:
    """A list of one."""
    return MembersReader(operand.slot, lambda literals: [operand.read(literals)])


def _date(text: str) -> Value:
    if ":" in text:
        raise InvalidValue(f"the date {text[:40]!r} has a time of day", remedy="write TIMESTAMP")
    return parse_instant(text)


CASTS: dict[str, Callable[[str], Value]] = {
    "TIMESTAMP": parse_instant,
    "TIMESTAMPTZ": parse_instant,
    "TIMESTAMPLTZ": parse_instant,
    "DATE": _date,
    "DOUBLE": read_double,
    "BIGINT": read_integer,
    "INT": read_integer,
    "TEXT": str,
    "VARCHAR": str,
}


def cast(slot: int, wanted: str) -> OperandReader:
    """TIMESTAMP '...' and CAST('...' AS DOUBLE)."""
    inner, convert = literal(slot, False), CASTS[wanted]

    def value(literals: Literals) -> Value:
        raw = inner.read(literals)
        try:
            return convert(raw if isinstance(raw, str) else repr(raw))
        except InvalidValue as error:
            raise _bad_literal(slot, error) from None

    return OperandReader(slot, value)


def _bad_literal(slot: int, error: PalioError) -> BadLiteral:
    return BadLiteral(error.detail, slot)


def constraint_leaf(name: str, op: Op, operand: OperandReader) -> Leaf:
    """A constraint with one value."""
    read_value, slot = operand.read, operand.slot
    ordered, textual = op in ORDER_OPS, op in STRING_OPS

    def leaf(literals: Literals) -> Constraint | None:
        value = read_value(literals)
        if value is None:
            return None
        type = type_of(value)
        if textual and type is not Type.STRING:
            raise BadLiteral(f"{op} takes a string", slot)
        if type is Type.FLOAT:
            try:
                value = constraint_value(name, value)
            except InvalidPredicate as error:
                raise _bad_literal(slot, error) from None
        elif ordered and type is Type.BOOL:
            raise BadLiteral(f"{op} does not order booleans; use = or !=", slot)
        return trusted_constraint(name, op, value, type)

    return leaf


def set_leaf(name: str, lists: Sequence[MembersReader], negated: bool) -> Leaf:
    """IN, or NOT IN as a conjunction of !=."""

    def leaf(literals: Literals) -> Constraints:
        given = [value for part in lists for value in part.read(literals)]
        values = [value for value in given if value is not None]
        if not values or (negated and len(values) < len(given)):
            return None
        try:
            op, operand, type = in_operand(name, [constraint_value(name, v) for v in values])
        except InvalidPredicate as error:
            raise _bad_literal(lists[0].slot, error) from None
        if not negated:
            return trusted_constraint(name, op, operand, type)
        chosen = operand if isinstance(operand, tuple) else (operand,)
        return tuple(
            trusted_constraint(name, Op.NE, v, type_of(v)) for v in chosen if v is not None
        )

    return leaf


def like_leaf(name: str, pattern: OperandReader, escape: OperandReader, negated: bool) -> Leaf:
    """LIKE: the operator follows from where the pattern has its %."""

    def leaf(literals: Literals) -> Constraint | None:
        try:
            wanted = pattern.read(literals)
            if wanted is None:
                return None
            op, text = like_operand(wanted, escape.read(literals))
        except InvalidPredicate as error:
            raise _bad_literal(pattern.slot, error) from None
        return trusted_constraint(name, OPPOSITE[op] if negated else op, text, Type.STRING)

    return leaf
