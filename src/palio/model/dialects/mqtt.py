"""Topic filters of MQTT, read as predicates over the attributes of topics (`palio.model.topics`).

    site/+/temp?temp > 25      the topic filter, and behind the first question mark a condition in SQL

It selects what a subscription of an MQTT client selects. Shared subscriptions are none: a group is an option
of a subscription, no part of a predicate.
"""

from __future__ import annotations

from palio.errors import InvalidPredicate, LimitExceeded, ParseError
from palio.model.dialects.translation import SQL_MAX
from palio.model.language import FILTERS_MAX, parse
from palio.model.predicate import Filter, Predicate
from palio.model.topics import BYTES_MAX, as_filter, wrong_in_filter

TEXT_MAX = 1_000_000
"""Characters of a topic filter with its condition."""
CONSTRAINTS_MAX = 100_000
"""Of the filters of the condition, each with those of the topic filter."""


def read(text: str, *, limit: int = FILTERS_MAX, shape_max: int = SQL_MAX) -> Predicate:
    """The predicate of a topic filter. Raises ParseError, which points at the character.

    `limit` bounds the number of filters, `shape_max` the SQL of the condition without its literals.

    >>> read("site/+?temp > 25")
    Predicate(topic_1 = 'site' AND topic_levels = 2 AND temp > 25)
    """
    if not isinstance(text, str):
        raise InvalidPredicate(f"a topic filter is a string, not a {type(text).__name__}")
    if len(text) > TEXT_MAX:
        raise LimitExceeded(
            f"the topic filter has {len(text):,} characters, the limit is {TEXT_MAX:,}"
        )
    topic_filter, _, condition = text.partition("?")
    if wrong := _wrong(topic_filter):
        raise ParseError(wrong, text)
    own = as_filter(topic_filter)
    if not condition.strip():
        return Predicate((own,))
    try:
        wanted = parse(condition, limit=limit, shape_max=shape_max)
    except ParseError as error:
        at = len(topic_filter) + 1 + error.position
        raise type(error)(error.reason, text, at) from None
    if len(wanted.filters) * len(own) > CONSTRAINTS_MAX:
        raise LimitExceeded(
            f"the condition has {len(wanted.filters):,} filters, and the topic filter {len(own):,} "
            f"constraints for each; the limit is {CONSTRAINTS_MAX:,} together",
            text,
        )
    return Predicate(tuple(Filter((*own, *one)) for one in wanted))


def _wrong(topic_filter: str) -> str:
    if topic_filter.startswith("$share/"):
        return (
            "a shared subscription is no predicate: give the topic filter alone, and the group to "
            "`subscribe(..., group=...)`"
        )
    if "\x00" in topic_filter:
        return "a topic filter has no null character"
    if len(topic_filter.encode("utf-8", "replace")) > BYTES_MAX:
        return f"a topic filter has {BYTES_MAX:,} bytes at most"
    return wrong_in_filter(topic_filter)
