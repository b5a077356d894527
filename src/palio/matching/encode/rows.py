"""Arrow rows as encoded messages, wherever their attributes lie."""

from __future__ import annotations

from typing import Any

from palio.matching.encode.arrays import EncodedMessages
from palio.matching.encode.arrow_messages import encode_attributes, encode_map, encode_wide
from palio.matching.encode.json_messages import encode_json
from palio.matching.encode.names import NameIndex


def encode_rows(names: NameIndex, rows: Any, layout: str, column: str) -> EncodedMessages:
    """Arrow rows for the kernels: wide, or one column of JSON, maps or attribute lists."""
    if layout in ("wide", "computed"):
        return encode_wide(names.names, rows)
    values = rows.column(column)
    if layout == "json":
        return encode_json(names, values)
    return (encode_map if layout == "map" else encode_attributes)(names.names, values)
