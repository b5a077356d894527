"""What a table computes of messages, for those who ask: Spark, statistics, errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

OnFailure: TypeAlias = Callable[[str, Sequence[int], str], None]
"""Told of an expression (its name), rows for which it cannot be computed, and why for the first."""


US_PER_CALL = 0.1
"""Microseconds that a function or an operator takes for one candidate, about: measured for arithmetic and
`coalesce`, of 20,000 filters, 0.02 to 0.08 in single messages and 0.04 to 0.35 in batches. Regular expressions
take up to 8 in single messages."""
CHOICES = ("auto", "attributes", "residuals")
"""What becomes of expressions with literals."""


@dataclass(frozen=True, slots=True)
class TableExpressions:
    """The expressions of a table."""

    attributes: frozenset[str] = frozenset()
    """That members and residuals read."""
    read: frozenset[str] = frozenset()
    """Attributes that expressions read, whichever."""
    names: frozenset[str] = frozenset()
    """Attributes that the table knows."""
    plain: frozenset[str] = frozenset()
    """Attributes that constraints ask for as they are."""
    compared: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The types of the literals that names, those of expressions too, are compared with."""
    shared: tuple[str, ...] = ()
    """Names of the expressions that are attributes of the table."""
    members: int = 0
    """Elements of arrays that filters ask for."""
    residuals: int = 0
    """Filters with residuals, which are judged for candidates."""
    shapes: int = 0
    """Of residuals, with their operators."""
    unindexed: int = 0
    """Filters with residuals that are candidates for every message that has the attributes."""
    unindexed_us: float = 0.0
    """What these cost such a message, about: `US_PER_CALL`."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """How often an expression could not be computed for a message, by its text."""


FAILURES_MAX = 1_000
"""Expressions whose failures are counted one by one; those of others are counted together."""
OTHERS = "other expressions"


class FailureCounts:
    """How often expressions could not be computed, by their texts, in all versions of a table."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, name: str, times: int) -> None:
        text = name[1:]
        is_known = text in self._counts or len(self._counts) < FAILURES_MAX
        self._counts[text if is_known else OTHERS] += times

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter([*self._counts.items()])

    @property
    def total(self) -> int:
        return sum([*self._counts.values()])


@dataclass(frozen=True, slots=True)
class ExpressionUse:
    """How the engines of all versions of a table deal with expressions, and what they have counted."""

    choice: str = "auto"
    failures: FailureCounts = field(default_factory=FailureCounts)


def together(parts: Iterable[TableExpressions], use: ExpressionUse) -> TableExpressions:
    """Those of the engines of one table."""
    known = list(parts)
    return TableExpressions(
        attributes=frozenset().union(*(part.attributes for part in known)),
        read=frozenset().union(*(part.read for part in known)),
        names=frozenset().union(*(part.names for part in known)),
        plain=frozenset().union(*(part.plain for part in known)),
        compared=_types_together(known),
        shared=tuple(dict.fromkeys(name for part in known for name in part.shared)),
        members=sum(part.members for part in known),
        residuals=sum(part.residuals for part in known),
        shapes=max((part.shapes for part in known), default=0),
        unindexed=sum(part.unindexed for part in known),
        unindexed_us=sum(part.unindexed_us for part in known),
        failures=dict(use.failures),
    )


def _types_together(parts: Iterable[TableExpressions]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for part in parts:
        for name, types in part.compared.items():
            found[name] = found.get(name, frozenset()) | types
    return found
