"""The conditions of event patterns, and what each says in the model.

    alternatives   constraints on an attribute that holds one value; one of the conjunctions has to hold
    others         constraints that a value of another type satisfies; rare, so kept apart
    of(value)      the same as an expression, for an element of an array

A condition of one type is satisfied by no value of another; anything-but is satisfied by all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from palio.model.expressions.names import computed_name
from palio.model.expressions.tree import AttributeOf, Call, Constant, Expression
from palio.model.operators import OPPOSITE, Op
from palio.model.predicate import Constraint, trusted_constraint
from palio.model.values import Type, Value, type_of

Conjunction: TypeAlias = tuple[Constraint, ...]


class Condition(Protocol):
    """One member of the list of a field."""

    def alternatives(self, name: str) -> list[Conjunction]: ...

    def others(self, name: str) -> list[Conjunction]: ...

    def of(self, value: Expression) -> Expression: ...


class TypedTest:
    """A condition that only values of one type satisfy. It can stand in anything-but."""

    def constraint(self, name: str, negated: bool = False) -> Constraint | None:
        """None: there is none; every value of the type satisfies the test, and so none its negation."""
        raise NotImplementedError

    def alternatives(self, name: str) -> list[Conjunction]:
        found = self.constraint(name)
        return [(Constraint(name, Op.ANY, type=Type.STRING),)] if found is None else [(found,)]

    def others(self, _name: str) -> list[Conjunction]:
        return []

    def of(self, value: Expression) -> Expression:
        raise NotImplementedError


def computed(expression: Expression, op: Op, value: Value) -> Constraint:
    """A constraint on what is computed. Its name is canonical: it need not be parsed."""
    return trusted_constraint(computed_name(expression), op, value, type_of(value))


def _tested(name: str, op: Op, operand: str, negated: bool) -> Constraint:
    return Constraint(name, OPPOSITE[op] if negated else op, operand)


def _tested_lower(name: str, op: Op, operand: str, negated: bool) -> Constraint:
    """Without regard to case."""
    lower = Call("lower", (AttributeOf(name),))
    return computed(lower, OPPOSITE[op] if negated else op, operand)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some strings, numbers or booleans, all of one kind: in Python, 0 is False."""

    kind: str
    values: tuple[str | int | float, ...]

    def alternatives(self, name: str) -> list[Conjunction]:
        if self.kind == "bool":
            return [(Constraint(name, Op.EQ, value),) for value in self.values]
        return [(Constraint(name, Op.IN, self.values),)]

    def others(self, _name: str) -> list[Conjunction]:
        return []

    def of(self, value: Expression) -> Expression:
        return among(value, self.values)


def among(value: Expression, values: tuple[str | int | float, ...]) -> Expression:
    if len(values) == 1:
        return Call("equal", (value, Constant(values[0])))
    return Call("in", (value, *map(Constant, values)))


@dataclass(frozen=True, slots=True)
class IsNull:
    """null. Messages have no attribute that is NULL: the reader makes it one that is not there."""

    def alternatives(self, _name: str) -> list[Conjunction]:
        return []

    def others(self, _name: str) -> list[Conjunction]:
        return []

    def of(self, value: Expression) -> Expression:
        return Call("is null", (value,))


@dataclass(frozen=True, slots=True)
class Exists:
    """{"exists": true}"""

    def alternatives(self, name: str) -> list[Conjunction]:
        return [(Constraint(name, Op.ANY),)]

    def others(self, _name: str) -> list[Conjunction]:
        return []

    def of(self, _value: Expression) -> Expression:
        return Constant(True)


@dataclass(frozen=True, slots=True)
class Edge(TypedTest):
    """{"prefix": "a"} or {"suffix": "a"}, with or without regard to case."""

    op: Op
    text: str  # in lower case where case is ignored
    ignores_case: bool

    def constraint(self, name: str, negated: bool = False) -> Constraint | None:
        if not self.text:
            return None
        if self.ignores_case:
            return _tested_lower(name, self.op, self.text, negated)
        return _tested(name, self.op, self.text, negated)

    def of(self, value: Expression) -> Expression:
        function = "startswith" if self.op is Op.PREFIX else "endswith"
        if self.ignores_case:
            return Call(function, (Call("lower", (value,)), Constant(self.text)))
        return Call(function, (value, Constant(self.text)))


@dataclass(frozen=True, slots=True)
class SameText(TypedTest):
    """{"equals-ignore-case": "a"}"""

    text: str  # in lower case

    def constraint(self, name: str, negated: bool = False) -> Constraint | None:
        return _tested_lower(name, Op.EQ, self.text, negated)

    def of(self, value: Expression) -> Expression:
        return Call("equal", (Call("lower", (value,)), Constant(self.text)))


