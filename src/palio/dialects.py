"""Rules that people have already, in the dialects of other systems, as predicates.

    read(rule, "eventbridge")     one call for all, by the name of the dialect
    eventbridge.read(pattern)     each dialect with its options; eventbridge.write(predicate)

docs/reference/dialects.md and docs/reference/eventbridge.md say what maps to what.
"""

from __future__ import annotations

from collections.abc import Callable

from palio.errors import InvalidPredicate
from palio.model.dialects import (
    cesql,
    cloudevents_filters,
    eventbridge,
    jms,
    jsonlogic,
    mongo,
    mqtt,
)
from palio.model.language import parse
from palio.model.predicate import Predicate

__all__ = [
    "DIALECTS",
    "cesql",
    "cloudevents_filters",
    "eventbridge",
    "jms",
    "jsonlogic",
    "mongo",
    "mqtt",
    "read",
]

DIALECTS: dict[str, Callable[..., Predicate]] = {
    "sql": parse,
    "cesql": cesql.read,
    "cloudevents": cloudevents_filters.read,
    "eventbridge": eventbridge.read,
    "jms": jms.read,
    "jsonlogic": jsonlogic.read,
    "mongo": mongo.read,
    "mqtt": mqtt.read,
}


def read(rule: object, dialect: str = "sql") -> Predicate:
    """The predicate of a rule: a text, or for rules in JSON also dicts and lists.

    >>> read('{"price": [{"numeric": ["<", 500]}]}', "eventbridge").matches({"price": 450})
    True
    """
    require(dialect)
    return DIALECTS[dialect](rule)


def require(dialect: str) -> None:
    """Raise InvalidPredicate where there is no such dialect."""
    if dialect not in DIALECTS:
        raise InvalidPredicate(f"no dialect {dialect!r}", remedy=f"there are {', '.join(DIALECTS)}")
