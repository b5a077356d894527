"""The workload of the 2003 paper (Table 1 and section 5.1): as forwarding tables are compared.

1,000 names weighted by Zipf's law, the same for filters and messages; filters of 1 to 9
constraints (cl = 1, ch = 10, half open), messages of 1 to 19 attributes; half strings, half
integers, whatever the name; 1,000 words and 100 integers as values, uniform.

Where the paper is silent: the exponent of Zipf's law is 1; the integers are 0 to 99; names and
values are two samples of the dictionary; a name may repeat within a filter (each constraint is
drawn by itself), and in a message a repeated name is drawn again, since the number of attributes
is stated as uniform. The paper draws the filters of an interface uniform in [1, fh); here they
are dealt evenly, so that the number of filters is exactly what was asked for, unless
`DrawOptions.uneven` is set.
"""

from __future__ import annotations

from palio.lab.data.workloads.recipe import (
    PLAIN,
    DrawOptions,
    Recipe,
    ValueKind,
    dictionary_words,
    draw_constraints,
    draw_messages,
    uniform,
    weighted,
    zipf,
)
from palio.lab.data.workloads.workload import Interfaces, Workload
from palio.model.predicate import Op
from palio.model.values import Type

NAMES = 1_000
WORDS = 1_000
INTEGERS = 100
TYPE_SHARES = {Type.STRING: 0.5, Type.INT: 0.5}
STRING_OPS = {
    Op.EQ: 0.35,
    Op.PREFIX: 0.15,
    Op.SUFFIX: 0.15,
    Op.CONTAINS: 0.15,
    Op.LT: 0.10,
    Op.GT: 0.10,
}
INT_OPS = {Op.EQ: 0.6, Op.LT: 0.2, Op.GT: 0.2}


def sigcomm03(
    filters: int,
    interfaces: Interfaces = None,
    messages: int = 100,
    *,
    seed: int = 1,
    part: int = 0,
    options: DrawOptions = PLAIN,
) -> Workload:
    """Draw the 2003 workload.

    `interfaces` is a number, or None or "all" for one interface per filter. Filter f of F goes to
    interface f * I // F: each gets a run of neighbours, and their numbers differ by one at most.
    """
    words = uniform(dictionary_words(WORDS, seed, part=1, options=options))
    recipe = Recipe(
        names=zipf(dictionary_words(NAMES, seed, options=options)),
        kinds=(
            ValueKind(Type.STRING, weighted(STRING_OPS), words),
            ValueKind(Type.INT, weighted(INT_OPS), uniform([str(i) for i in range(INTEGERS)])),
        ),
        kind_shares=tuple(TYPE_SHARES.values()),
        constraints=uniform(range(1, 10)),
        attributes=uniform(range(1, 20)),
    )
    return Workload(
        "sigcomm03",
        draw_constraints(recipe, filters, interfaces, seed, part, options),
        draw_messages(recipe, messages, seed, part),
        f"drawn as in the 2003 paper, 5.1; {options}; seed {seed}",
    )
