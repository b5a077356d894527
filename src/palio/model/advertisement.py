"""Advertisements: what a publisher says it may send (2000, 3.2).

The dual of a filter: every attribute of the message must be allowed by one of the constraints on
its name, and several constraints on one name are alternatives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from palio.errors import InvalidPredicate
from palio.model.expressions.names import is_computed
from palio.model.language import parse
from palio.model.message import Message, as_message
from palio.model.predicate import Constraint

_SHAPE_MAX = 40_000  # characters of one constraint beside its literals


class Advertisement(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """A set of allowed attributes.

    >>> Advertisement((Constraint("what", "=", "alarm"), Constraint("user", "any")))
    Advertisement(what = 'alarm', user IS NOT NULL)
    """

    constraints: tuple[Constraint, ...]

    def __post_init__(self) -> None:
        for constraint in self.constraints:
            if is_computed(constraint.name):
                raise InvalidPredicate(
                    f"{constraint}: an advertisement says what attributes may be, not expressions of them",
                    remedy="name the attributes: x IS NOT NULL allows every x",
                )

    def matches(self, message: Message | Mapping[str, object]) -> bool:
        """May this publisher send the message? Each constraint is looked at once (2000, 3.7)."""
        by_name: dict[str, list[Constraint]] = {}
        for constraint in self.constraints:
            by_name.setdefault(constraint.name, []).append(constraint)
        return all(
            any(c.matches(value) for c in by_name.get(name, ()))
            for name, value in as_message(message).compared.items()
        )

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self.constraints)

    def __repr__(self) -> str:
        return f"Advertisement({', '.join(map(str, self.constraints))})"


_FILTERS_MAX = 64  # of a text that is to be a single constraint; enough to say that it is not


def parse_advertisement(texts: Iterable[str]) -> Advertisement:
    """An advertisement from its constraints as SQL.

    >>> parse_advertisement(["what = 'alarm'", "level > 3"])
    Advertisement(what = 'alarm', level > 3)
    """
    return Advertisement(tuple(map(_single, texts)))


def _single(text: str) -> Constraint:
    predicate = parse(text, limit=_FILTERS_MAX, shape_max=_SHAPE_MAX)
    if len(predicate) != 1 or len(predicate.filters[0]) != 1:
        raise InvalidPredicate(
            f"{text}: an advertisement is a list of single constraints; write AND as two of them"
        )
    return predicate.filters[0].constraints[0]
