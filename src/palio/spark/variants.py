"""VARIANT columns as JSON that keeps their types.

    variant ──to_json──▶ text ────────────────────────────────────────┐
       └──only rows with types that JSON lacks──▶ decoded in Python ──┴──▶ the message

The engine's `to_json` writes instants, dates, NaN and infinities as strings, and a FLOAT by its
shortest digits: such values would never match, or match as texts. Rows that hold one are decoded in
Python and written in Palio's notation, `{"$time": ...}` and `{"$float": ...}`; all others stay in
the engine. Binary values and timestamps without a zone have no type here and stay strings.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from palio.model.values import format_instant
from palio.spark.arrow_functions import arrow_function

if TYPE_CHECKING:
    from pyspark.sql import Column

# As words of the schema; a name that looks like one costs time, and changes no answer.
_KINDS = r"\b(TIMESTAMP|DATE|FLOAT)\b"
_WORDS = r'"(NaN|-?Infinity)"'
_OUTSIDE = "a variant holds a date outside the years 1 to 9999"  # no JSON: so it is no message


def json_of(variant: Column) -> Column:
    """A column of JSON messages out of one of variants."""
    text = F.to_json(variant)
    typed = F.schema_of_variant(variant).rlike(_KINDS) | text.rlike(_WORDS)
    return F.coalesce(arrow_function(palio_variant, "string")(F.when(typed, variant)), text)


# ---- in the worker


def palio_variant(variants: pa.Array) -> pa.Array:
    """The JSON of each variant, which Arrow has as a struct of two binaries; NULL of NULL."""
    pairs = zip(
        variants.field("value").to_pylist(), variants.field("metadata").to_pylist(), strict=True
    )
    there = variants.is_valid().to_pylist()
    return pa.array(
        [written(*pair) if valid else None for pair, valid in zip(pairs, there, strict=True)],
        pa.string(),
    )


def written(value: bytes, metadata: bytes) -> str:
    """One variant as JSON."""
    from pyspark.sql.types import VariantVal

    try:
        return _written(VariantVal(value, metadata).toPython())
    except (OverflowError, ValueError):  # what Python's dates cannot hold
        return _OUTSIDE


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return _joined("{", (f"{json.dumps(k)}: {_written(v)}" for k, v in value.items()), "}")
    if isinstance(value, list):
        return _joined("[", map(_written, value), "]")
    if isinstance(value, Decimal):
        return str(value)  # all of its digits
    return json.dumps(_tagged(value), ensure_ascii=False)


def _joined(begin: str, parts: Iterable[str], end: str) -> str:
    return begin + ", ".join(parts) + end


def _tagged(value: Any) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return str(value)
        return {"$time": format_instant(value.astimezone(UTC))}
    if isinstance(value, date):
        return {"$time": format_instant(datetime(value.year, value.month, value.day, tzinfo=UTC))}
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value
