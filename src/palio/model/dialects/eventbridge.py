"""Event patterns of Amazon EventBridge, which are the rules of event-ruler, read and written.

    pattern ─▶ eventbridge_fields ─▶ rules ─▶ eventbridge_filters ─▶ Predicate
               objects, $or          by path   values, arrays, objects in arrays

docs/reference/eventbridge.md says what becomes what.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from palio.errors import LimitExceeded
from palio.model.dialects.eventbridge_fields import rules_of
from palio.model.dialects.eventbridge_filters import filters_of
from palio.model.dialects.eventbridge_writing import written
from palio.model.language import FILTERS_MAX
from palio.model.predicate import Filter, Predicate

CONSTRAINTS_MAX = 200_000
"""Of a pattern: each place that may hold an array has a filter that repeats the others."""


def read(
    pattern: str | Mapping[str, Any],
    *,
    arrays: Collection[str] | None = None,
    limit: int = FILTERS_MAX,
) -> Predicate:
    """The predicate of an event pattern.

    `arrays` names the fields that may hold arrays, of values or of objects; without it all may. Naming them
    makes smaller predicates. `limit` bounds the number of filters. Raises InvalidPredicate, which names the
    field, or its children ParseError and LimitExceeded.

    >>> read('{"source": ["aws.ec2"], "detail": {"cpu": [{"numeric": [">", 90]}]}}', arrays=())
    Predicate(source = 'aws.ec2' AND `detail.cpu` > 90)
    """
    may_hold_array = (lambda _name: True) if arrays is None else frozenset(arrays).__contains__
    filters: dict[Filter, None] = {}
    size = 0
    for rule in rules_of(pattern, limit):
        for found in filters_of(rule, may_hold_array):
            filters[found] = None
            size += len(found)
            if len(filters) > limit:
                raise LimitExceeded(
                    f"the pattern has more than {limit:,} filters, which is the limit"
                )
            if size > CONSTRAINTS_MAX:
                raise LimitExceeded(
                    f"the pattern becomes more than {CONSTRAINTS_MAX:,} constraints; divide it, or name "
                    "the fields that may hold arrays (arrays=)"
                )
    return Predicate(tuple(filters))


def write(predicate: Predicate) -> str:
    """An event pattern with the meaning of a predicate, as JSON.

    It selects the same messages as long as these have no arrays where the predicate reads single values, and
    values of the types that it compares with. Raises InvalidPredicate, which names the constraint that no
    pattern can say.

    >>> from palio.model.language import parse
    >>> write(parse("source = 'aws.ec2' AND detail.cpu > 90"))
    '{"source": ["aws.ec2"], "detail": {"cpu": [{"numeric": [">", 90]}]}}'
    """
    return written(predicate, read)
