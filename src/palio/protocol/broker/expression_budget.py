"""How much clients may let this broker compute for a message: each of them, each identity, and all together.

    lower(name) = 'ann', lower(name) = 'bob'     one expression, computed once: it counts once
    name LIKE 'a%b_', name LIKE 'c%d_'           two

Costs are those of model/expression_costs.py, for a message of 1 KiB. Owners are those of `text_budget`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from palio.errors import LimitExceeded
from palio.model.expression_costs import calls_of, computed_names, cost_of_all, member_array
from palio.model.predicate import Filter
from palio.protocol.broker.settings import SubscriptionBounds
from palio.protocol.wire.codes import RefusalCode
from palio.protocol.wire.refusals import RequestRefused

BROKER_STEPS_MAX = 100_000
"""Of all expressions at a broker."""
ALONE_STEPS_MAX = 400
"""Of a pattern, and of a subscription that begins in the past: these are judged between other work, one
message at a time, so one message must not take long."""
WATCHED_STEPS_MAX = 1_600
"""Of all patterns that clients watch at a broker: a message is looked up for all of them at once."""
_MEMBER_STEPS = 25
"""Of looking for an element of an array without a compiled table."""
_WATCHED = "\0patterns"  # an owner; no identity is called so
_KIB = 1024


class ExpressionBudget:
    def __init__(self, bounds: SubscriptionBounds) -> None:
        self._bounds = bounds
        self._owned: dict[int | str, Counter[str]] = {}
        self._steps: dict[int | str, int] = {}
        self._all: Counter[str] = Counter()
        self._total = 0

    def check(self, owner: int | str, names: Sequence[str]) -> None:
        """Raise RequestRefused if an owner has no room for these expressions."""
        if not names:
            return
        own = self._owned.get(owner, Counter())
        more = steps_of(name for name in names if name not in own)
        used, own_max = self._steps.get(owner, 0), self._bounds.steps_max
        if used + more > own_max:
            who = "this client" if isinstance(owner, int) else f"the identity {owner!r}"
            raise RequestRefused(
                RefusalCode.LIMIT,
                f"the expressions of {who} may take {used:,} steps for a message of 1 KiB, and these "
                f"{more:,}; this broker takes {own_max:,}",
                remedy="compare attributes instead of expressions, or compute these before you publish",
            )
        if (
            self._total + steps_of(name for name in names if name not in self._all)
            > BROKER_STEPS_MAX
        ):
            raise RequestRefused(
                RefusalCode.LIMIT,
                "the expressions of all subscriptions at this broker take too many steps for a "
                f"message; a broker takes {BROKER_STEPS_MAX:,} for 1 KiB",
                remedy="subscribe at another broker",
            )

    def check_watched(self, names: Sequence[str]) -> None:
        """Raise RequestRefused if there is no room for the expressions of one more pattern."""
        own = self._owned.get(_WATCHED, Counter())
        more = alone_steps_of([name for name in names if name not in own])
        if names and alone_steps_of(own) + more > WATCHED_STEPS_MAX:
            raise RequestRefused(
                RefusalCode.LIMIT,
                f"the expressions of all patterns at this broker may take {WATCHED_STEPS_MAX:,} steps for "
                f"a message of 1 KiB, and these {more:,} are too many",
                remedy="compare attributes instead of expressions, or watch at another broker",
            )

    def watch(self, names: Iterable[str]) -> None:
        self.add(_WATCHED, names)

    def unwatch(self, names: Iterable[str]) -> None:
        self.remove(_WATCHED, names)

    def add(self, owner: int | str, names: Iterable[str]) -> None:
        for name in names:
            own = self._owned.setdefault(owner, Counter())
            own[name] += 1
            if own[name] > 1:
                continue
            steps = steps_of((name,))
            self._steps[owner] = self._steps.get(owner, 0) + steps
            self._all[name] += 1
            if self._all[name] == 1:
                self._total += steps

    def remove(self, owner: int | str, names: Iterable[str]) -> None:
        for name in names:
            own = self._owned[owner]
            own[name] -= 1
            if own[name]:
                continue
            del own[name]
            steps = steps_of((name,))
            self._steps[owner] -= steps
            if not own:
                del self._owned[owner], self._steps[owner]
            self._all[name] -= 1
            if not self._all[name]:
                del self._all[name]
                self._total -= steps


def steps_of(names: Iterable[str]) -> int:
    """What these expressions take for a message of 1 KiB."""
    return cost_of_all(names).of(1, _KIB)


def alone_steps_of(names: Iterable[str]) -> int:
    """The same where they are computed for one message after the other."""
    own = tuple(names)
    members = sum(member_array(name) is not None for name in own)
    return steps_of(own) + members * _MEMBER_STEPS


def checked_expressions(filters: Iterable[Filter], bounds: SubscriptionBounds) -> tuple[str, ...]:
    """The expressions of a predicate; raises LimitExceeded if they are too many."""
    names = computed_names(filters)
    if (calls := calls_of(names)) > bounds.calls_max:
        raise LimitExceeded(
            f"the expressions have {calls:,} functions and operators; this broker takes "
            f"{bounds.calls_max:,} in one subscription"
        )
    if (steps := steps_of(names)) > bounds.steps_max:
        raise LimitExceeded(
            f"the expressions may take {steps:,} steps for a message of 1 KiB; this broker takes "
            f"{bounds.steps_max:,}"
        )
    return names


def check_alone(names: Sequence[str], what: str) -> None:
    """Raise LimitExceeded if these are too many for what is judged one message at a time."""
    if (steps := alone_steps_of(names)) > ALONE_STEPS_MAX:
        raise LimitExceeded(
            f"the expressions of {what} may take {steps:,} steps for a message of 1 KiB; it takes "
            f"{ALONE_STEPS_MAX:,}"
        )
