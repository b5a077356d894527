"""Templates: parsed shapes that become predicates when their literals are filled in.

    shape      dest = '0' AND price < 1 OR NOT id IN (2)
    leaves     [dest = #0]  [price < #1]  [id != each of #2]      functions of the literals
    filters    (0, 1)  (2,)                                       which leaves each filter takes

A leaf makes a constraint, or a conjunction of them, on an attribute or on an expression of
attributes, which may have literals too. Its errors name the slot of the literal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, NoReturn, TypeAlias

from palio.errors import InvalidPredicate, InvalidValue, PalioError
from palio.model.alternatives import Alternatives, split
from palio.model.exact_operands import exact_parts
from palio.model.expressions.evaluation import value as evaluate
from palio.model.expressions.foreign import foreign_function
from palio.model.expressions.membership import members_of
from palio.model.expressions.names import computed_name
from palio.model.expressions.reading import filled, first_slot
from palio.model.expressions.simplifying import NO_FIXED_LENGTH
from palio.model.expressions.tree import AttributeOf, Call, Constant, Expression
from palio.model.expressions.zones import in_zone
from palio.model.like import canonical_pattern, like_operand
from palio.model.literals import BadLiteral, Literal, read, read_double, read_integer
from palio.model.long_decimals import LongDecimal
from palio.model.operands import constraint_value, in_operand
from palio.model.operators import OPPOSITE, ORDER_OPS, STRING_OPS, Op
from palio.model.predicate import Constraint, Filter, Predicate, trusted_constraint
from palio.model.time_zones import parse_instant_in
from palio.model.values import Type, Value, type_of

Literals: TypeAlias = list[Literal]
Constraints: TypeAlias = Constraint | tuple[Constraint, ...] | Alternatives | None
"""One, a conjunction, one of several, or FALSE."""
Leaf: TypeAlias = Callable[[Literals], Constraints]
Subject: TypeAlias = "str | Expression"  # what a constraint asks of: an attribute, or an expression


REPEATED_MAX = 4_000_000
"""Characters of a literal in all expressions in which it stands."""


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed shape. It is `reusable` unless its normal form depends on its literals."""

    leaves: tuple[Leaf, ...]
    filters: tuple[Callable[[list[Constraints]], Any], ...]
    reusable: bool
    repeated: dict[int, int]
    """Literals that are written once and stand in very many expressions: in how many."""
    can_split: bool
    """Some leaf makes Alternatives."""

    def fill(self, literals: Literals, limit: int) -> Predicate:
        """The predicate of this shape with these literals; what may be split gives no more filters than
        the limit."""
        for slot, times in self.repeated.items():
            if times * sum(map(len, literals[slot])) > REPEATED_MAX:
                raise BadLiteral(f"this stands in {times:,} expressions; it is too long", slot)
        made = [leaf(literals) for leaf in self.leaves]
        filters = [pick(made) for pick in self.filters]
        if None in made:  # such a leaf compares with NULL
            filters = [own for own in filters if None not in own]
        if self.can_split:
            filters = split(filters, limit)
        return Predicate(tuple([Filter(own) for own in filters]))


def picker(leaves: tuple[int, ...], plain: bool) -> Any:
    """A function from the constraints of all leaves to those of one filter.

    `plain` says that each leaf makes one constraint.
    """
    if plain and len(leaves) > 1:
        return itemgetter(*leaves)

    def pick(made: list[Constraints]) -> tuple[Constraint | Alternatives | None, ...]:
        parts = [made[leaf] for leaf in leaves]
        return tuple(c for part in parts for c in (part if isinstance(part, tuple) else (part,)))

    return pick


@dataclass(frozen=True, slots=True)
class OperandReader:
    """How to read one value from the literals; slot -1: it needs none."""

    slot: int
    read: Callable[[Literals], Value | LongDecimal | None]


@dataclass(frozen=True, slots=True)
class MembersReader:
    """How to read the members of a list."""

    slot: int
    read: Callable[[Literals], Sequence[Value | LongDecimal | None]]


def fixed(value: Value) -> OperandReader:
    """A value that stands in the shape itself: TRUE, FALSE."""
    return OperandReader(-1, lambda _literals: value)


def literal(slot: int, negative: bool) -> OperandReader:
    """The literal of a slot, perhaps behind a minus sign."""

    def value(literals: Literals) -> Value | LongDecimal:
        token = literals[slot]
        try:
            if isinstance(token, str):
                return read(token, negative)
        except InvalidValue as error:
            raise _bad_literal(slot, error) from None
        raise BadLiteral("a list stands only behind IN", slot)

    return OperandReader(slot, value)


