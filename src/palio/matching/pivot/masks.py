"""Masks: the filters of one constraint as bits, when the interfaces are few.

They are derived from `Pivots` when an engine is made, and not kept in the file. A batch is covered
name by name, the widest first: most rows then have all interfaces early and are passed over.
"""

from __future__ import annotations

import numpy as np

from palio.matching.encode import codes
from palio.matching.encode.arrays import EncodedMessages, Strings, Texts
from palio.matching.encode.columns import Ints
from palio.matching.encode.texts import with_room
from palio.matching.pivot import mask_kernels
from palio.matching.pivot.arrays import CoveredRows, Masks, Pivots

INTERFACES_MAX = 1024  # with more, a key's bits are mostly 0, and a list is shorter


def are_few(interfaces: int, is_once: bool) -> bool:
    """Are masks worthwhile? Not when each interface is filed once."""
    return interfaces <= INTERFACES_MAX and not is_once


def build_masks(pivots: Pivots, interfaces: int) -> Masks | None:
    """The masks of a table, if they are of use."""
    if not are_few(interfaces, bool(pivots.once[0])):
        return None
    width = (interfaces + 63) // 64
    used = np.flatnonzero(np.diff(pivots.alone_at))  # keys that have filters of one constraint
    directory = np.searchsorted(pivots.keys_at, used, side="right") - 1
    bits = np.zeros((len(used), width), np.uint64)
    _set(bits, np.repeat(np.arange(len(used)), np.diff(pivots.alone_at)[used]), pivots.alone)
    full = np.zeros((1, width), np.uint64)
    for owners in (pivots.alone, np.unique(pivots.entries[:, 0])):
        _set(full, np.zeros(len(owners), np.int64), owners)
    always = np.bitwise_or.reduce(bits[np.isin(directory, pivots.always)], axis=0, initial=0)
    names = directory_names(pivots)
    order, rank = _by_reach(len(pivots.directory_at) - 1, names, directory, bits)
    first = np.flatnonzero(np.r_[True, np.diff(directory[order]) != 0]) if len(order) else order
    own = directory[order][first]
    keys_at = np.append(first, len(order)).astype(np.int32)
    words = bits[order].reshape(-1)
    mask_kernels.unite_rays(pivots.kind[own], keys_at, width, words)
    missing = np.flatnonzero(pivots.kind[own] == codes.ABSENT)
    everyone = np.arange(len(pivots.directory_at))
    return Masks(
        rank=rank,
        directory_at=np.searchsorted(names[own], everyone).astype(np.int32),
        kind=pivots.kind[own],
        domain=pivots.domain[own],
        keys_at=keys_at,
        keys=pivots.keys[used][order],
        words=words,
        missing=missing.astype(np.int32),
        missing_name=names[own][missing].astype(np.int32),
        always=always.astype(np.uint64),
        full=full[0],
    )


def _set(bits: Ints, rows: Ints, interfaces: Ints) -> None:
    values = np.uint64(1) << (interfaces & 63).astype(np.uint64)
    np.bitwise_or.at(bits, (rows, interfaces >> 6), values)


def directory_names(pivots: Pivots) -> Ints:
    """The name of each directory; -1 for the one of filters without a pivot, which is the first."""
    sizes = np.diff(pivots.directory_at)
    known = np.repeat(np.arange(len(sizes)), sizes)
    return np.concatenate([np.full(len(pivots.kind) - len(known), -1), known])


def _by_reach(count: int, names: Ints, directory: Ints, bits: Ints) -> tuple[Ints, Ints]:
    """The keys in an order that puts a name's widest directory first, and the ranks of names."""
    reach = np.zeros(len(names), np.int64)
    if len(directory):
        first = np.flatnonzero(np.r_[True, np.diff(directory) != 0])
        united = np.bitwise_or.reduceat(bits, first, axis=0)
        reach[directory[first]] = np.bitwise_count(united).sum(axis=1)
    keys = np.flatnonzero(names[directory] >= 0)
    own = directory[keys]
    order = keys[np.lexsort((own, -reach[own], names[own]))]
    widest = np.zeros(count, np.int64)
    np.maximum.at(widest, names[names >= 0], reach[names >= 0])
    rank = np.empty(count, np.int32)
    rank[np.argsort(-widest, kind="stable")] = np.arange(count)
    return order, rank


def without_singles(pivots: Pivots) -> Pivots:
    """What is left to walk when masks stand for the filters of one constraint."""
    used = np.flatnonzero(np.diff(pivots.entries_at))
    directory = np.searchsorted(pivots.keys_at, used, side="right") - 1
    own, first = np.unique(directory, return_index=True)
    names = directory_names(pivots)[own]
    missing = np.flatnonzero(pivots.kind[own] == codes.ABSENT)
    everyone = np.arange(len(pivots.directory_at))
    return pivots._replace(
        directory_at=np.searchsorted(names, everyone).astype(np.int32),
        kind=pivots.kind[own],
        domain=pivots.domain[own],
        keys_at=np.append(first, len(used)).astype(np.int32),
        keys=pivots.keys[used],
        alone_at=np.zeros(len(used) + 1, np.int32),
        entries_at=np.append(pivots.entries_at[used], pivots.entries_at[-1:]),
        missing=missing.astype(np.int32),
        missing_name=names[missing].astype(np.int32),
        always=np.flatnonzero(names < 0).astype(np.int32),
    )


def cover_rows(
    masks: Masks,
    strings: Strings,
    batch: EncodedMessages,
    texts: Texts,
    first: int,
    last: int,
    slot: Ints,
    excluded: Ints,
) -> tuple[Texts, CoveredRows]:
    """For the rows [first, last): the bits that filters of one constraint set, and which rows have
    all. The texts have been looked up as far as it was needed. Interfaces that are `excluded` count
    as reached."""
    if len(excluded):
        masks = masks._replace(always=masks.always | excluded, full=masks.full | excluded)
    reached = np.tile(masks.always, (last - first, 1))
    is_done = (reached == masks.full).all(axis=1).view(np.uint8)
    attributes = int(batch.row_at[last] - batch.row_at[first])
    room = attributes + 1  # a place is written before it is known whether it counts
    order, rows = np.empty(room, np.int64), np.empty(room, np.int32)
    count = mask_kernels.pick_widest(masks.rank, batch, first, last, is_done, order, rows)
    mask_kernels.cover(masks, strings, batch, texts, order, rows, 0, count, reached, is_done)
    for is_text in (False, True):  # numbers are often enough, and no string is looked up
        counts = np.zeros(len(masks.rank) + 1, np.int64)
        count = mask_kernels.sort_by_name(
            masks.rank, batch, first, np.flatnonzero(is_done == 0), is_text, counts, order, rows
        )
        done = 0
        while done < count:
            done = mask_kernels.cover(
                masks, strings, batch, texts, order, rows, done, count, reached, is_done
            )
            if done < count:
                texts = with_room(texts)
    mask_kernels.cover_missing(masks, batch, first, last, slot, reached, is_done)
    reach = int(np.bitwise_count(masks.full).sum())
    return texts, CoveredRows(first, reach, excluded, reached, is_done)
