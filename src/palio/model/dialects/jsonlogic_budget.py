"""What the translation of one JSONLogic rule may take: steps, the size of values, the length of SQL.

A rule computes with constants while it is read, and may do so for each element of an array within another;
`reduce` may double a value at each step. So what is made is counted, not what is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from palio.model.dialects.documents import RefusedRule
from palio.model.dialects.jsonlogic_values import JsonConstant, JsonListed, JsonValue
from palio.model.dialects.translation import Sql

WRITTEN_MAX = 4_000_000
"""Characters of SQL, all parts together."""
MADE_MAX = 2_000_000
"""Characters and members of the constants that a rule computes, all together."""
STEPS_MAX = 200_000


class JsonLogicBudget:
    """Counts; where a bound is reached, RefusedRule."""

    def __init__(self) -> None:
        self._steps = self._made = self._written = 0

    def step(self) -> None:
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise RefusedRule(
                f"the rule takes more than {STEPS_MAX:,} steps to read; divide it", is_limit=True
            )

    def written(self, sql: Sql) -> Sql:
        self._written += len(sql.text)
        if self._written > WRITTEN_MAX:
            raise RefusedRule("the rule becomes too long a condition; divide it", is_limit=True)
        return sql

    def made(self, value: JsonValue) -> None:
        for size in _sizes(value):
            self._made += size
            if self._made > MADE_MAX:
                raise RefusedRule(
                    "the rule computes values that are too large; divide it", is_limit=True
                )


def _sizes(value: JsonValue) -> Iterator[int]:
    """Of a value and of all that is in it, one by one: whoever counts may stop."""
    if isinstance(value, JsonListed):
        for _, one in value.elements:
            yield 1
            yield from _sizes(one)
    elif isinstance(value, JsonConstant):
        yield from _plain_sizes(value.value)


def _plain_sizes(value: Any) -> Iterator[int]:
    yield 1
    if isinstance(value, str):
        yield len(value)
    elif isinstance(value, list | tuple):
        yield len(value)
        for one in value:
            if isinstance(one, str | list | tuple):
                yield from _plain_sizes(one)
