"""The strings of messages, and which operands each begins with, ends with and contains.

A text is looked up when a kernel first needs it; `resolve_texts` looks up all of them at once. The
room for hits is bounded, and `with_room` doubles it when a kernel asks for more.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from palio.matching.encode import text_kernels
from palio.matching.encode.arrays import EncodedMessages, Strings, Texts
from palio.matching.encode.codes import STRING, UNPLACED
from palio.matching.encode.columns import Ints


@lru_cache(64)
def _powers(count: int) -> Ints:
    """The first powers of the base of hashes."""
    bases = np.full(count, text_kernels.BASE, np.uint64)
    bases[0] = 1
    with np.errstate(over="ignore"):
        powers: Ints = np.multiply.accumulate(bases)
    return powers


def unresolved(strings: Strings, begin: Ints, hits: int) -> Texts:
    """Texts with these ends in bytes, of which nothing is known yet, and room for some hits."""
    count = len(begin) - 1
    longest = int(np.diff(begin).max()) if count else 0
    powers = _powers(max(64, 1 << longest.bit_length()))[: longest + 1]
    room = text_kernels.hits_max(strings, longest)
    return Texts(
        at=np.full(4 * count, -1, np.int64),
        hits=np.empty(max(hits, room), np.int32),
        floor=np.zeros(count, np.int64),
        place=np.full(count, UNPLACED, np.uint8),
        limits=np.array([0, room], np.int64),
        sums=np.zeros(longest + 1, np.uint64),
        powers=powers,
    )


def with_room(texts: Texts) -> Texts:
    """The same texts with room for twice as many hits."""
    return texts._replace(hits=np.concatenate([texts.hits, np.empty_like(texts.hits)]))


def _resolved(strings: Strings, blob: Ints, begin: Ints) -> Texts:
    """Texts that have all been looked up."""
    texts = unresolved(strings, begin, 8 * len(begin))
    done = 0
    while done < len(begin) - 1:
        done = text_kernels.settle_all(strings, texts, blob, begin, done)
        if done < len(begin) - 1:
            texts = with_room(texts)
    return texts


def resolve_operands(strings: Strings) -> Texts:
    """Which operands begin, end and lie within which others."""
    return _resolved(strings, strings.blob, strings.begin)


def resolve_texts(strings: Strings, batch: EncodedMessages) -> tuple[EncodedMessages, Texts]:
    """Look all strings of a batch up; the batch gets their floor keys."""
    texts = _resolved(strings, batch.text_blob, batch.text_begin)
    own = np.flatnonzero(batch.type == STRING)
    floor, place = batch.floor.copy(), batch.place.copy()
    floor[own], place[own] = texts.floor[batch.text[own]], texts.place[batch.text[own]]
    return batch._replace(floor=floor, place=place), texts