@dataclass(frozen=True, slots=True)
class Wildcard(TypedTest):
    """{"wildcard": "a*b*c"}: the texts between the stars. With one star at an end it is an `Edge`."""

    pieces: tuple[str, ...]

    @property
    def is_text(self) -> bool:
        """Without a star."""
        return len(self.pieces) == 1

    @property
    def pattern(self) -> str:
        """For LIKE."""
        escaped = (
            "".join(f"\\{char}" if char in "%_\\" else char for char in piece)
            for piece in self.pieces
        )
        return "%".join(escaped)

    def constraint(self, name: str, negated: bool = False) -> Constraint | None:
        match self.pieces:
            case (text,):
                return _tested(name, Op.EQ, text, negated)
            case ("", text, ""):
                return _tested(name, Op.CONTAINS, text, negated)
        return computed(self.of(AttributeOf(name)), Op.EQ, not negated)

    def of(self, value: Expression) -> Expression:
        match self.pieces:
            case (text,):
                return Call("equal", (value, Constant(text)))
            case ("", text, ""):
                return Call("contains", (value, Constant(text)))
        return Call("like", (value, Constant(self.pattern)))


@dataclass(frozen=True, slots=True)
class NumberRange:
    """{"numeric": [">", 0, "<=", 5]}: one bound or two."""

    comparisons: tuple[tuple[Op, int | float], ...]

    def alternatives(self, name: str) -> list[Conjunction]:
        return [tuple(Constraint(name, op, number) for op, number in self.comparisons)]

    def others(self, _name: str) -> list[Conjunction]:
        return []

    def of(self, value: Expression) -> Expression:
        return all_of(
            [Call(_COMPARES[op], (value, Constant(number))) for op, number in self.comparisons]
        )


_COMPARES = {
    Op.EQ: "equal",
    Op.LT: "less",
    Op.LE: "less_or_equal",
    Op.GT: "greater",
    Op.GE: "greater_or_equal",
}


@dataclass(frozen=True, slots=True)
class Block:
    """{"cidr": "10.0.0.0/8"}, as the keys of its first and its last address."""

    first: str
    last: str

    def alternatives(self, name: str) -> list[Conjunction]:
        key = Call("ip_key", (AttributeOf(name),))
        if self.first == self.last:
            return [(computed(key, Op.EQ, self.first),)]
        return [(computed(key, Op.GE, self.first), computed(key, Op.LE, self.last))]

    def others(self, _name: str) -> list[Conjunction]:
        return []

    def of(self, value: Expression) -> Expression:
        key = Call("ip_key", (value,))
        if self.first == self.last:
            return Call("equal", (key, Constant(self.first)))
        return all_of(
            [
                Call("greater_or_equal", (key, Constant(self.first))),
                Call("less_or_equal", (key, Constant(self.last))),
            ]
        )


@dataclass(frozen=True, slots=True)
class AnythingBut:
    """{"anything-but": ...}: a value that none of the texts or numbers, or none of the tests, describes."""

    values: tuple[str | int | float, ...] = ()
    tests: tuple[TypedTest, ...] = ()

    @property
    def of_numbers(self) -> bool:
        return bool(self.values) and not isinstance(self.values[0], str)

    def alternatives(self, name: str) -> list[Conjunction]:
        """Values of the type that is compared."""
        if self.values:
            return [tuple(Constraint(name, Op.NE, value) for value in self.values)]
        negations = [test.constraint(name, negated=True) for test in self.tests]
        found = tuple(one for one in negations if one is not None)
        return [found] if len(found) == len(negations) else []

    def others(self, name: str) -> list[Conjunction]:
        numbers = Constraint(name, Op.GE, -math.inf)
        strings = Constraint(name, Op.ANY, type=Type.STRING)
        return [
            (strings if self.of_numbers else numbers,),
            (Constraint(name, Op.ANY, type=Type.BOOL),),
            (Constraint(name, Op.ANY, type=Type.TIME),),
        ]

    def of(self, value: Expression) -> Expression:
        """Two-valued: what the tests do not apply to is something else."""
        excluded = (
            among(value, self.values)
            if self.values
            else any_of([test.of(value) for test in self.tests])
        )
        return Call("not", (Call("coalesce", (excluded, Constant(False))),))


def all_of(conditions: list[Expression]) -> Expression:
    return _joined("and", conditions)


def any_of(conditions: list[Expression]) -> Expression:
    return _joined("or", conditions)


def _joined(function: str, conditions: list[Expression]) -> Expression:
    """A balanced tree: the parser bounds how deep parentheses are nested."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return Call(
        function,
        (_joined(function, conditions[:middle]), _joined(function, conditions[middle:])),
    )
