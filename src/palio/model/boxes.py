"""Filters as boxes: for each name that a filter constrains, the set of values it allows.

One box covers another when each of its sets holds the other's set of that name. A name that a box
does not have may have any value, or none. What is computed of attributes says something about them too:
`extended` adds that to a box, which makes it narrower and never loses a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from palio.errors import InvalidPredicate
from palio.model import valuesets
from palio.model.expressions.names import is_computed
from palio.model.implied import implied
from palio.model.predicate import Constraint, Filter
from palio.model.values import NUMBERS, Type
from palio.model.valuesets import ANYTHING, ValueSet, is_empty, is_subset

Box: TypeAlias = dict[str, ValueSet]
Schema: TypeAlias = Mapping[str, Type | str]


def box(conjunction: Filter, schema: Schema | None = None) -> Box:
    """For each name that a filter constrains, the values that it allows."""
    groups: dict[str, list[Constraint]] = {}
    for constraint in conjunction.constraints:
        groups.setdefault(constraint.name, []).append(constraint)
    sets = {
        name: valuesets.selected(group[0]) if len(group) == 1 else valuesets.conjunction(group)
        for name, group in groups.items()
    }
    for name in sets if schema else ():
        sets[name] = valuesets.intersection(declared(name, schema), sets[name])
    return sets


EXTENDED_MAX = 200
"""Expressions of one question that are asked what they say: each may take a few tenths of a millisecond."""


class Extension:
    """Extends the boxes of one question, as long as it may; the others stay as they are."""

    def __init__(self, schema: Schema | None) -> None:
        self._schema, self._left = schema, EXTENDED_MAX

    def of(self, sets: Box) -> Box:
        self._left -= sum(map(is_computed, sets))
        return extended(sets, self._schema) if self._left >= 0 else sets


def extended(sets: Box, schema: Schema | None = None) -> Box:
    """The box with what its expressions imply: its messages are the same."""
    computed = [name for name in sets if is_computed(name)]
    if not computed:
        return sets
    exact = frozenset(name for name in schema or () if (schema or {})[name] in NUMBERS)
    found = dict(sets)
    for name in computed:
        for attribute, allowed in implied(name, sets[name], exact).items():
            known = found[attribute] if attribute in found else declared(attribute, schema)
            found[attribute] = valuesets.intersection(known, allowed)
    return found


def declared(name: str, schema: Schema | None) -> ValueSet:
    """What an attribute may be at all."""
    if not schema or name not in schema:
        return ANYTHING
    try:
        return valuesets.of_type(Type(schema[name]))
    except ValueError:
        raise InvalidPredicate(
            f"the schema gives attribute {name!r} the type {schema[name]!r}",
            remedy=f"there are {', '.join(Type)}",
        ) from None


def is_contradiction(conjunction: Box, exact: bool = False) -> bool:
    """No message matches it."""
    return any(is_empty(allowed, exact) for allowed in conjunction.values())


def box_covers(a: Box, b: Box, exact: bool = False) -> bool:
    """Every message in box b is in box a. Box b is not empty."""
    return all(is_subset(b.get(name, ANYTHING), allowed, exact) for name, allowed in a.items())
