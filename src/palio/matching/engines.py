"""Engines behind one small protocol: from a batch of messages to interfaces, identical answers.

`match` gives, for each message, the positions of its interfaces, ascending and without repeats, as
offsets and one flat array.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from palio.errors import InvalidValue
from palio.matching import pivot_kernels
from palio.matching.arrays import Batch, Pivots, Strings
from palio.matching.arrow_encoding import encode_attributes, encode_map, encode_wide
from palio.matching.columns import Columns, Ints
from palio.matching.covered import uncovered
from palio.matching.crowds import build_crowds, no_crowds
from palio.matching.decoding import pivot_predicates
from palio.matching.encoding import encode_messages, unresolved, with_room
from palio.matching.gathering import Gathering, buffer
from palio.matching.json_encoding import NameIndex, encode_json
from palio.matching.likelihood import Constraints
from palio.matching.masks import build_masks, cover_rows, without_singles
from palio.matching.pivot import build_pivots, build_strings
from palio.matching.sample import Sample
from palio.matching.single import Single
from palio.model.message import as_message
from palio.model.predicate import Predicate
from palio.model.values import Value

_RANGES = 1 << 12  # candidates of a row, at first
_CHUNK = 1 << 12  # rows that are covered together
_NOTHING = np.empty((1, 0), np.uint64), np.zeros(1, np.uint8)


class Engine(Protocol):
    """What a matching engine does."""

    def match_one(self, message: Mapping[str, Any]) -> Ints:
        """The interfaces of one message: a Message, or a dict, which is checked here."""
        ...

    def match(self, messages: Sequence[Mapping[str, Value]]) -> tuple[Ints, Ints]:
        """The interfaces of many: offsets (one more than messages) and interfaces."""
        ...

    def match_rows(self, rows: Any, layout: str, column: str) -> tuple[Ints, Ints]:
        """The same for the rows of an Arrow table; see ForwardingTable.forward_batch."""
        ...

    def predicates(self, interfaces: Iterable[int]) -> Iterator[Predicate]:
        """What the interfaces at these positions select."""
        ...


def encode_rows(names: NameIndex, rows: Any, layout: str, column: str) -> Batch:
    """Arrow rows for the kernels: wide, or one column of JSON, maps or attribute lists."""
    if layout == "wide":
        return encode_wide(names.names, rows)
    values = rows.column(column)
    if layout == "json":
        return encode_json(names, values)
    return (encode_map if layout == "map" else encode_attributes)(names.names, values)


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


class PivotEngine:
    """The default engine; see `pivot`."""

    def __init__(
        self,
        names: list[str],
        interfaces: int,
        strings: Strings,
        pivots: Pivots,
        sample: Sample | None = None,
    ) -> None:
        self.names = names
        self.strings = strings
        self.pivots = pivots
        self._masks = build_masks(pivots, interfaces)
        self.walked = without_singles(pivots) if self._masks else pivots
        self.crowds = build_crowds(self.walked, interfaces) if self._masks else no_crowds()
        self.sample = sample  # that chose the pivots, if there was one
        self._positions = {name: i for i, name in enumerate(names)}
        self._interfaces = interfaces
        self._local = threading.local()

    @classmethod
    def compile(cls, columns: Columns, sample: Any = None) -> PivotEngine:
        """File all filters of the columns, by a sample of messages if there is one."""
        strings = build_strings(columns)
        names, interfaces = columns.names, len(columns.interfaces)
        columns = uncovered(columns, strings)
        if sample is None:
            return cls(names, interfaces, strings, build_pivots(columns))
        known = take_sample(sample, names, strings)
        chance = known.likelihood(Constraints.of(columns))
        return cls(names, interfaces, strings, build_pivots(columns, chance), known)

    @property
    def interfaces(self) -> int:
        return self._interfaces

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self.pivots, *self.strings))

    def predicates(self, interfaces: Iterable[int]) -> Iterator[Predicate]:
        return pivot_predicates(self.pivots, self.strings, self.names, interfaces)

    def match(self, messages: Sequence[Mapping[str, Value]]) -> tuple[Ints, Ints]:
        return self.match_batch(self.encode(messages))

    def encode(self, messages: Sequence[Mapping[str, Value]]) -> Batch:
        """Messages as this table's kernels know them."""
        return encode_messages(self._positions, messages)

    def match_rows(self, rows: Any, layout: str, column: str) -> tuple[Ints, Ints]:
        """The interfaces of Arrow rows; `layout` says where the attributes are."""
        return self.match_batch(encode_rows(self._name_index, rows, layout, column))

    @cached_property
    def _name_index(self) -> NameIndex:
        return NameIndex.of(self._positions)

    def match_one(self, message: Mapping[str, object]) -> Ints:
        """The interfaces of one message."""
        return self._single.match(message)

    @cached_property
    def _single(self) -> Single:
        return Single(self.names, self._interfaces, self.pivots, self.strings)

    def _scratch(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Arrays of this thread that kernels leave as they found them: slot, bits, summary, out."""
        known = getattr(self._local, "scratch", None)
        if known is None:
            words = (self._interfaces + 63) // 64
            known = self._local.scratch = (
                np.zeros(len(self.names) + 1, np.int64),
                np.zeros(words + 1, np.uint64),
                np.zeros(words // 64 + 1, np.uint64),
                np.zeros(max(1, self._interfaces), np.int32),
            )
        return known

    def match_batch(self, batch: Batch, *, ordered: bool = True) -> tuple[Ints, Ints]:
        """The interfaces of the rows of a batch; in any order where that is quicker."""
        batch = batch._replace(floor=batch.floor.copy(), place=batch.place.copy())
        texts = unresolved(self.strings, batch.text_begin, 16 * len(batch.text_begin))
        rows = len(batch.row_at) - 1
        copying = not ordered and bool(self.pivots.once[0])
        slot, bits, summary, _ = self._scratch()
        ranges = np.empty((_RANGES, 2), np.int64)
        crowded = np.empty(len(self.crowds.key), np.int32)
        ends = np.zeros(rows, np.int64)
        reach, reached, is_done = self._interfaces, *_NOTHING
        gathered, out = Gathering(rows), buffer(self._interfaces)
        row = first = last = 0
        while row < rows:
            if row == last:
                first, last = row, min(row + _CHUNK, rows) if self._masks else rows
                if self._masks:
                    reach = int(np.bitwise_count(self._masks.full).sum())
                    texts, reached, is_done = cover_rows(
                        self._masks, self.strings, batch, texts, first, last, slot
                    )
            done = pivot_kernels.forward(
                self.walked, self.crowds, self.strings, batch, texts, first, row, last,
                self._interfaces, reach, copying, reached, is_done, slot, bits, summary, ranges,
                crowded, ends, out,
            )  # fmt: skip
            if done == row:  # this row may have more hits or ranges than there is room for
                texts, ranges = with_room(texts), np.empty((2 * len(ranges), 2), np.int64)
                continue
            gathered.take(row, done, ends, out)
            row = done
        return gathered.offsets, gathered.found
