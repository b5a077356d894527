"""The workload of the 2001 paper (section 4.1): short filters, and booleans among the types.

A names, the same for filters and messages; filters of 1 to 5 constraints, messages of 3 to 10
attributes; types 40% string, 40% integer, 20% boolean, whatever the name; operators 60% equality,
20% less-than, 20% greater-than; strings and integers drawn by a linear distribution.

Where the paper is silent: names are drawn uniformly (its 90% of ignored messages at F = 1,000 and
A = 1,000 agree); linear is from n for the first down to 1 for the last of n values; SV = 1,000
words and IV = 100 integers, from 0; a boolean has only equality, so that its constraints are all
`=` and the shares of the operators are those of strings and integers; a name may repeat within a
filter, and in a message ("uniquely identified by a name", section 2) it is drawn again.
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
    linear,
    uniform,
    weighted,
)
from palio.lab.data.workloads.workload import Interfaces, Workload
from palio.model.predicate import Op
from palio.model.values import Type

TYPE_SHARES = {Type.STRING: 0.4, Type.INT: 0.4, Type.BOOL: 0.2}
OPS = {Op.EQ: 0.6, Op.LT: 0.2, Op.GT: 0.2}


def tr2001(
    filters: int,
    interfaces: Interfaces = None,
    messages: int = 1_000,
    *,
    attributes: int = 1_000,
    strings: int = 1_000,
    integers: int = 100,
    seed: int = 1,
    part: int = 0,
    options: DrawOptions = PLAIN,
) -> Workload:
    """Draw the 2001 workload; `attributes`, `strings` and `integers` are its A, SV and IV.

    `interfaces` is a number, or None or "all" for one interface per filter (I = F). Filter f of F
    goes to interface f * I // F, so that the interfaces get runs of equal length.
    """
    words = linear(dictionary_words(strings, seed, part=1, options=options))
    recipe = Recipe(
        names=uniform(dictionary_words(attributes, seed, options=options)),
        kinds=(
            ValueKind(Type.STRING, weighted(OPS), words),
            ValueKind(Type.INT, weighted(OPS), linear([str(i) for i in range(integers)])),
            ValueKind(Type.BOOL, uniform([Op.EQ]), uniform(["true", "false"])),
        ),
        kind_shares=tuple(TYPE_SHARES.values()),
        constraints=uniform(range(1, 6)),
        attributes=uniform(range(3, 11)),
    )
    return Workload(
        "tr2001",
        draw_constraints(recipe, filters, interfaces, seed, part, options),
        draw_messages(recipe, messages, seed, part),
        f"drawn as in the 2001 paper, 4.1, with A = {attributes:,}, SV = {strings:,} and "
        f"IV = {integers:,}; {options}; seed {seed}",
    )