def constant(expression: Expression, zone: str | None = None) -> OperandReader:
    """What literals alone compute."""
    slot = first_slot(expression)
    if foreign := foreign_function(expression):
        raise BadLiteral(f"{foreign} is computed of attributes only, not of literals", max(0, slot))

    def value(literals: Literals) -> Value | LongDecimal | None:
        def failed(reason: str) -> NoReturn:
            raise BadLiteral(reason, slot)

        try:
            found = filled(expression, literals)
            if isinstance(found, Call) and found.function == "interval":
                failed(NO_FIXED_LENGTH)
            return evaluate(in_zone(found, zone), {}, failed)
        except InvalidValue as error:
            raise _bad_literal(slot, error) from None

    return OperandReader(slot, value)


def members(slot: int, negative: bool) -> MembersReader:
    """The list of a slot; a sign before it belongs to its first member."""

    def values(literals: Literals) -> list[Value | LongDecimal]:
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


def _date(text: str, zone: str | None) -> Value:
    if ":" in text:
        raise InvalidValue(f"the date {text[:40]!r} has a time of day", remedy="write TIMESTAMP")
    return parse_instant_in(text, zone)


CASTS: dict[str, Callable[[str, str | None], Value]] = {
    "TIMESTAMP": parse_instant_in,
    "TIMESTAMPTZ": parse_instant_in,
    "TIMESTAMPLTZ": parse_instant_in,
    "DATE": _date,
    "DOUBLE": lambda text, _zone: read_double(text),
    "BIGINT": lambda text, _zone: read_integer(text),
    "INT": lambda text, _zone: read_integer(text),
    "TEXT": lambda text, _zone: text,
    "VARCHAR": lambda text, _zone: text,
}


def cast(slot: int, wanted: str, zone: str | None = None) -> OperandReader:
    """TIMESTAMP '...' and CAST('...' AS DOUBLE); an instant without an offset is in the zone."""
    inner, convert = literal(slot, False), CASTS[wanted]

    def value(literals: Literals) -> Value:
        raw = inner.read(literals)
        try:
            return convert(raw if isinstance(raw, str) else repr(raw), zone)
        except InvalidValue as error:
            raise _bad_literal(slot, error) from None

    return OperandReader(slot, value)


def _bad_literal(slot: int, error: PalioError) -> BadLiteral:
    return BadLiteral(error.detail, slot)


def on(subject: Subject, make: Callable[[str], Leaf], zone: str | None = None) -> Leaf:
    """The leaf that is made for the name of what it asks of; an expression is written in the zone."""
    if isinstance(subject, str):
        return make(subject)
    if first_slot(subject) < 0:
        return make(_filled_name(subject, [], zone))
    return lambda literals: make(_filled_name(subject, literals, zone))(literals)


def members_leaf(subject: Subject, zone: str | None) -> Leaf:
    """A condition on an array that asks for one of several elements, where it turns out to be one."""
    assert not isinstance(subject, str)

    def leaf(literals: Literals) -> Constraints:
        condition = _filled(subject, literals, zone)
        members = members_of(condition)
        whole, *asked = (
            trusted_constraint(_name_of(one, subject), Op.EQ, True, Type.BOOL)
            for one in (condition, *members)
        )
        return Alternatives(whole, tuple(dict.fromkeys(asked))) if asked else whole

    return leaf


def _filled_name(expression: Expression, literals: Literals, zone: str | None) -> str:
    return _name_of(_filled(expression, literals, zone), expression)


def _filled(expression: Expression, literals: Literals, zone: str | None) -> Expression:
    try:
        return in_zone(filled(expression, literals), zone)
    except (InvalidPredicate, InvalidValue) as error:
        raise _bad_literal(first_slot(expression), error) from None


def _name_of(found: Expression, expression: Expression) -> str:
    try:
        return computed_name(found)
    except (InvalidPredicate, InvalidValue) as error:
        raise _bad_literal(first_slot(expression), error) from None


def constraint_leaf(name: str, op: Op, operand: OperandReader) -> Leaf:
    """A constraint with one value."""
    read_value, slot = operand.read, operand.slot
    ordered, textual = op in ORDER_OPS, op in STRING_OPS

    def leaf(literals: Literals) -> Constraint | None:
        value = read_value(literals)
        if value is None:
            return None
        if is_composite(value):
            raise BadLiteral(_NO_ARRAY, slot)
        if isinstance(value, LongDecimal):
            return _exact(name, op, [value], slot)
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


