"""Hot keys: what to do with thousands of candidates under one key.

`dest = 'ORD'` may be the pivot of thousands of filters. Under such a key filters are filed once more,
by their second constraint, and only those are verified whose second constraint holds: one search for
each name, operator and domain finds them. When interfaces are few, most of these filters are of
interfaces that get the message anyway: those of two constraints are then decided by bits, and others
are verified only for interfaces that are still missing. `arrays` draws it.

Compiling puts the entries of such keys in the order that this needs (`order_within`); the groups
are derived from it when an engine is made, and not kept in the file. A key whose entries lie in another
order, in a file made by an earlier version, is walked as a whole.
"""

from __future__ import annotations

import numpy as np

from palio.matching.encode import codes
from palio.matching.encode.arrays import empty
from palio.matching.encode.columns import Ints
from palio.matching.pivot import hot_key_kernels, mask_kernels
from palio.matching.pivot.arrays import HotKeys, Pivots

HOT_KEY_MIN = 16  # candidates from which a key is hot
_GROUP_MIN = 4  # and a group of its candidates is searched, where words do not decide it
_WORDS_MAX = 8  # of groups, for each entry of a key: with many interfaces words are mostly 0


def order_within(keys: Ints, owner: Ints, packed: Ints, has_words: bool) -> Ints:
    """An order of entries within their keys, which are numbered and ascend; `packed` is the
    constraint behind the pivot. Entries of keys that are not hot stay where they are."""
    order = np.arange(len(keys))
    many = np.flatnonzero((np.bincount(keys, minlength=1) >= HOT_KEY_MIN)[keys])
    second = _by_second(keys[many], owner[many], packed[many], has_words)
    order[many] = many[second]
    return order


def _by_second(keys: Ints, owner: Ints, packed: Ints, has_words: bool) -> Ints:
    head = packed[:, 0]
    op = (head >> codes.OP_SHIFT) & 15
    part = np.where(head & 1, 0, 1)
    if not has_words:
        head = head & ~1
        _, group, size = np.unique(
            (keys.astype(np.int64) << 32) | head, return_inverse=True, return_counts=True
        )
        part = np.where(size[group] >= _GROUP_MIN, 1, hot_key_kernels.OTHER)
    part[(op > codes.GE) | (op == codes.NE)] = hot_key_kernels.OTHER
    operand = np.ascontiguousarray(packed[:, 1:]).view(np.int64)[:, 0]
    return np.lexsort((owner, operand, head, part, keys))


def no_hot_keys() -> HotKeys:
    """When all entries of a key are walked."""
    none = empty()
    return HotKeys(none, none, none, none, none, empty(np.int64), empty(np.uint64), none, none)


def build_hot_keys(pivots: Pivots, interfaces: int, has_words: bool) -> HotKeys:
    """The hot keys of a table; those of one that has masks have words."""
    width = (interfaces + 63) // 64 if has_words else 0
    found = np.zeros((len(pivots.keys), 3), np.int32)
    hot_key_kernels.survey(pivots, HOT_KEY_MIN, _GROUP_MIN, width, _WORDS_MAX, found)
    if not has_words:  # a row may hit very many keys of a ray: their candidates are one range
        is_ray = (pivots.kind <= codes.GE) & (pivots.kind != codes.EQ)
        found[np.repeat(is_ray, np.diff(pivots.keys_at))] = 0
    is_hot = found[:, 2] > 0
    hot = np.flatnonzero(is_hot)
    if not len(hot):
        return no_hot_keys()
    groups_at = np.append(0, np.cumsum(found[hot, :2])).astype(np.int32)
    groups, keys = int(groups_at[-1]), int(found[hot, 2].sum())
    hot_keys = HotKeys(
        at=np.append(0, np.cumsum(is_hot)).astype(np.int32),
        key=hot.astype(np.int32),
        groups_at=groups_at,
        head=np.empty(groups, np.int32),
        keys_at=np.empty(groups + 1, np.int32),
        keys=np.empty(keys, np.int64),
        words=np.zeros(keys * width, np.uint64),
        first=np.empty(keys, np.int32),
        others=np.empty(len(hot), np.int32),
    )
    hot_key_kernels.settle_in(pivots, width, found[hot, 2], hot_keys)
    if not has_words:
        return hot_keys
    kinds = ((hot_keys.head >> codes.OP_SHIFT) & 15).astype(np.uint8)
    mask_kernels.unite_rays(kinds, hot_keys.keys_at, width, hot_keys.words)
    return hot_keys


def grouped(pivots: Pivots, hot_keys: HotKeys) -> int:
    """How many entries are in groups."""
    return int((hot_keys.others - pivots.entries_at[hot_keys.key]).sum())
