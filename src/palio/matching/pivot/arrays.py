"""The arrays that the kernels of the pivot engine read and write, drawn.

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
    lies together, since the first touch of a cache line is what costs.

`HotKeys` are derived from `Pivots`, and `Masks` when the interfaces are few. `CoveredRows` is what
the masks decided of some rows, and `PivotScratch` is what one call writes while it works on a row:

    slot      0  3  0  1           name -> attribute + 1 of the row; 0: the row lacks the name
    bits      0110 ...             interfaces matched so far; summary: which words are not 0
    ranges    [a, b) [a, b) ...    entries to verify
    hot       4  9 ...             hot keys that the row hits
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from palio.matching.encode.arrays import Strings
from palio.matching.encode.columns import Ints


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


class HotKeys(NamedTuple):
    """Hot keys: those of `Pivots` with many candidates.

    Under such a key the candidates lie by their second constraint. Those that have one name, operator
    and domain are a group, with sorted keys: one search finds all that a value satisfies. When the
    interfaces are few there are words as in `Masks`: for filters of two constraints they are the
    answer; for longer ones they tell whose candidates are there.

        entries   [carrier = 3 | carrier = 3 | carrier = 7]  [carrier = 7 | delay > 5 | delay > 9] [...]
        groups     two constraints: carrier =                 longer: carrier =, delay >         others
        keys       3             .             7               7             5           9
        first      |                           |               |             |           |
    """

    at: Ints  # int32: key -> hot keys before it; empty when there are none
    key: Ints  # int32: which keys are hot
    groups_at: Ints  # int32, two for each: its groups of two constraints, then of more
    head: Ints  # int32: name, operator and domain of a group
    keys_at: Ints  # int32: group -> keys
    keys: Ints  # int64
    words: Ints  # uint64: bits of interfaces for each key, united along rays
    first: Ints  # int32: key -> entries
    others: Ints  # int32: where the entries begin that are in no group


class CoveredRows(NamedTuple):
    """What is known before rows are walked: what masks decided of the rows from `first` on (without
    masks, bits of no words), and the interfaces that a call leaves out. Their bits are set before a
    row as if they had matched, here and in `PivotScratch.bits`, and taken out of its answer."""

    first: int
    reach: int  # how many interfaces can match at all
    excluded: Ints  # uint64: bits of the interfaces that are left out; no words: none
    bits: Ints  # uint64 [row - first, word]: interfaces that filters of one constraint give a row
    is_done: Ints  # uint8 [row - first]: these are all that can match


class PivotScratch(NamedTuple):
    """What one call writes to; slot, bits and summary are all 0 before and after a row, but for the
    bits of interfaces that the call leaves out."""

    slot: Ints  # int64: name -> attribute + 1
    bits: Ints  # uint64
    summary: Ints  # uint64
    ranges: Ints  # int64 [range, 2]: entries to verify
    hot: Ints  # int32: hot keys that the row hits


class FiledConstraints(NamedTuple):
    """Constraints that filters may be filed under, one row each, with the members of sets."""

    name: Ints  # int64; -1: no constraint, which every message satisfies
    op: Ints  # int64
    domain: Ints  # int64
    key: Ints  # int64: a key of the domain, or the number of a set
    set_at: Ints  # int64: set -> members; those before set_split are in its domain, others FLOAT
    set_split: Ints
    set_keys: Ints


class SampledValues(NamedTuple):
    """The values of a sample of messages, sorted so that constraints can be counted against them.

    group      8 * name + domain          ascending; a number has a value in INT and in FLOAT
    floors     ascending within a group, then by order: below, equal to, above its key
    pieces     (name * 3 + prefix, suffix or contains) << 32 | rank of the operand, sorted:
               what the sampled strings begin with, end with and contain
    """

    rows: int  # messages
    present: Ints  # int64: 8 * name + type -> values
    group_at: Ints  # int64: group -> floors
    floors: Ints  # int64
    order: Ints  # uint8
    pieces: Ints  # int64
    pieces_at: Ints  # int64: piece p occurs in pieces_at[p + 1] - pieces_at[p] messages


@dataclass(frozen=True, slots=True)
class PivotTable:
    """A compiled table: all that a file holds but the names of its interfaces."""

    names: list[str]  # of attributes
    interfaces: int
    strings: Strings
    pivots: Pivots
