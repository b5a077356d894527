"""The arrays that the kernels of the counting engine read and write, drawn.

`ConstraintIndex`, the left side of the papers' table: from a name, a domain and a value to the
constraints that it satisfies.

    slot          name * 8 + domain                  the switch on name and type
    directory     [=][<][>][prefix] ...              kind[d], one for each operator of a slot
    keys           3 5 9 | 4 8 | 17                  sorted within a directory; a key's position is
                                                     the number of its constraint
    members       sorted members of the slot's sets; links[links_at[m] : links_at[m + 1]] are the
                  `in` constraints that have member m

`FilterNetwork`, the right side: from constraints to filters and interfaces.

    filters_at     0     3   4                       constraint -> postings, so that a run of
    filters        7 8 9 | 7 | ...                   constraints is one run of postings
    owners         0 0 1 | 0 | ...                   the interface of each posting's filter
    required      [round, word]: bits of the interfaces that need required_name[round]
    excluded      bits of the interfaces that a call leaves out, which are decided from the start

`CountingScratch`, what one call writes to.

    runs          [a, b) [a, b) ...                  satisfied constraints of one attribute
    cells         stamp | size | left                one integer a filter; a cell with the stamp
                                                     of an earlier row counts as left = size
    struck        negated constraints that do not hold, and parts that a string has been seen to have
    ignored       bits of the interfaces that are decided: matched, eliminated or left out
    matched       bits of those that matched; summary: which of its words are not 0
"""

from __future__ import annotations

from typing import NamedTuple

from palio.matching.encode.columns import Ints


class ConstraintIndex(NamedTuple):
    """The left side: from a name, a domain and a value to constraints."""

    directory_at: Ints  # int32: name * 8 + domain -> directories
    kind: Ints  # uint8
    keys_at: Ints  # int32: directory -> keys
    keys: Ints  # int64: one a constraint
    members_at: Ints  # int32: name * 8 + domain -> members of sets
    member_keys: Ints  # int64
    links_at: Ints  # int32: member -> links
    links: Ints  # int32: constraints


class FilterNetwork(NamedTuple):
    """The right side: from constraints to filters and interfaces."""

    filters_at: Ints  # int32: constraint -> postings
    filters: Ints  # uint32: an index that cannot be negative needs no check
    owners: Ints  # uint32: the interface of each posting's filter
    always: Ints  # int32: interfaces of empty filters
    absent: Ints  # int32: constraints `absent`
    absent_name: Ints  # int32
    required_name: Ints  # int32: the selectivity table, as many entries as there are rounds
    required: Ints  # uint64 [round, word]
    excluded: Ints  # uint64; no words: none is left out
    interfaces: int
    decidable: int  # interfaces that have a filter and are not left out
    width: int  # bits of a counter
    ahead: int  # how far ahead counters are asked for


class CountingScratch(NamedTuple):
    """What one call at a time writes to."""

    cells: Ints  # int32 or int64: one a filter
    clock: Ints  # int64: the stamp of the last row
    present: Ints  # uint8: names
    skip: Ints  # uint8: strings
    struck: Ints  # uint8: constraints, all 0 between two strings; for trees
    passed: Ints  # int64, two: branches of trees
    runs: Ints  # int64 [run, 2]
    ignored: Ints  # uint64: interfaces
    matched: Ints  # uint64
    summary: Ints  # uint64: words of matched
    block: Ints  # int64: postings
