"""Filters with residuals as the arrays of a file, and back.

hidden.filter name op domain key residual      one item for each constraint
hidden.owner                                   one for each filter
hidden.set_at set_split set_keys               members of sets
hidden_names, hidden_strings                   texts
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from palio.matching.computed.hidden import HiddenFilters
from palio.matching.encode.columns import ConstraintColumns, Ints, Sets
from palio.matching.file.packing import packed

_COLUMNS = ("filter", "name", "op", "domain", "key", "owner")


def arrays_of(hidden: HiddenFilters) -> dict[str, Ints]:
    """The arrays, by their names in a file."""
    columns = hidden.columns
    return {
        **{f"hidden.{field}": getattr(columns, field) for field in _COLUMNS},
        "hidden.residual": hidden.is_residual.astype(np.uint8),
        "hidden.set_at": columns.sets.start,
        "hidden.set_split": columns.sets.split,
        "hidden.set_keys": columns.sets.keys,
        **packed("hidden_names", columns.names),
        **packed("hidden_strings", columns.strings),
    }


def hidden_of(arrays: Mapping[str, Ints], names: list[str], strings: list[bytes]) -> HiddenFilters:
    """The filters of sound arrays."""
    columns = ConstraintColumns(
        **{field: arrays[f"hidden.{field}"] for field in _COLUMNS},
        sets=Sets(*(arrays[f"hidden.{field}"] for field in ("set_at", "set_split", "set_keys"))),
        names=names,
        strings=strings,
        interfaces=(),
    )
    return HiddenFilters(columns, arrays["hidden.residual"].astype(bool))