def _exact(name: str, op: Op, values: Sequence[Value | LongDecimal], slot: int) -> Constraint:
    """With decimals that no double stands for."""
    if op in STRING_OPS:
        raise BadLiteral(f"{op} takes a string", slot)
    try:
        return trusted_constraint(*exact_parts(name, op, values))
    except InvalidPredicate as error:
        raise _bad_literal(slot, error) from None


def is_composite(value: object) -> bool:
    """Is it an array or an object?"""
    return isinstance(value, tuple | dict)


_NO_ARRAY = (
    "an array is compared with arrays only, array('x', 'y'): array_contains(tags, 'x') asks for an element, "
    "arrays_overlap(tags, array('x', 'y')) for one of several"
)


def set_leaf(name: str, lists: Sequence[MembersReader], negated: bool) -> Leaf:
    """IN, or NOT IN as a conjunction of !=."""

    def leaf(literals: Literals) -> Constraints:
        given = [value for part in lists for value in part.read(literals)]
        values = [value for value in given if value is not None]
        if not values or (negated and len(values) < len(given)):
            return None
        if any(map(is_composite, values)):
            raise BadLiteral(_NO_ARRAY, lists[0].slot)
        long = [value for value in values if isinstance(value, LongDecimal)]
        plain = [float(value) if isinstance(value, LongDecimal) else value for value in values]
        try:
            op, operand, type = in_operand(name, [constraint_value(name, v) for v in plain])
        except InvalidPredicate as error:
            raise _bad_literal(lists[0].slot, error) from None
        if not negated and long:
            return _exact(name, Op.IN, values, lists[0].slot)
        if not negated:
            return trusted_constraint(name, op, operand, type)
        return tuple(_differs(name, v, lists[0].slot) for v in _chosen(name, values))

    return leaf


def _chosen(name: str, values: Sequence[Value | LongDecimal]) -> list[Value | LongDecimal]:
    """In order and without repeats."""
    long = [value for value in values if isinstance(value, LongDecimal)]
    plain = [constraint_value(name, v) for v in values if not isinstance(v, LongDecimal)]
    operand = in_operand(name, plain)[1] if plain else ()
    found = operand if isinstance(operand, tuple) else (operand,)
    return [*(value for value in found if value is not None), *sorted(dict.fromkeys(long))]


def _differs(name: str, value: Value | LongDecimal, slot: int) -> Constraint:
    if isinstance(value, LongDecimal):
        return _exact(name, Op.NE, [value], slot)
    return trusted_constraint(name, Op.NE, value, type_of(value))


def like_leaf(
    subject: Subject,
    pattern: OperandReader,
    escape: OperandReader,
    negated: bool,
    zone: str | None = None,
) -> Leaf:
    """LIKE: where the pattern has its % at the ends only, a constraint on the text itself; else on
    whether the text is like the pattern."""

    def leaf(literals: Literals) -> Constraints:
        try:
            wanted = pattern.read(literals)
            if wanted is None:
                return None
            simple = like_operand(wanted, escape.read(literals))
            if simple is None:
                general = canonical_pattern(wanted, escape.read(literals))
                return _like(subject, general, negated, zone)(literals)
        except InvalidPredicate as error:
            raise _bad_literal(pattern.slot, error) from None
        op, text = simple
        chosen = OPPOSITE[op] if negated else op
        return on(subject, partial(_fixed_leaf, chosen, text, Type.STRING), zone)(literals)

    return leaf


def _like(subject: Subject, pattern: str, negated: bool, zone: str | None) -> Leaf:
    whole = AttributeOf(subject) if isinstance(subject, str) else subject
    condition = Call("like", (whole, Constant(pattern)))
    return on(condition, partial(_fixed_leaf, Op.EQ, not negated, Type.BOOL), zone)


def _fixed_leaf(op: Op, value: Value | None, type: Type | None, name: str) -> Leaf:
    made = trusted_constraint(name, op, value, type)
    return lambda _literals: made


def fixed_leaf(
    subject: Subject, op: Op, value: Value | None, type: Type | None, zone: str | None = None
) -> Leaf:
    """A constraint whose operand stands in the shape itself, or that has none."""
    return on(subject, partial(_fixed_leaf, op, value, type), zone)
