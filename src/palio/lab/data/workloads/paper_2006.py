"""The workload of the 2006 paper (section 4.2): disjunctions to reduce. It has no messages.

Predicates of one conjunction of 1 to 6 constraints; names from a set of given size, Zipf or
uniform; half of the names carry strings, half integers; strings from 200 common words of the
news, integers uniform from -100 to 100.

Where the paper is silent: names are a0, a1, ..., by rank, and the even ones carry integers; the
words are weighted by Zipf's law; a name may repeat within a conjunction, since the reduction that
the section describes removes "redundant constraints within conjunctions".
"""

from __future__ import annotations

from palio.lab.data.english_words import NEWS
from palio.lab.data.workloads.recipe import Recipe, ValueKind, draw_constraints, uniform, weighted
from palio.lab.data.workloads.recipe import zipf as by_zipfs_law
from palio.lab.data.workloads.workload import SPARSE_MESSAGES, Interfaces, Workload, predicates
from palio.model.predicate import Op, Predicate
from palio.model.values import Type

SIZES = {1: 0.10, 2: 0.40, 3: 0.30, 4: 0.10, 5: 0.05, 6: 0.05}
STRING_OPS = {
    Op.EQ: 0.40,
    Op.PREFIX: 0.10,
    Op.SUFFIX: 0.10,
    Op.CONTAINS: 0.10,
    Op.NE: 0.10,
    Op.LT: 0.10,
    Op.GT: 0.10,
}
INT_OPS = {Op.EQ: 0.40, Op.LT: 0.25, Op.GT: 0.25, Op.NE: 0.10}


def tr2006(
    filters: int,
    *,
    names: int = 500,
    zipf: bool = True,
    interfaces: Interfaces = 1,
    seed: int = 1,
) -> Workload:
    """Draw the 2006 workload: conjunctions, by default all in the predicate of one interface."""
    texts = [f"a{number}" for number in range(names)]
    drawn = Recipe(
        names=by_zipfs_law(texts) if zipf else uniform(texts),
        kinds=(
            ValueKind(Type.INT, weighted(INT_OPS), uniform([str(i) for i in range(-100, 101)])),
            ValueKind(Type.STRING, weighted(STRING_OPS), by_zipfs_law(NEWS)),
        ),
        kind_shares=None,
        constraints=weighted(SIZES),
        attributes=uniform([1]),
    )
    return Workload(
        "tr2006",
        draw_constraints(drawn, filters, interfaces, seed),
        SPARSE_MESSAGES.empty_table(),
        f"drawn as in the 2006 paper, 4.2: {names:,} names, {'Zipf' if zipf else 'uniform'}; "
        f"a list of common words stands in for its corpus; seed {seed}",
    )


def disjunction_2006(
    count: int, *, names: int = 500, zipf: bool = True, seed: int = 1
) -> Predicate:
    """A disjunction of `count` predicates of the 2006 workload, each one conjunction."""
    ((_, predicate),) = predicates(tr2006(count, names=names, zipf=zipf, seed=seed))
    return predicate
