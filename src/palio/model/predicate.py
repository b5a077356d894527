"""Constraints, filters and predicates, what it means to match, and why one did or did not.

A constraint is (name, operator, operand, type), and its name that of an attribute or of an
expression (`expressions/names.py`); a filter is a conjunction of constraints; a predicate is a
disjunction of filters. Matching is SQL's WHERE with a missing attribute as NULL:
only `absent` selects it. Numbers compare by exact value; other types never match each other.
`operators` lists the operators, `operands` says what a constraint may hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import msgspec

from palio.model.arrays import Content
from palio.model.arrays import shown as shown_array
from palio.model.constraint_text import constraint_sql
from palio.model.expressions.names import is_computed, value_of
from palio.model.long_decimals import LongDecimal
from palio.model.message import Message, as_message
from palio.model.operands import Operand, checked_parts
from palio.model.operators import TESTS, Op
from palio.model.values import NUMBERS, Type, Value, format_instant, kind_of

__all__ = [
    "Constraint",
    "ConstraintVerdict",
    "Explanation",
    "Filter",
    "FilterVerdict",
    "Op",
    "Predicate",
    "trusted_constraint",
]


class _Checked(type(msgspec.Struct)):  # type: ignore[misc]
    """Calling `Constraint(...)` checks its arguments; `trusted_constraint` does not."""

    def __call__(
        cls,
        name: str,
        op: Op | str,
        value: Value | Iterable[Value] | None = None,
        type: Type | str | None = None,
    ) -> Constraint:
        return trusted_constraint(*checked_parts(name, op, value, type))


class Constraint(msgspec.Struct, frozen=True, gc=False, cache_hash=True, metaclass=_Checked):
    """What one attribute must satisfy.

    The type follows from the value. Only `any` has no value and may be given a type
    (`Constraint("user", "any", type="string")`); without one it accepts every type.

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

    def matches(self, value: Content | LongDecimal | None) -> bool:
        """Does the attribute's value satisfy the constraint? None: it is not there."""
        op = self.op
        if value is None:
            return op is Op.ABSENT
        if self.type is None:  # any or absent
            return op is Op.ANY
        found = kind_of(value)  # None of an array, which is there and nothing else
        if op is Op.ANY:
            return found is self.type
        if found is not self.type and not (found in NUMBERS and self.type in NUMBERS):
            return False
        if value != value:  # NaN lies above every number, and no constraint names it
            return op is Op.GT or op is Op.GE or op is Op.NE
        return TESTS[op](value, self.value)

    def __str__(self) -> str:
        return constraint_sql(self.name, self.op, self.value, self.type)

    def __repr__(self) -> str:
        return f"Constraint({_shorten(str(self))})"


trusted_constraint: Callable[[str, Op, Operand, Type | None], Constraint] = partial(
    type(msgspec.Struct).__call__, Constraint
)
"""A constraint from parts that were checked already: what the parser uses, for speed."""


class Filter(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """A conjunction of constraints. The empty filter matches every message."""

    constraints: tuple[Constraint, ...]

    def matches(
        self,
        message: Message | Mapping[str, object],
        failed: Callable[[str, str], None] | None = None,
    ) -> bool:
        """Does this filter select the message? `failed` is told of expressions that could not be
        computed: the name, and why."""
        known = message if type(message) is Message else as_message(message)
        values = known._values if known._exact is None else known.compared
        for c in self.constraints:  # `all` takes twice as long
            name = c.name
            if name[:1] == "=":
                found = value_of(name, known.read, failed and partial(failed, name))
            else:
                found = values.get(name)
            if not c.matches(found):
                return False
        return True

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self.constraints)

    def __len__(self) -> int:
        return len(self.constraints)

    def __str__(self) -> str:
        """Of a long one it is remembered for a while: a list may have 100,000 values."""
        constraints = self.constraints
        if len(constraints) > _LONG or any(c.op is Op.IN for c in constraints):
            return _long_text(self)
        return " AND ".join(map(str, constraints)) or "TRUE"

    def __repr__(self) -> str:
        return f"Filter({_shorten(str(self))})"


_LONG = 64
"""Constraints."""


