"""The papers' workloads, seeded: the same arguments give the same predicates.

2006 (section 4.2): predicates of one conjunction of 1 to 6 constraints; names from a set of given
size, Zipf or uniform; half of the names carry strings, half integers.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from palio.lab.words import NEWS
from palio.model.predicate import Constraint, Filter, Op, Predicate

_SIZES = ((1, 2, 3, 4, 5, 6), (10, 40, 30, 10, 5, 5))
_STRING_OPS = (
    (Op.EQ, Op.PREFIX, Op.SUFFIX, Op.CONTAINS, Op.NE, Op.LT, Op.GT),
    (40, 10, 10, 10, 10, 10, 10),
)
_INT_OPS = ((Op.EQ, Op.LT, Op.GT, Op.NE), (40, 25, 25, 10))


def disjunction_2006(
    count: int, *, names: int = 500, zipf: bool = True, seed: int = 1
) -> Predicate:
    """A disjunction of `count` predicates of the 2006 workload, each one conjunction."""
    draw = random.Random(seed)
    name_weights = _weights(names, zipf)
    word_weights = _weights(len(NEWS), True)
    return Predicate(
        tuple(_conjunction_2006(draw, name_weights, word_weights) for _ in range(count))
    )


def _conjunction_2006(
    draw: random.Random, name_weights: Sequence[float], word_weights: Sequence[float]
) -> Filter:
    (size,) = draw.choices(*_SIZES)
    chosen = draw.choices(range(len(name_weights)), cum_weights=name_weights, k=size)
    constraints: list[Constraint] = []
    for number in chosen:
        name = f"a{number}"
        if number % 2:
            (op,) = draw.choices(*_STRING_OPS)
            (word,) = draw.choices(NEWS, cum_weights=word_weights)
            constraints.append(Constraint(name, op, word))
        else:
            (op,) = draw.choices(*_INT_OPS)
            constraints.append(Constraint(name, op, draw.randint(-100, 100)))
    return Filter(tuple(constraints))


def _weights(count: int, zipf: bool) -> list[float]:
    """Cumulative weights: 1, 1/2, 1/3, ... or all equal."""
    return list(itertools.accumulate(1 / rank if zipf else 1.0 for rank in range(1, count + 1)))
