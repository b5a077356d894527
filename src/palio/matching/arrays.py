"""The arrays that kernels read: named tuples of flat numpy arrays, drawn.

`Strings`: the operands that are strings, sorted, and how to find those that a value begins with,
ends with or contains. Every operand's hash is a polynomial modulo 2^64, so that the hash of any
piece of a value is a difference of two running sums.

    rank      0        1        2             blob   a b a b c b c
    begin     0        2        5     7       hash   h(ab) h(abc) h(bc)
    slots     open addressing: hash -> rank + 1; 0 is free
    uses      1 prefix, 2 suffix, 4 contains: which operators have this operand
    lengths   the distinct lengths in bytes of the operands of each operator, ascending

`Pivots`: each filter filed once, under one constraint (its pivot).

    name       n0                    n1
    directory  [EQ INT][LT INT]      [EQ STRING]           kind, domain
    keys        3 5 9   4 8           17 20                 sorted within a directory
    alone       |  |  |  | |           |  |                 filters of one constraint: interfaces
    entries     |  |  |  | |           |  |                 the others, five ints each:
                  \\
                   [interface | rest | head | key low | key high]     the next likely constraint
                                 \\
    rest                          [head | key low | key high] ...      further ones, to the last

    head       name << 8 | op << 4 | domain << 1 | last

    The hits of a directory are keys [a, b), so the interfaces alone_at[a]..alone_at[b] match at
    once, and the entries entries_at[a]..entries_at[b] are verified. Everything about a candidate
    lies together, since what costs is the first touch of a cache line.

`Batch`: messages as attributes in rows; a value is a floor key and how it stands to it, in the
domain of its type; numbers have one in INT and one in FLOAT.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from palio.matching.columns import Ints


class Strings(NamedTuple):
    """Operands that are strings."""

    blob: Ints  # uint8
    begin: Ints  # int64, one more than strings
    hash: Ints  # uint64
    slots: Ints  # int32
    uses: Ints  # uint8
    prefix_lengths: Ints  # int32
    suffix_lengths: Ints
    part_lengths: Ints


class Pivots(NamedTuple):
    """Filters under their pivots."""

    directory_at: Ints  # int32: name -> directories
    kind: Ints  # uint8
    domain: Ints  # uint8
    keys_at: Ints  # int32: directory -> keys
    keys: Ints  # int64
    alone_at: Ints  # int32: key -> alone
    alone: Ints  # int32: interfaces
    entries_at: Ints  # int32: key -> entries
    entries: Ints  # int32, five columns
    rest: Ints  # int32, three columns
    missing: Ints  # int32: directories of kind ABSENT
    missing_name: Ints  # int32: the names they ask for
    always: Ints  # int32: the directory of filters without a pivot, if any
    set_at: Ints  # int64: the members of sets
    set_split: Ints
    set_keys: Ints
    once: Ints  # uint8, one: 1 when no interface is filed twice


class Masks(NamedTuple):
    """Filters of one constraint when the interfaces are few: a key has bits, one an interface.

    The directories are those of `Pivots`, with the keys of such filters only. A ray that holds at
    a key holds at all on one side of it, so their bits are united along the keys, and what a value
    satisfies is read at one place. Of a name, the directory that reaches most interfaces is first.
    """

    rank: Ints  # int32: name -> its place in the order of reach
    directory_at: Ints  # int32: name -> directories
    kind: Ints  # uint8
    domain: Ints  # uint8
    keys_at: Ints  # int32: directory -> keys
    keys: Ints  # int64
    words: Ints  # uint64: len(full) for each key
    missing: Ints  # int32: directories of kind ABSENT
    missing_name: Ints  # int32: the names they ask for
    always: Ints  # uint64: bits of those who get everything
    full: Ints  # uint64: bits of all who can get anything; empty when masks are not used


class Crowds(NamedTuple):
    """Crowded keys: those of `Pivots` with many candidates, when the interfaces are few.

    Under such a key the candidates lie by their second constraint. Those that have one name, operator
    and domain are a group, with sorted keys and words as in `Masks`: one search finds all that a
    value satisfies. For filters of two constraints the words are the answer; for longer ones they
    tell whose candidates are there.

        entries   [carrier = 3 | carrier = 3 | carrier = 7]  [carrier = 7 | delay > 5 | delay > 9] [...]
        groups     two constraints: carrier =                 longer: carrier =, delay >         others
        keys       3             .             7               7             5           9
        first      |                           |               |             |           |
    """

    at: Ints  # int32: key -> crowded keys before it; empty when there are none
    key: Ints  # int32: which keys are crowded
    groups_at: Ints  # int32, two for each: its groups of two constraints, then of more
    head: Ints  # int32: name, operator and domain of a group
    keys_at: Ints  # int32: group -> keys
    keys: Ints  # int64
    words: Ints  # uint64: bits of interfaces for each key, united along rays
    first: Ints  # int32: key -> entries
    others: Ints  # int32: where the entries begin that are in no group


class Batch(NamedTuple):
    """Messages, as rows of attributes whose names the table knows."""

    row_at: Ints  # int64: row -> attributes
    name: Ints  # int32
    type: Ints  # uint8
    floor: Ints  # int64: in the domain of the type; INT for numbers
    place: Ints  # uint8: BETWEEN, EXACT, BELOW
    float_floor: Ints  # int64: in FLOAT, for numbers
    float_place: Ints  # uint8
    text: Ints  # int32: position of a string among the distinct ones of the batch
    text_blob: Ints  # uint8
    text_begin: Ints  # int64


class Texts(NamedTuple):
    """The distinct strings of a batch, and what each was found to be when it was first needed.

    Text t begins with the operands hits[at[4 t] : at[4 t + 1]], ends with the next run, and
    contains the third, up to at[4 t + 3]; at[4 t] is -1 while nobody has asked for it.
    """

    at: Ints  # int64
    hits: Ints  # int32: ranks
    floor: Ints  # int64: its place among all operands
    place: Ints  # uint8
    limits: Ints  # int64, two: how many hits there are, and how many one text can have
    sums: Ints  # uint64: room for the running sums of a text
    powers: Ints  # uint64


def empty(dtype: type = np.int32) -> Ints:
    return np.empty(0, dtype)
