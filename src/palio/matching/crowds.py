"""Crowded keys: what to do with thousands of candidates under one key, when interfaces are few.

`dest = 'ORD'` may be the pivot of thousands of filters, most of interfaces that get the message
anyway. So the filters of two constraints are taken first, by groups that decide all with one search,
and of the others only those of interfaces that are still missing are verified. `arrays` draws both.

Compiling puts the entries of each key in the order that this needs (`walking_order`); groups and
runs are derived from it when an engine is made, and not kept in the file. A key whose entries lie
in another order, in a file made elsewhere, is walked as a whole.
"""

from __future__ import annotations

import numpy as np

from palio.matching import codes, crowd_kernels, mask_kernels
from palio.matching.arrays import Crowds, Pivots, empty
from palio.matching.columns import Ints

_CROWD = 16  # candidates from which a key is crowded
_WORDS_MAX = 8  # of groups, for each entry of a key: with many interfaces, words are mostly 0


def walking_order(keys: Ints, owner: Ints, packed: Ints) -> Ints:
    """An order of entries within their keys: filters of two constraints by the second one, then the
    others by interface, those of two constraints first. `packed`: the constraint behind the pivot."""
    head = packed[:, 0].astype(np.int64)
    op, is_last = (head >> codes.OP_SHIFT) & 15, head & 1 == 1
    is_pair = is_last & (op <= codes.GE) & (op != codes.NE)
    operand = np.ascontiguousarray(packed[:, 1:]).view(np.int64)[:, 0]
    return np.lexsort(
        (np.where(is_pair, operand, ~is_last), np.where(is_pair, head, owner), ~is_pair, keys)
    )


def no_crowds() -> Crowds:
    """When each key is walked."""
    none, words = empty(), empty(np.uint64)
    return Crowds(none, none, none, none, none, empty(np.int64), words, none, none, words)


def build_crowds(pivots: Pivots, interfaces: int) -> Crowds:
    """The crowded keys of a table with masks."""
    width = (interfaces + 63) // 64
    found = np.zeros((len(pivots.keys), 3), np.int32)
    crowd_kernels.survey(pivots, _CROWD, width, _WORDS_MAX, found)
    is_crowded = found[:, 2] > 0
    key = np.flatnonzero(is_crowded)
    if not len(key):
        return no_crowds()
    groups_at, keys_at, runs_at = (
        np.concatenate([[0], np.cumsum(found[key, column])]).astype(np.int32) for column in range(3)
    )
    groups, keys = int(groups_at[-1]), int(keys_at[-1])
    crowds = Crowds(
        at=np.concatenate([[0], np.cumsum(is_crowded)]).astype(np.int32),
        key=key.astype(np.int32),
        groups_at=groups_at,
        head=np.empty(groups, np.int32),
        keys_at=np.empty(groups + 1, np.int32),
        keys=np.empty(keys, np.int64),
        words=np.zeros(keys * width, np.uint64),
        runs_at=runs_at,
        run=np.empty(runs_at[-1], np.int32),
        owners=np.zeros(len(key) * width, np.uint64),
    )
    crowd_kernels.settle_in(pivots, width, crowds)
    kinds = ((crowds.head >> codes.OP_SHIFT) & 15).astype(np.uint8)
    mask_kernels.unite_rays(kinds, crowds.keys_at, width, crowds.words)
    return crowds
