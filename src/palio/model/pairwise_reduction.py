"""The reduction of the 2006 paper (4.2): one constraint against one, operator by operator.

The paper gives two rules and no more. Of two constraints of a conjunction, one that follows from
the other goes; of two conjunctions, one that implies the other goes, which is so when each
constraint of the other follows from a single one of its own. `implies` says what follows from one
constraint, by the two operators:

    =, in               whatever their values satisfy
    < and <=, > and >=  orders of the same direction, and !=
    prefix, suffix      shorter ones, and what they contain
    contains            what the substring contains
    !=, not prefix, ... themselves

`palio.model.reduction` knows more: what follows from several constraints together, contradictions,
prefixes as ranges. It never leaves more constraints than this one.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

from palio.model.boxes import box
from palio.model.cover_index import CoverIndex
from palio.model.covering import Subscription, as_predicate
from palio.model.operators import Op
from palio.model.predicate import Constraint, Filter, Predicate
from palio.model.values import NUMBERS, comparable


def _contains(text: str, part: str) -> bool:
    return part in text


_FOLLOWS: dict[tuple[Op, Op], Callable[[Any, Any], bool]] = {
    (Op.NE, Op.NE): operator.eq,
    (Op.LT, Op.LT): operator.le,
    (Op.LT, Op.LE): operator.le,
    (Op.LT, Op.NE): operator.le,
    (Op.LE, Op.LE): operator.le,
    (Op.LE, Op.LT): operator.lt,
    (Op.LE, Op.NE): operator.lt,
    (Op.GT, Op.GT): operator.ge,
    (Op.GT, Op.GE): operator.ge,
    (Op.GT, Op.NE): operator.ge,
    (Op.GE, Op.GE): operator.ge,
    (Op.GE, Op.GT): operator.gt,
    (Op.GE, Op.NE): operator.gt,
    (Op.PREFIX, Op.PREFIX): str.startswith,
    (Op.SUFFIX, Op.SUFFIX): str.endswith,
    (Op.PREFIX, Op.CONTAINS): _contains,
    (Op.SUFFIX, Op.CONTAINS): _contains,
    (Op.CONTAINS, Op.CONTAINS): _contains,
}


def implies(a: Constraint, b: Constraint) -> bool:
    """Does b follow from a alone, by their operators and values?

    >>> implies(Constraint("x", ">", 20), Constraint("x", "!=", 10))
    True
    >>> implies(Constraint("s", "prefix", "ab"), Constraint("s", ">=", "a"))  # true, but not by a rule
    False
    """
    if a.name != b.name or a.op is Op.ABSENT or b.op is Op.ABSENT:
        return a == b
    if b.type is None:  # any
        return True
    if a.type is None or not comparable(a.type, b.type):
        return False
    if b.op is Op.ANY:
        return a.type is b.type and (a.op is Op.ANY or a.type not in NUMBERS)
    if a.op is Op.EQ:
        return b.matches(a.value)  # the value of = is no tuple
    if isinstance(a.value, tuple):
        return all(map(b.matches, a.value))
    rule = _FOLLOWS.get((a.op, b.op))
    return a == b if rule is None else rule(a.value, b.value)


def without_implied(conjunction: Filter) -> Filter:
    """The filter without constraints that follow from another one of it; of two equal the first stays.

    >>> from palio.model.language import parse
    >>> without_implied(parse("x > 10 AND x > 20 AND x != 5 AND y = 1").filters[0])
    Filter(x > 20 AND y = 1)
    """
    kept: list[Constraint] = []
    for constraint in conjunction.constraints:
        if not any(implies(other, constraint) for other in kept):
            kept = [other for other in kept if not implies(constraint, other)]
            kept.append(constraint)
    return Filter(tuple(kept))


def reduce_pairwise(predicate: Subscription) -> Predicate:
    """The predicate as the paper's two rules reduce it; what is matched does not change.

    >>> reduce_pairwise("x > 10 AND y = 100 OR y > 0")
    Predicate(y > 0)
    """
    filters = list(map(without_implied, as_predicate(predicate).filters))
    uses = Counter(constraint.name for f in filters for constraint in f)

    def rank(constraint: Constraint) -> tuple[bool, int]:
        return constraint.op is not Op.EQ, uses[constraint.name]

    # A filter that covers another has its key constraint implied by a constraint of the other.
    keys = [Filter((min(f, key=rank),)) if len(f) else f for f in filters]
    index = CoverIndex(list(map(box, keys)))

    @cache
    def near(constraint: Constraint) -> tuple[int, ...]:
        return tuple(index.candidates(box(Filter((constraint,)))))

    everything = tuple(index.candidates({}))
    alive = [True] * len(filters)
    for i in range(len(filters) - 1, -1, -1):  # of two equal filters the first stays
        groups = [everything, *map(near, filters[i])]
        if any(j != i and alive[j] and _covers(filters[j], filters[i]) for g in groups for j in g):
            alive[i] = False
    return Predicate(tuple(f for f, kept in zip(filters, alive, strict=True) if kept))


def _covers(wide: Filter, narrow: Filter) -> bool:
    """Each constraint of one filter follows from a constraint of the other."""
    return all(any(implies(c, wanted) for c in narrow.constraints) for wanted in wide.constraints)