@lru_cache(maxsize=64)
def _long_text(conjunction: Filter) -> str:
    return " AND ".join(map(str, conjunction.constraints))


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
        known = as_message(message)
        values = known._values if known._exact is None else known.compared
        for f in self.filters:
            for c in f.constraints:
                name = c.name
                if not c.matches(
                    value_of(name, known.read) if name[:1] == "=" else values.get(name)
                ):
                    break
            else:
                return True
        return False

    def explain(self, message: Message | Mapping[str, object]) -> Explanation:
        """Why this predicate selects the message or not, constraint by constraint.

        >>> cheap = Predicate.of(Constraint("dest", "=", "MXP"), Constraint("price", "<", 500))
        >>> print(cheap.explain({"dest": "MXP", "price": 600}))
        does not match
          filter 1 of 1 fails: dest = 'MXP' AND price < 500
            yes  dest = 'MXP'   (dest is 'MXP')
            no   price < 500   (price is 600)
        """
        values = as_message(message)
        return Explanation(self, tuple(_verdict(f, values) for f in self.filters))

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
        return " OR ".join(map(str, self.filters)) or "FALSE"

    def __repr__(self) -> str:
        return f"Predicate({_shorten(str(self))})"


# ---- why


@dataclass(frozen=True, slots=True)
class ConstraintVerdict:
    """One constraint and the attribute that it names; the value is None where there is none."""

    constraint: Constraint
    value: Content | LongDecimal | None
    holds: bool
    failure: str = ""
    """Why the expression, or a part of it, could not be computed."""

    @property
    def reason(self) -> str:
        return self._known + (f"; failed: {self.failure}" if self.failure else "")

    @property
    def _known(self) -> str:
        name = self.constraint.name.removeprefix("=")
        if self.value is None:
            return (
                f"{name} is NULL" if is_computed(self.constraint.name) else f"{name} is not there"
            )
        type = kind_of(self.value)
        if type is None:
            return f"{name} is {shown_array(self.value)}"  # type: ignore[arg-type]
        shown = format_instant(self.value) if type == "time" else repr(self.value)  # type: ignore[arg-type]
        expected = self.constraint.type
        if not self.holds and expected is not None and type != expected:
            return f"{name} is the {type} {shown}"
        return f"{name} is {shown}"

    def __str__(self) -> str:
        return f"{'yes' if self.holds else 'no '}  {self.constraint}   ({self.reason})"


@dataclass(frozen=True, slots=True)
class FilterVerdict:
    """One filter: it holds when all its constraints do."""

    filter: Filter
    constraints: tuple[ConstraintVerdict, ...]

    @property
    def holds(self) -> bool:
        return all(c.holds for c in self.constraints)

    @property
    def deciding(self) -> tuple[ConstraintVerdict, ...]:
        """What decided: all constraints when it holds, those that failed when not."""
        return tuple(c for c in self.constraints if c.holds == self.holds)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdict on a message; `str()` is made to be read."""

    predicate: Predicate
    filters: tuple[FilterVerdict, ...]

    @property
    def matches(self) -> bool:
        return any(f.holds for f in self.filters)

    def __str__(self) -> str:
        lines = ["matches" if self.matches else "does not match"]
        if not self.filters:
            lines.append("  the predicate selects nothing")
        for i, verdict in enumerate(self.filters, 1):
            held = "holds" if verdict.holds else "fails"
            lines.append(f"  filter {i} of {len(self.filters)} {held}: {verdict.filter}")
            lines.extend(f"    {c}" for c in verdict.constraints)
        return "\n".join(lines)


def _verdict(conjunction: Filter, message: Message) -> FilterVerdict:
    return FilterVerdict(
        conjunction, tuple(_constraint_verdict(c, message) for c in conjunction.constraints)
    )


def _constraint_verdict(constraint: Constraint, message: Message) -> ConstraintVerdict:
    failures: list[str] = []
    name = constraint.name
    if is_computed(name):
        value = value_of(name, message.read, failures.append)
    else:
        value = message.compared.get(name)
    return ConstraintVerdict(
        constraint, value, constraint.matches(value), "; ".join(dict.fromkeys(failures))
    )


def _shorten(text: str, width: int = 200) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
