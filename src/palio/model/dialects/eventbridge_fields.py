"""The structure of an event pattern: objects within objects, lists at their ends, and `$or`.

A pattern becomes rules: each says for some paths what their values must satisfy, and which paths have none.
`$or` multiplies rules, and so does a field that may be missing or have a value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any, NoReturn, TypeAlias

from palio.errors import InvalidPredicate, LimitExceeded
from palio.model.dialects.eventbridge_conditions import Condition
from palio.model.dialects.eventbridge_conditions_reading import ConditionsReader
from palio.model.dialects.eventbridge_json import decoded, entries
from palio.model.values import shortened

Path: TypeAlias = tuple[str, ...]
OR = "$or"
DEPTH_MAX = 64
"""Objects within objects of a pattern, and names between the dots of a field."""
FIELDS_MAX = 5_000
COPIES_MAX = 500_000
"""Fields of all alternatives together."""


@dataclass(frozen=True, slots=True)
class PatternRule:
    """A conjunction over the paths of an event."""

    values: dict[Path, tuple[Condition, ...]] = field(default_factory=dict)
    absent: tuple[Path, ...] = ()

    @classmethod
    def of_all(cls, rules: Iterable[PatternRule]) -> PatternRule:
        """The conjunction of these."""
        values: dict[Path, tuple[Condition, ...]] = {}
        absent: dict[Path, None] = {}
        for rule in rules:
            for path in rule.paths():
                if path in values or path in absent:
                    raise InvalidPredicate(
                        "the field stands twice in one rule",
                        attribute=".".join(path)[:_SHOWN_MAX],
                        remedy="write all its conditions into one list; the list is a disjunction",
                    )
            values |= rule.values
            absent |= dict.fromkeys(rule.absent)
        return cls(values, tuple(absent))

    def paths(self) -> Iterator[Path]:
        yield from self.values
        yield from self.absent


Rules: TypeAlias = list[PatternRule]


def rules_of(pattern: str | Mapping[str, Any], limit: int) -> Rules:
    """The rules of a pattern, one of which has to hold."""
    document = decoded(pattern) if isinstance(pattern, str) else pattern
    if not isinstance(document, Mapping):
        raise InvalidPredicate(
            f"an event pattern is a JSON object, not {shortened(document)}",
            remedy='write {"source": ["aws.ec2"]}',
        )
    return _Reader(limit).rules((), document, 1, within_or=False)


# ---- structure


class _Reader:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._fields = self._copied = 0

    def rules(self, path: Path, found: Mapping[str, Any], depth: int, *, within_or: bool) -> Rules:
        if depth > DEPTH_MAX:
            raise InvalidPredicate(f"a pattern is nested at most {DEPTH_MAX} levels deep")
        if not found:
            _fail(
                path, "the object is empty", 'write the fields that are wanted: {"state": ["on"]}'
            )
        parts = []
        for name, value in entries(found):
            if not isinstance(name, str):
                _fail(path, f"the name of a field is a string, not {shortened(name)}")
            if within_or and name in RESERVED:
                _fail((*path, name), f"within {OR} no field is called {shortened(name)}", _IN_OR)
            if name == OR and _is_disjunction(value):
                parts.append(self._any_of(path, value, depth))
            else:
                inner = (*path, *name.split("."))
                self._fields += 1
                if self._fields > FIELDS_MAX or len(inner) > DEPTH_MAX:
                    raise LimitExceeded(
                        f"a pattern has at most {FIELDS_MAX:,} fields, nested at most {DEPTH_MAX} levels deep"
                    )
                parts.append(self._field(inner, value, depth, within_or=within_or))
        return self._product(parts)

    def _field(self, path: Path, value: Any, depth: int, *, within_or: bool) -> Rules:
        if isinstance(value, Mapping):
            return self.rules(path, value, depth + 1, within_or=within_or)
        if isinstance(value, str) or not isinstance(value, Sequence):
            wanted = json.dumps([value]) if isinstance(value, str | int | float) else '["running"]'
            _fail(path, f"{shortened(value)} is no list of conditions", f"write {wanted}")
        if path[-1] == OR and any(map(_has_fields, value)):
            _fail(path, f"{OR} takes two objects of fields or more", _IN_OR)
        conditions, may_be_missing = ConditionsReader(".".join(path)).read(value)
        rules = [PatternRule(absent=(path,))] if may_be_missing else []
        return [*rules, PatternRule({path: conditions})] if conditions else rules

    def _any_of(self, path: Path, members: Sequence[Any], depth: int) -> Rules:
        found: Rules = []
        for member in members:
            found += self.rules(path, member, depth + 1, within_or=True)
            self._check(len(found))
        return found

    def _product(self, parts: list[Rules]) -> Rules:
        count = prod(map(len, parts))
        self._check(count)
        self._copied += count * len(parts)
        if self._copied > COPIES_MAX:
            raise LimitExceeded(f"{OR} and exists multiply too many fields; divide the pattern")
        return [PatternRule.of_all(chosen) for chosen in product(*parts)]

    def _check(self, count: int) -> None:
        if count > self._limit:
            raise LimitExceeded(
                f"{OR} and exists multiply alternatives to {count:,} filters or more, "
                f"and the limit is {self._limit:,}"
            )


def _is_disjunction(value: Any) -> bool:
    """Otherwise `$or` is the name of a field."""
    return isinstance(value, Sequence) and len(value) > 1 and all(map(_has_fields, value))


def _has_fields(member: Any) -> bool:
    """It looks like an alternative, not like a condition."""
    return isinstance(member, Mapping) and member.keys().isdisjoint(RESERVED)


_SHOWN_MAX = 200
"""Characters of a field that an error names."""


def _fail(path: Path, reason: str, remedy: str = "") -> NoReturn:
    raise InvalidPredicate(reason, attribute=".".join(path)[:_SHOWN_MAX] or None, remedy=remedy)


RESERVED = frozenset(
    "exactly equals-ignore-case prefix suffix anything-but exists wildcard numeric cidr = < <= > >= "
    "regex not-wildcard not-equals-ignore-case date-after date-on-or-after date-before "
    "date-on-or-before in-date-range ip-address-in-range ip-address-not-in-range".split()
)
"""No names of fields within `$or`, where they would read as conditions."""
_IN_OR = f'write {{"{OR}": [{{"a": ["x"]}}, {{"b": ["y"]}}]}}'
