"""Recipes: what a paper's generator draws, as data, and the columnar draw itself.

A recipe has the names, the kinds of values (type, operators, operands), how many constraints a
filter has and how many attributes a message. Every draw is a column of codes:

    filters        sizes          3 1 ...
    constraints    filter         0 0 0 1 ...      np.repeat
                   name, kind     codes            one searchsorted each
                   op, value      codes            one for each kind, at the places of that kind

Always: the predicates, the messages and the words come from streams of their own, so that the
messages stay the same when the number of filters changes. Another `part` is another draw over the
same words, so that parts can be drawn on different machines. `DrawOptions` change what is drawn; the
defaults are what experiments and their claims rest on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from palio.errors import InvalidValue
from palio.lab.data.english_words import DICTIONARY
from palio.lab.data.generated_words import large_dictionary
from palio.lab.data.workloads.workload import CONSTRAINTS, SPARSE_MESSAGES, Interfaces
from palio.model.predicate import Op
from palio.model.values import NUMBERS, Type

Codes = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]
Item = TypeVar("Item", int, str, Op)

_WORDS, _FILTERS, _MESSAGES, _INTERFACES = range(4)


@dataclass(frozen=True, slots=True)
class DrawOptions:
    """How a paper's workload is drawn where its text leaves room, or we differ from it."""

    uneven: bool = False
    """An interface has a number of filters that is uniform in [1, fh), with fh = 2 F / I, as printed
    in 2003, 5.1: F filters on average. By default they are dealt evenly, and there are F."""
    strict: bool = False
    """Types are strict (2000, 3.1): a constraint on a number asks for its type too."""
    large: bool = False
    """Names and strings are sampled from 100,000 words, not from palio's 3,299."""

    @property
    def words(self) -> tuple[str, ...]:
        return large_dictionary() if self.large else DICTIONARY

    def __str__(self) -> str:
        texts = {
            "filters of an interface uniform in [1, fh)": self.uneven,
            "strict types": self.strict,
            "words of a generated dictionary": self.large,
            "words of palio's own dictionary": not self.large,
        }
        return "; ".join(text for text, chosen in texts.items() if chosen)


PLAIN = DrawOptions()


@dataclass(frozen=True, slots=True)
class Choice(Generic[Item]):
    """Items to draw from, and the cumulative probability of each."""

    items: tuple[Item, ...]
    cumulative: npt.NDArray[np.float64]

    def draw(self, rng: np.random.Generator, count: int) -> Codes:
        """Positions of `count` items."""
        drawn = np.searchsorted(self.cumulative, rng.random(count), side="right")
        return drawn.astype(np.int32)


def weighted(shares: Mapping[Item, float]) -> Choice[Item]:
    """Each item in proportion to its share."""
    return _choice(tuple(shares), np.array(list(shares.values()), np.float64))


def uniform(items: Sequence[Item]) -> Choice[Item]:
    """All items alike."""
    return _choice(items, np.ones(len(items)))


def zipf(items: Sequence[Item]) -> Choice[Item]:
    """The item of rank r in proportion to 1/r: Zipf's law with exponent 1."""
    return _choice(items, 1 / np.arange(1, len(items) + 1))


def linear(items: Sequence[Item]) -> Choice[Item]:
    """From n for the first down to 1 for the last of n items."""
    return _choice(items, np.arange(len(items), 0, -1).astype(np.float64))


def _choice(items: Sequence[Item], weights: npt.NDArray[np.float64]) -> Choice[Item]:
    if not items:
        raise InvalidValue("there is nothing to draw from; give at least one name and one value")
    cumulative = np.cumsum(weights)
    return Choice(tuple(items), cumulative / cumulative[-1])


