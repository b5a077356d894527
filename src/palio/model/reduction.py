"""Reduction: the same predicate in fewer constraints (2006, 4.2).

Two rules, as in the paper: a constraint that follows from the others of its conjunction goes, and
a conjunction that another covers goes. Filters that nothing can match go too. What is matched
never changes: a filter is dropped only while one that covers it is still there. What follows from
several constraints together is known here; `pairwise_reduction` has the rules as the paper prints
them, and never leaves fewer constraints.
"""

from __future__ import annotations

from palio.model import valuesets
from palio.model.boxes import Extension, Schema, box, box_covers, declared, is_contradiction
from palio.model.cover_index import CoverIndex
from palio.model.covering import Subscription, as_predicate
from palio.model.operators import Op
from palio.model.pairwise_reduction import without_implied
from palio.model.predicate import Constraint, Filter, Predicate
from palio.model.valuesets import ANYTHING, ValueSet, intersection, is_subset

PAIRWISE_MAX = 100  # constraints of a filter that are compared one by one


def reduce(
    predicate: Subscription, *, exact: bool = False, schema: Schema | None = None
) -> Predicate:
    """The predicate without redundant constraints and covered filters.

    >>> reduce("x > 10 AND y = 100 OR y > 0")
    Predicate(y > 0)
    >>> reduce("x > 10 AND x > 20 OR x = 25 OR z = 1 AND z = 2")
    Predicate(x > 20)
    """
    filters = [
        without_redundant(f, exact=exact, schema=schema)
        for f in as_predicate(predicate).filters
        if not is_contradiction(box(f, schema), exact)
    ]
    boxes = [box(f, schema) for f in filters]
    index, extension = CoverIndex(boxes), Extension(schema)
    alive = [True] * len(boxes)
    for i in range(len(boxes) - 1, -1, -1):  # of two equal filters the first stays
        narrow = extension.of(boxes[i])
        alive[i] = not is_contradiction(narrow) and not any(
            j != i
            and alive[j]
            and len(boxes[j]) <= len(narrow)
            and box_covers(boxes[j], narrow, exact)
            for j in index.candidates(narrow)
        )
    return Predicate(tuple(f for f, kept in zip(filters, alive, strict=True) if kept))


def without_redundant(
    conjunction: Filter, *, exact: bool = False, schema: Schema | None = None
) -> Filter:
    """The filter without the constraints that follow from its others.

    What follows from one goes first: of x >= 3, x <= 3 and x = 3 the last stays, though it follows
    from the others too.
    """
    if len({c.name for c in conjunction.constraints}) == len(conjunction):
        return conjunction
    if len(conjunction) <= PAIRWISE_MAX:
        conjunction = without_implied(conjunction)
    names = [c.name for c in conjunction.constraints]
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        groups.setdefault(name, []).append(i)
    dropped: set[int] = set()
    for name, group in groups.items():
        if len(group) > 1:
            constraints = [conjunction.constraints[i] for i in group]
            redundant = _redundant(constraints, declared(name, schema), exact)
            dropped.update(group[i] for i in redundant)
    return Filter(tuple(c for i, c in enumerate(conjunction.constraints) if i not in dropped))


def _redundant(constraints: list[Constraint], declared: ValueSet, exact: bool) -> list[int]:
    """Which of the constraints on one attribute follow from those that stay.

    The != are judged last and one by one against the rest, since there may be very many.
    """
    points = [i for i, c in enumerate(constraints) if c.op is Op.NE]
    others = [i for i, c in enumerate(constraints) if c.op is not Op.NE]
    start = intersection(declared, valuesets.conjunction([constraints[i] for i in points]))
    sets = [valuesets.selected(constraints[i]) for i in others]
    before = [start]
    for chosen in sets[:-1]:
        before.append(intersection(before[-1], chosen))
    redundant: list[int] = []
    kept = ANYTHING
    for known, i, chosen in reversed(list(zip(before, others, sets, strict=False))):
        if is_subset(intersection(known, kept), chosen, exact):
            redundant.append(i)
        else:
            kept = intersection(kept, chosen)
    kept = intersection(kept, declared)
    seen: set[Constraint] = set()
    for i in points:
        c = constraints[i]
        if c in seen or is_subset(kept, valuesets.selected(c), exact):
            redundant.append(i)
        seen.add(c)
    return redundant
