"""A sample of messages, sorted so that constraints can be counted against it (`arrays` draws it).

Millions of constraints are counted in a second or two: each is two binary searches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from palio.errors import InvalidValue
from palio.matching.encode import codes
from palio.matching.encode.arrays import EncodedMessages, Strings, Texts
from palio.matching.encode.arrow_messages import encode_wide
from palio.matching.encode.columns import Ints
from palio.matching.encode.messages import encode_messages
from palio.matching.encode.texts import resolve_texts
from palio.matching.pivot import sample_kernels
from palio.matching.pivot.arrays import FiledConstraints, SampledValues
from palio.matching.pivot.likelihood import Constraints, guess
from palio.model.message import as_message

_ORDER = np.array([2, 1, 0], np.uint8)  # of the places BETWEEN, EXACT, BELOW
_WEIGHT = 5.0  # messages that the guess counts for beside the sampled ones


@dataclass(frozen=True, slots=True)
class Sample:
    """Sampled messages as a table's operands see them; it belongs to that table's strings."""

    batch: EncodedMessages
    values: SampledValues

    @classmethod
    def of(cls, batch: EncodedMessages, strings: Strings, names: int) -> Sample:
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
        values = SampledValues(
            rows=len(batch.row_at) - 1,
            present=np.bincount(base + batch.type, minlength=8 * names),
            group_at=np.searchsorted(group[sorted_], np.arange(8 * names + 1)),
            floors=floors[sorted_],
            order=order[sorted_],
            pieces=pieces,
            pieces_at=np.concatenate([[0], np.cumsum(counts)]),
        )
        return cls(batch, values)

    @property
    def messages(self) -> int:
        return self.values.rows

    def hits(self, constraints: Constraints) -> Ints:
        """How many of the messages touch what is filed under each constraint."""
        c = constraints.filed()
        filed = FiledConstraints(
            name=c.name.astype(np.int64),
            op=c.op.astype(np.int64),
            domain=c.domain.astype(np.int64),
            key=c.key.astype(np.int64),
            set_at=c.sets.start,
            set_split=c.sets.split,
            set_keys=c.sets.keys,
        )
        out = np.empty(len(c.name), np.int64)
        sample_kernels.count_hits(filed, self.values, out)
        return out

    def likelihood(self, constraints: Constraints) -> Ints:
        """The share of messages that satisfy each constraint, smoothed by the guess: constraints
        that no sampled message satisfies still have an order."""
        hits = self.hits(constraints)
        return (hits + _WEIGHT * guess(constraints)) / (self.messages + _WEIGHT)


def take_sample(rows: Any, names: list[str], strings: Strings) -> Sample:
    """A sample out of Arrow rows (wide) or messages, for a table with these names and strings."""
    positions = {name: i for i, name in enumerate(names)}
    if isinstance(rows, pa.Table | pa.RecordBatch):
        batch = encode_wide(positions, rows)
    elif isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
        raise InvalidValue(
            f"a sample is an Arrow table or a list of messages, not {type(rows).__name__}"
        )
    else:
        batch = encode_messages(positions, map(as_message, rows))
    return Sample.of(batch, strings, len(names))


def _pieces(batch: EncodedMessages, texts: Texts) -> Ints:
    """What each string attribute begins with, ends with and contains, as codes."""
    where = np.flatnonzero(batch.type == codes.STRING)
    run = 4 * batch.text[where].astype(np.int64)
    found = []
    for kind in range(3):
        low, high = texts.at[run + kind], texts.at[run + kind + 1]
        count = high - low
        at = np.repeat(low - np.cumsum(count) + count, count) + np.arange(count.sum())
        codes_ = 3 * batch.name[where].astype(np.int64) + kind
        found.append(np.repeat(codes_, count) << 32 | texts.hits[at].astype(np.int64))
    return np.concatenate(found)