@dataclass(frozen=True, slots=True)
class ValueKind:
    """Values of one type: operators of constraints, and what attributes and operands hold."""

    type: Type
    ops: Choice[Op]
    values: Choice[str]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to draw. Without `kind_shares` a name has one kind: names take turns."""

    names: Choice[str]
    kinds: tuple[ValueKind, ...]
    kind_shares: tuple[float, ...] | None
    constraints: Choice[int]  # of a filter
    attributes: Choice[int]  # of a message

    def draw_kinds(self, rng: np.random.Generator, names: Codes) -> Codes:
        if self.kind_shares is None:
            return names % np.int32(len(self.kinds))
        shares = dict(enumerate(self.kind_shares))
        return weighted(shares).draw(rng, len(names))


def dictionary_words(
    count: int, seed: int, part: int = 0, options: DrawOptions = PLAIN
) -> tuple[str, ...]:
    """Random words out of the dictionary, without repeats. Another part is another sample."""
    words = options.words
    if not 1 <= count <= len(words):
        raise InvalidValue(f"the dictionary gives 1 to {len(words):,} words, not {count:,}")
    order = np.random.default_rng([seed, _WORDS, part]).permutation(len(words))
    return tuple(words[place] for place in order[:count].tolist())


# ---- predicates


def draw_constraints(
    recipe: Recipe,
    filters: int,
    interfaces: Interfaces,
    seed: int,
    part: int = 0,
    options: DrawOptions = PLAIN,
) -> pa.Table:
    """The constraint table of this many filters. A name may repeat within a filter."""
    rng = np.random.default_rng([seed, _FILTERS, part])
    count = interface_count(filters, interfaces)
    if options.uneven:
        owners = _uneven(filters, count, np.random.default_rng([seed, _INTERFACES, part]))
        filters = len(owners)
    else:
        owners = deal(np.arange(filters), filters, count)
    sizes = np.array(recipe.constraints.items)[recipe.constraints.draw(rng, filters)]
    numbers = np.repeat(np.arange(filters), sizes)
    names = recipe.names.draw(rng, len(numbers))
    kinds = recipe.draw_kinds(rng, names)

    op_texts, op_codes = _merged([tuple(map(str, kind.ops.items)) for kind in recipe.kinds])
    value_texts, value_codes = _merged([kind.values.items for kind in recipe.kinds])
    ops, values = np.empty_like(names), np.empty_like(names)
    for number, kind in enumerate(recipe.kinds):
        places = np.flatnonzero(kinds == number)
        ops[places] = op_codes[number][kind.ops.draw(rng, len(places))]
        values[places] = value_codes[number][kind.values.draw(rng, len(places))]
    if options.strict:
        rows, is_type = _with_types(recipe, numbers, names, kinds)
        numbers, names, kinds = numbers[rows], names[rows], kinds[rows]
        ops = np.where(is_type, np.int32(len(op_texts)), ops[rows])
        op_texts.append(Op.ANY.value)
        drawn = pa.array(values[rows], mask=is_type)
    else:
        drawn = pa.array(values)
    return pa.Table.from_arrays(
        [
            pa.DictionaryArray.from_arrays(pa.array(owners[numbers]), interface_names(count)),
            pa.array(numbers),
            _encoded(names, recipe.names.items),
            _encoded(ops, op_texts),
            _encoded(kinds, [kind.type.value for kind in recipe.kinds]),
            pa.DictionaryArray.from_arrays(drawn, pa.array(value_texts, pa.string())),
        ],
        schema=CONSTRAINTS,
    )


def _uneven(filters: int, interfaces: int, rng: np.random.Generator) -> Codes:
    """The interface of each filter: as many as are drawn for it, `filters` in all on average."""
    counts = rng.integers(1, max(2, round(2 * filters / interfaces)), interfaces)
    return np.repeat(np.arange(interfaces, dtype=np.int32), counts)


def _with_types(
    recipe: Recipe, numbers: Numbers, names: Codes, kinds: Codes
) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Which constraint each row is made of, and which rows ask only for its type.

    A filter asks once for the type of a name, in the row before its first number.
    """
    numeric = np.array([kind.type in NUMBERS for kind in recipe.kinds])
    places = np.flatnonzero(numeric[kinds])
    keys = (numbers[places] * len(recipe.names.items) + names[places]) * len(recipe.kinds)
    _, first = np.unique(keys + kinds[places], return_index=True)
    rows = np.concatenate((places[first], np.arange(len(numbers))))
    is_type = np.arange(len(rows)) < len(first)
    order = np.argsort(rows, kind="stable")  # the row of a type stands before its constraint
    return rows[order], is_type[order]


