"""Constraints, filters and predicates, and what it means to match.

A constraint is (name, operator, value, type); a filter is a conjunction of constraints; a
predicate is a disjunction of filters. Matching is SQL's WHERE with a missing attribute as NULL:
only `absent` selects it. Numbers compare by exact value; other types never match each other.

    operator                          on                 beyond the papers
    = !=                              every type
    < <= > >=                         all but bool
    in                                every type         yes (a set in one constraint)
    prefix suffix contains            string
    not prefix, not suffix, ...       string             yes (so that NOT LIKE can be said)
    any                               every type, or one
    absent                            no type            yes (IS NULL)
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from palio.errors import InvalidPredicate, InvalidValue
from palio.model.message import Message, as_message
from palio.model.values import NUMBERS, Type, Value, as_name, as_value, comparable, type_of

if TYPE_CHECKING:
    from palio.model.explanation import Explanation


class Op(StrEnum):
    """The operator of a constraint."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    IN = "in"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    CONTAINS = "contains"
    NOT_PREFIX = "not prefix"
    NOT_SUFFIX = "not suffix"
    NOT_CONTAINS = "not contains"
    ANY = "any"
    ABSENT = "absent"


STRING_OPS = frozenset(
    {Op.PREFIX, Op.SUFFIX, Op.CONTAINS, Op.NOT_PREFIX, Op.NOT_SUFFIX, Op.NOT_CONTAINS}
)
ORDER_OPS = frozenset({Op.LT, Op.LE, Op.GT, Op.GE})

# NOT, pushed into the constraint: under three-valued logic neither side selects what is missing.
OPPOSITE = {
    Op.EQ: Op.NE,
    Op.NE: Op.EQ,
    Op.LT: Op.GE,
    Op.GE: Op.LT,
    Op.GT: Op.LE,
    Op.LE: Op.GT,
    Op.PREFIX: Op.NOT_PREFIX,
    Op.SUFFIX: Op.NOT_SUFFIX,
    Op.CONTAINS: Op.NOT_CONTAINS,
    Op.NOT_PREFIX: Op.PREFIX,
    Op.NOT_SUFFIX: Op.SUFFIX,
    Op.NOT_CONTAINS: Op.CONTAINS,
}

Operand: TypeAlias = Value | tuple[Value, ...] | None


class _Checked(type(msgspec.Struct)):  # type: ignore[misc]
    """Calling `Constraint(...)` checks its arguments; `trusted_constraint` does not."""

    def __call__(
        cls,
        name: str,
        op: Op | str,
        value: Value | Iterable[Value] | None = None,
        type: Type | str | None = None,
    ) -> Constraint:
        return trusted_constraint(*_check(name, op, value, type))


class Constraint(msgspec.Struct, frozen=True, gc=False, cache_hash=True, metaclass=_Checked):
    """What one attribute must satisfy.

    The type follows from the value; only `any` takes it apart (`Constraint("user", "any",
    type="string")`), and without one it accepts every type.

    >>> Constraint("price", "<", 500)
    Constraint(price < 500)
    >>> Constraint("dest", "in", ["MXP", "LIN"]).matches("LIN")
    True
    """

    name: str
    op: Op
    value: Operand = None
    type: Type | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            op: Op | str,
            value: Value | Iterable[Value] | None = None,
            type: Type | str | None = None,
        ) -> None: ...

    def matches(self, value: Value | None) -> bool:
        """Does the attribute's value satisfy the constraint? None: it is not there."""
        op = self.op
        if value is None:
            return op is Op.ABSENT
        if self.type is None:  # any or absent
            return op is Op.ANY
        found = type_of(value)
        if op is Op.ANY:
            return found is self.type
        if found is not self.type and not (found in NUMBERS and self.type in NUMBERS):
            return False
        if value != value:  # NaN lies above every number, and no constraint names it
            return op is Op.GT or op is Op.GE or op is Op.NE
        return TESTS[op](value, self.value)

    def __str__(self) -> str:
        from palio.model.sql_text import constraint_sql

        return constraint_sql(self)

    def __repr__(self) -> str:
        return f"Constraint({_shorten(str(self))})"


trusted_constraint: Callable[[str, Op, Operand, Type | None], Constraint] = partial(
    type(msgspec.Struct).__call__, Constraint
)
"""A constraint from parts that were checked already: what the parser uses, for speed."""


class Filter(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """A conjunction of constraints. The empty filter matches every message."""

    constraints: tuple[Constraint, ...]

    def matches(self, message: Message | Mapping[str, object]) -> bool:
        values = as_message(message)._values
        for c in self.constraints:  # noqa: SIM110 (`all` takes twice as long)
            if not c.matches(values.get(c.name)):
                return False
        return True

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self.constraints)

    def __len__(self) -> int:
        return len(self.constraints)

    def __str__(self) -> str:
        from palio.model.sql_text import filter_sql

        return filter_sql(self)

    def __repr__(self) -> str:
        return f"Filter({_shorten(str(self))})"


