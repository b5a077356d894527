"""Parses what clients subscribe to, and checks it against their grants and the bounds.

These take long for large texts: the host runs them as jobs, in another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

from palio.errors import InvalidPredicate, LimitExceeded, PalioError
from palio.model.language import parse
from palio.model.predicate import Predicate
from palio.protocol.broker.access import Identity, check_may_subscribe, check_subscribe, check_watch
from palio.protocol.broker.client_subscription import ClientSubscription
from palio.protocol.broker.effects import BackgroundJob
from palio.protocol.broker.expression_budget import check_alone, checked_expressions
from palio.protocol.broker.interests import FILTERS_AT_ONCE
from palio.protocol.broker.settings import SubscriptionBounds
from palio.protocol.broker.text_budget import sendable_bytes
from palio.protocol.wire.codes import Full, parse_full
from palio.routing.patterns.language import parse as parse_pattern
from palio.routing.patterns.pattern import Part, Pattern, leaves
from palio.routing.poset_index import prepare

SHAPE_MAX = 40_000
"""Characters of a predicate beside its literals. The parser, which is compiled, lets no other thread
run meanwhile: about a microsecond for each."""
PATTERN_FILTERS_MAX = 128
"""Of all parts of a pattern: they are added in one step."""
CREDIT_MAX = 1 << 30
_SMALL_TEXT = 1024
"""Characters of a predicate that is parsed at once, if it has few filters; others are a job."""


P = ParamSpec("P")
T = TypeVar("T")


def refusing(check: Callable[P, T]) -> Callable[P, T]:
    """Refuse a text for which a check raises what nobody foresaw: it changes nothing here, so it must
    not end the broker."""

    @wraps(check)
    def refused(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return check(*args, **kwargs)
        except PalioError:
            raise
        except Exception as error:
            raise InvalidPredicate(
                f"this broker has a bug and cannot check this text: {type(error).__name__}: {error}",
                remedy="please report it with the text",
            ) from error

    return refused


@refusing
def parse_small(text: str) -> Predicate | None:
    """A predicate that is parsed quickly; None: it is not."""
    if len(text) > _SMALL_TEXT:
        return None
    try:
        return parse(text, limit=FILTERS_AT_ONCE, shape_max=SHAPE_MAX)
    except LimitExceeded:
        return None


class Checked(NamedTuple):
    """A predicate, the bytes that it counts, and its expressions."""

    predicate: Predicate
    size: int
    computed: tuple[str, ...]


@refusing
def measured(predicate: Predicate, bounds: SubscriptionBounds) -> Checked:
    """Raises LimitExceeded for a predicate beyond a bound."""
    size = sendable_bytes(predicate.filters)
    return Checked(predicate, size, checked_expressions(predicate.filters, bounds))


@refusing
def permitted(text: str, identity: Identity, bounds: SubscriptionBounds) -> Checked:
    predicate = parse(text, limit=bounds.filters_max, shape_max=SHAPE_MAX)
    found = measured(predicate, bounds)
    check_subscribe(identity, predicate)
    for one in predicate:
        prepare(one)
    return found


def check_predicate(
    text: str, identity: Identity, bounds: SubscriptionBounds
) -> Generator[BackgroundJob[Checked], None, Checked]:
    """A job does what may take long."""
    small = parse_small(text) if identity.subscribes_anything else None
    if small is not None:
        return measured(small, bounds)
    job = BackgroundJob(lambda: permitted(text, identity, bounds))
    yield job
    return job.result()


class CheckedPattern(NamedTuple):
    """A pattern, the bytes that it counts, and its expressions."""

    pattern: Pattern
    size: int
    computed: tuple[str, ...]


@refusing
def watchable(text: str, identity: Identity, bounds: SubscriptionBounds) -> CheckedPattern:
    check_may_subscribe(identity)
    pattern = parse_pattern(text, limit=min(bounds.filters_max, PATTERN_FILTERS_MAX))
    filters = [f for leaf in leaves(pattern.node) if isinstance(leaf, Part) for f in leaf.predicate]
    size = sendable_bytes(filters)
    names = checked_expressions(filters, bounds)
    check_alone(names, "a pattern")
    check_watch(identity, pattern)
    return CheckedPattern(pattern, size, names)


def denied(subscriptions: list[tuple[Identity, ClientSubscription]]) -> list[str]:
    """Why the grants do not cover each of these; empty: they do."""
    reasons = []
    for identity, one in subscriptions:
        reasons.append("")
        try:
            if one.pattern is not None:
                check_watch(identity, one.pattern)
            elif one.predicate is not None:
                check_subscribe(identity, one.predicate)
        except PalioError as error:
            reasons[-1] = str(error)
    return reasons


def live_full(text: str) -> Full:
    """What a live subscription does when too much waits for it."""
    full = parse_full(text) or Full.DROP
    if full is Full.BLOCK:
        raise PalioError(
            "publishers do not wait for a live subscription, so its `full` is drop or end",
            remedy="give the subscription a durable name if no message may be lost",
        )
    return full


def positive(count: int) -> int:
    """Check a count of credit and return it."""
    if not 0 < count <= CREDIT_MAX:
        raise PalioError(f"credit is a number from 1 to {CREDIT_MAX}, not {count}")
    return count