def interface_count(filters: int, interfaces: Interfaces) -> int:
    """How many interfaces are asked for: from 1 to the number of filters."""
    if filters < 1:
        raise InvalidValue(f"a workload has at least one filter, not {filters}")
    if interfaces is None or interfaces == "all":
        return filters
    if isinstance(interfaces, str) or not 1 <= interfaces <= filters:
        raise InvalidValue(
            f"interfaces: give a number from 1 to {filters} or all, not {interfaces}"
        )
    return interfaces


def deal(numbers: Numbers, total: int, interfaces: int) -> Codes:
    """The interface of each filter: runs of neighbours, whose lengths differ by one at most."""
    return (numbers * interfaces // total).astype(np.int32)


def interface_names(count: int) -> pa.StringArray:
    """i0, i1, i2, ..."""
    return pc.binary_join_element_wise("i", pc.cast(pa.array(np.arange(count)), pa.string()), "")


def _encoded(codes: Codes, texts: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(texts, pa.string()))


def _merged(parts: list[tuple[str, ...]]) -> tuple[list[str], list[Codes]]:
    """One list of distinct texts, and for each part the places of its texts in it."""
    places: dict[str, int] = {}
    codes = [
        np.array([places.setdefault(text, len(places)) for text in part], np.int32)
        for part in parts
    ]
    return list(places), codes


# ---- messages


def draw_messages(recipe: Recipe, count: int, seed: int, part: int = 0) -> pa.Table:
    """Sparse messages. A message is a set: a name that it has already is drawn again."""
    if count < 0:
        raise InvalidValue(f"a workload has 0 messages or more, not {count}")
    if max(recipe.attributes.items) > len(recipe.names.items):
        raise InvalidValue(
            f"a message has up to {max(recipe.attributes.items)} attributes: "
            f"{len(recipe.names.items)} names are too few"
        )
    rng = np.random.default_rng([seed, _MESSAGES, part])
    sizes = np.array(recipe.attributes.items)[recipe.attributes.draw(rng, count)]
    names = _distinct_names(recipe.names, np.repeat(np.arange(count), sizes), rng)
    kinds = recipe.draw_kinds(rng, names)
    texts, codes = _merged([kind.values.items for kind in recipe.kinds])
    values = np.empty_like(names)
    for number, kind in enumerate(recipe.kinds):
        places = np.flatnonzero(kinds == number)
        values[places] = codes[number][kind.values.draw(rng, len(places))]
    attributes = pa.StructArray.from_arrays(
        [
            _encoded(names, recipe.names.items),
            _encoded(kinds, [kind.type.value for kind in recipe.kinds]),
            _encoded(values, texts).dictionary_decode(),
        ],
        fields=list(SPARSE_MESSAGES.field("attributes").type.value_type),
    )
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), attributes)
    return pa.Table.from_arrays([lists], schema=SPARSE_MESSAGES)


def _distinct_names(names: Choice[str], owners: Numbers, rng: np.random.Generator) -> Codes:
    """Names by message, none twice in one: as drawing one by one until there are enough.

    A round draws what is missing; of equal names the first stays. Only the messages that lack
    something go into the next round.
    """
    drawn = names.draw(rng, len(owners))
    open_places = np.arange(len(owners))
    while True:
        keys = owners[open_places] * len(names.items) + drawn[open_places]
        order = np.argsort(keys, kind="stable")
        repeated = np.zeros(len(keys), np.bool_)
        repeated[order[1:]] = keys[order[1:]] == keys[order[:-1]]
        lacking_places = open_places[repeated]
        if not len(lacking_places):
            return drawn
        drawn[lacking_places] = names.draw(rng, len(lacking_places))
        lacking = np.unique(owners[lacking_places])
        open_places = open_places[np.isin(owners[open_places], lacking)]
