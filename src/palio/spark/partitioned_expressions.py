"""Expressions in a partitioned table: shared ones are attributes, filters with residuals are the rest.

    lower(name) = 'ann'              a key of its shard; Spark computes the column, or the worker
    abs(lat - 45.3) < 0.1, ...       too many to be attributes: the whole filter lies in the rest

Messages bring the attributes that residuals read, and those of shared expressions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from palio.matching.computed.compiling import SHAPE_FEW
from palio.matching.computed.shapes import shape_of
from palio.matching.encode.columns import ConstraintColumns, Ints
from palio.model.expressions.foreign import is_foreign
from palio.model.expressions.names import attributes_of, is_computed
from palio.model.literals import lift


@dataclass(frozen=True, slots=True)
class ResidualShapes:
    """Shapes of expressions of which a table has too many to compute each for every message."""

    texts: frozenset[str]
    attributes: frozenset[str]
    """That they read."""

    @classmethod
    def of(cls, names: Iterable[str]) -> ResidualShapes:
        shapes = [shape for name in names if is_computed(name) and (shape := shape_of(name))]
        texts, counts = np.unique([shape.text for shape in shapes], return_counts=True)
        often = set(texts[counts > SHAPE_FEW].tolist())
        found = {
            shape.text: shape.expression
            for shape in shapes
            if shape.text in often and shape.member is None and not is_foreign(shape.expression)
        }
        read = frozenset().union(*map(attributes_of, found.values()))
        return cls(frozenset(found), read)

    def __contains__(self, name: str) -> bool:
        return is_computed(name) and bool(self.texts) and lift(name[1:])[0] in self.texts

    def known_names(self, names: Iterable[str]) -> list[str]:
        """The names that messages are read with: all but those of residuals, and what these read."""
        kept = {name for name in names if name not in self}
        return sorted(kept | self.attributes)

    def filters(self, columns: ConstraintColumns) -> Ints:
        """Which filters have residuals."""
        found = np.zeros(columns.filters, bool)
        if self.texts:
            is_residual = np.array([name in self for name in columns.names], bool)
            found[columns.filter[is_residual[columns.name]]] = True
        return found

    def lists(self, names: pa.ListArray) -> Ints:
        """Which filters have residuals, of the names of their constraints."""
        if not self.texts:
            return np.zeros(len(names), bool)
        flat = names.flatten().dictionary_encode()
        is_residual = np.array([name in self for name in flat.dictionary.to_pylist()], bool)
        filter = np.repeat(np.arange(len(names)), names.value_lengths().fill_null(0).to_numpy())
        found = np.zeros(len(names), bool)
        found[filter[is_residual[flat.indices.to_numpy()]]] = True
        return found


def without_keys(keys: pa.ListArray, filters: Ints) -> pa.ListArray:
    """The keys, NULL for these filters."""
    if not filters.any():
        return keys
    place = np.arange(len(keys))
    return keys.take(pa.array(place, mask=filters))
