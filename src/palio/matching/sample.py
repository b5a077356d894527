"""A sample of messages, sorted so that constraints can be counted against it.

    values     one row for each value, for numbers two (INT and FLOAT)
    group      8 * name + domain                   ascending; group_at says where each begins
    floor      ascending within a group            then order: below, equal to, above its key

    pieces     name * 3 + (prefix, suffix, contains) << 32 | rank of the operand, sorted:
               what the sampled strings begin with, end with and contain

Millions of constraints are counted in a second or two: each is two binary searches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from palio.matching import codes, sample_kernels
from palio.matching.arrays import Batch, Strings, Texts
from palio.matching.columns import Ints
from palio.matching.encoding import resolve_texts
from palio.matching.likelihood import Constraints, guess

_ORDER = np.array([2, 1, 0], np.uint8)  # of the places BETWEEN, EXACT, BELOW
_WEIGHT = 5.0  # messages that the guess counts for beside the sampled ones


@dataclass(frozen=True, slots=True)
class Sample:
    """Sampled messages as a table's operands see them; it belongs to that table's strings."""

    batch: Batch
    present: Ints
    group_at: Ints
    floors: Ints
    order: Ints
    pieces: Ints
    pieces_at: Ints

    @classmethod
    def of(cls, batch: Batch, strings: Strings, names: int) -> Sample:
        """A sample from encoded messages."""
        batch, texts = resolve_texts(strings, batch)
        base = batch.name.astype(np.int64) * 8
        number = (batch.type == codes.INT) | (batch.type == codes.FLOAT)
        group = np.concatenate([base + np.where(number, codes.INT, batch.type), base + codes.FLOAT])
        floors = np.concatenate([batch.floor, batch.float_floor])
        order = _ORDER[np.concatenate([batch.place, batch.float_place])]
        kept = np.concatenate([np.ones(len(base), bool), number])
        group, floors, order = group[kept], floors[kept], order[kept]
        sorted_ = np.lexsort((order, floors, group))
        pieces, counts = np.unique(_pieces(batch, texts), return_counts=True)
        return cls(
            batch,
            np.bincount(base + batch.type, minlength=8 * names),
            np.searchsorted(group[sorted_], np.arange(8 * names + 1)),
            floors[sorted_],
            order[sorted_],
            pieces,
            np.concatenate([[0], np.cumsum(counts)]),
        )

    @property
    def messages(self) -> int:
        return len(self.batch.row_at) - 1

    def hits(self, constraints: Constraints) -> Ints:
        """How many of the messages touch what is filed under each constraint."""
        c = constraints.filed()
        out = np.empty(len(c.name), np.int64)
        sample_kernels.count_hits(
            c.name.astype(np.int64), c.op.astype(np.int64), c.domain.astype(np.int64),
            c.key.astype(np.int64), c.sets.start, c.sets.split, c.sets.keys, self.messages,
            self.present, self.group_at, self.floors, self.order, self.pieces, self.pieces_at, out,
        )  # fmt: skip
        return out

    def likelihood(self, constraints: Constraints) -> Ints:
        """The share of messages that satisfy each constraint, smoothed by the guess: constraints
        that no sampled message satisfies still have an order."""
        hits = self.hits(constraints)
        return (hits + _WEIGHT * guess(constraints)) / (self.messages + _WEIGHT)


def _pieces(batch: Batch, texts: Texts) -> Ints:
    """What each string attribute begins with, ends with and contains, as codes."""
    where = np.flatnonzero(batch.text >= 0)
    run = 4 * batch.text[where].astype(np.int64)
    found = []
    for kind in range(3):
        low, high = texts.at[run + kind], texts.at[run + kind + 1]
        count = high - low
        at = np.repeat(low - np.cumsum(count) + count, count) + np.arange(count.sum())
        codes_ = 3 * batch.name[where].astype(np.int64) + kind
        found.append(np.repeat(codes_, count) << 32 | texts.hits[at].astype(np.int64))
    return np.concatenate(found)