class Predicate(msgspec.Struct, frozen=True, gc=False):
    """A disjunction of filters. Without filters it matches nothing.

    >>> Predicate.of(Constraint("price", "<", 500))
    Predicate(price < 500)
    """

    filters: tuple[Filter, ...]

    @classmethod
    def of(cls, *constraints: Constraint) -> Predicate:
        """The predicate of one filter."""
        return cls((Filter(constraints),))

    def matches(self, message: Message | Mapping[str, object]) -> bool:
        """Does this predicate select the message?"""
        values = as_message(message)._values
        for f in self.filters:
            for c in f.constraints:
                if not c.matches(values.get(c.name)):
                    break
            else:
                return True
        return False

    def explain(self, message: Message | Mapping[str, object]) -> Explanation:
        """Why this predicate selects the message or not, constraint by constraint."""
        from palio.model.explanation import explain

        return explain(self, message)

    def __or__(self, other: Predicate) -> Predicate:
        if not isinstance(other, Predicate):
            return NotImplemented
        return Predicate(self.filters + other.filters)

    def __iter__(self) -> Iterator[Filter]:
        return iter(self.filters)

    def __len__(self) -> int:
        return len(self.filters)

    @property
    def size(self) -> int:
        """The number of constraints (2006, 4.2)."""
        return sum(map(len, self.filters))

    def __str__(self) -> str:
        from palio.model.sql_text import predicate_sql

        return predicate_sql(self)

    def __repr__(self) -> str:
        return f"Predicate({_shorten(str(self))})"


def _check(
    name: str, op: Op | str, value: object, type: Type | str | None
) -> tuple[str, Op, Operand, Type | None]:
    """The parts of a constraint, checked and in normal form."""
    try:
        name = as_name(name)
    except InvalidValue as error:
        raise InvalidPredicate(str(error)) from None
    op = _as_op(name, op)
    if op is Op.ANY or op is Op.ABSENT:
        if value is not None:
            raise InvalidPredicate(f"attribute {name!r}: {op} takes no value, got {value!r}")
        if op is Op.ABSENT and type is not None:
            raise InvalidPredicate(f"attribute {name!r}: absent has no type, got {type!s}")
        return name, op, None, None if type is None else _as_type(name, type)
    op, operand, kind = _operand(name, op, value)
    if type is not None and not comparable(kind, _as_type(name, type)):
        raise InvalidPredicate(f"attribute {name!r}: {operand!r} is not of type {type!s}")
    return name, op, operand, kind


def _as_op(name: str, op: Op | str) -> Op:
    try:
        return Op(op)
    except ValueError:
        raise InvalidPredicate(
            f"attribute {name!r}: no operator {op!r}; there are {', '.join(Op)}"
        ) from None


def _as_type(name: str, type: Type | str) -> Type:
    try:
        return Type(type)
    except ValueError:
        raise InvalidPredicate(
            f"attribute {name!r}: no type {type!r}; there are {', '.join(Type)}"
        ) from None


def _operand(name: str, op: Op, value: object) -> tuple[Op, Operand, Type]:
    """Check operator and value against each other; give the constraint its normal form."""
    if op is Op.IN:
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise InvalidPredicate(f"attribute {name!r}: in takes a list of values, got {value!r}")
        return in_operand(name, [_checked(name, v) for v in value])
    checked = _checked(name, value)
    kind = type_of(checked)
    if op in STRING_OPS and kind is not Type.STRING:
        raise InvalidPredicate(f"attribute {name!r}: {op} takes a string, got {value!r}")
    if op in ORDER_OPS and kind is Type.BOOL:
        raise InvalidPredicate(f"attribute {name!r}: {op} does not order booleans; use = or !=")
    return op, checked, kind


def in_operand(name: str, values: list[Value]) -> tuple[Op, Operand, Type]:
    """The normal form of a set: sorted, without repeats; of one value it is `=`."""
    if not values:
        raise InvalidPredicate(f"attribute {name!r}: in takes at least one value")
    types = set(map(type_of, values))
    if len(types) > 1 and not types <= NUMBERS:
        raise InvalidPredicate(
            f"attribute {name!r}: the list of in mixes types ({', '.join(sorted(types))})"
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
        raise InvalidPredicate(f"attribute {name!r}: a constraint needs a value; use absent or any")
    try:
        return constraint_value(name, as_value(name, value))
    except InvalidValue as error:
        raise InvalidPredicate(str(error)) from None


def constraint_value(name: str, value: Value) -> Value:
    """What a constraint may compare with: any value but NaN; -0.0 is 0.0."""
    if isinstance(value, float):
        if value != value:
            raise InvalidPredicate(
                f"attribute {name!r}: NaN is no value of a constraint; "
                "it is above every number, so > CAST('Infinity' AS DOUBLE) selects it"
            )
        return value + 0.0
    return value


def _member(value: Any, operand: Any) -> bool:
    at = bisect_left(operand, value)
    return at < len(operand) and bool(operand[at] == value)


TESTS: dict[Op, Callable[[Any, Any], bool]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
    Op.IN: _member,
    Op.PREFIX: str.startswith,
    Op.SUFFIX: str.endswith,
    Op.CONTAINS: operator.contains,
    Op.NOT_PREFIX: lambda value, operand: not value.startswith(operand),
    Op.NOT_SUFFIX: lambda value, operand: not value.endswith(operand),
    Op.NOT_CONTAINS: lambda value, operand: operand not in value,
}


def _shorten(text: str, width: int = 200) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
