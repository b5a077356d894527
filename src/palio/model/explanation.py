"""Why a predicate did or did not match a message, constraint by constraint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from palio.model.message import Message, as_message
from palio.model.predicate import Constraint, Filter, Predicate
from palio.model.values import Value, format_instant, type_of


@dataclass(frozen=True, slots=True)
class ConstraintVerdict:
    """One constraint against the attribute it names; value None: it is not there."""

    constraint: Constraint
    value: Value | None
    holds: bool

    @property
    def reason(self) -> str:
        name = self.constraint.name
        if self.value is None:
            return f"{name} is not there"
        type = type_of(self.value)
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


def explain(predicate: Predicate, message: Message | Mapping[str, object]) -> Explanation:
    """Judge every constraint of a predicate against a message.

    >>> from palio.model.language import parse
    >>> print(explain(parse("dest = 'MXP' AND price < 500"), {"dest": "MXP", "price": 600}))
    does not match
      filter 1 of 1 fails: dest = 'MXP' AND price < 500
        yes  dest = 'MXP'   (dest is 'MXP')
        no   price < 500   (price is 600)
    """
    values = as_message(message)
    return Explanation(
        predicate,
        tuple(
            FilterVerdict(
                f,
                tuple(
                    ConstraintVerdict(c, values.get(c.name), c.matches(values.get(c.name)))
                    for c in f.constraints
                ),
            )
            for f in predicate.filters
        ),
    )
