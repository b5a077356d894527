"""Workloads shaped for tables of Spark, where every filter has an equality, so that joins apply.

    fields   ten typed columns, all of them there: five strings, five integers
    texts    10 of 1,000 names, Zipf, and every value a string: what fits a map<string, string>

The first constraint of a filter is an equality. The others are drawn like it, by the operators of
the 2003 paper.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palio.errors import InvalidValue
from palio.lab.data.workloads.paper_2003 import INT_OPS, NAMES, STRING_OPS, WORDS
from palio.lab.data.workloads.recipe import (
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

FIELDS = 10
INTEGERS = 10_000  # as prices and ids have; with 100, each message verifies thousands of a million
SIZES = range(2, 6)  # constraints of a filter of `fields`
FEW_SIZES, FEW_WORDS = range(1, 5), 50  # of `texts`: so that a message matches a few of 10,000


def fields(
    filters: int,
    interfaces: Interfaces = None,
    messages: int = 1_000,
    *,
    seed: int = 1,
    part: int = 0,
) -> Workload:
    """Draw filters on ten columns, and wide messages that have them all."""
    if messages < 0:
        raise InvalidValue(f"a workload has 0 messages or more, not {messages}")
    words = uniform(dictionary_words(WORDS, seed, part=1))
    integers = uniform([str(i) for i in range(INTEGERS)])
    recipe = Recipe(
        names=uniform([f"c{number}" for number in range(FIELDS)]),
        kinds=(
            ValueKind(Type.STRING, weighted(STRING_OPS), words),
            ValueKind(Type.INT, weighted(INT_OPS), integers),
        ),
        kind_shares=None,
        constraints=uniform(SIZES),
        attributes=uniform([FIELDS]),
    )
    rng = np.random.default_rng([seed, FIELDS, part])
    columns: dict[str, pa.Array] = {}
    for number, name in enumerate(recipe.names.items):
        kind = recipe.kinds[number % 2]
        texts = pa.array(kind.values.items).take(pa.array(kind.values.draw(rng, messages)))
        columns[name] = texts if kind.type is Type.STRING else pc.cast(texts, pa.int64())
    return Workload(
        "fields",
        _with_equalities(draw_constraints(recipe, filters, interfaces, seed, part)),
        pa.table(columns),
        f"{FIELDS} typed columns, an equality in every filter; seed {seed}",
    )


def texts(
    filters: int,
    interfaces: Interfaces = None,
    messages: int = 1_000,
    *,
    seed: int = 1,
    part: int = 0,
) -> Workload:
    """Draw filters on strings only, and sparse messages of ten attributes."""
    words = uniform(dictionary_words(FEW_WORDS, seed, part=1))
    recipe = Recipe(
        names=zipf(dictionary_words(NAMES, seed)),
        kinds=(ValueKind(Type.STRING, weighted(STRING_OPS), words),),
        kind_shares=(1.0,),
        constraints=uniform(FEW_SIZES),
        attributes=uniform([FIELDS]),
    )
    return Workload(
        "texts",
        _with_equalities(draw_constraints(recipe, filters, interfaces, seed, part)),
        draw_messages(recipe, messages, seed, part),
        f"{FIELDS} of {NAMES:,} names, strings, an equality in every filter; seed {seed}",
    )


def _with_equalities(constraints: pa.Table) -> pa.Table:
    numbers = constraints["filter"].to_numpy()
    first = np.ones(len(numbers), np.bool_)
    first[1:] = numbers[1:] != numbers[:-1]
    ops = constraints["op"].combine_chunks()
    equality = ops.dictionary.to_pylist().index(str(Op.EQ))
    codes = np.where(first, equality, np.asarray(ops.indices)).astype(np.int32)
    chosen = pa.DictionaryArray.from_arrays(pa.array(codes), ops.dictionary)
    return constraints.set_column(constraints.column_names.index("op"), "op", chosen)
