"""A measured value, as whoever measures it gives it and metrics.py writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple


class Measure(NamedTuple):
    name: str
    kind: Literal["counter", "gauge"]
    help: str
    labels: Mapping[str, str]
    value: float
