"""Engines as contestants: a call that forwards a list of messages which are encoded beforehand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from palio.matching.pivot.engine import PivotEngine
from palio.model.message import Message


def matcher(engine: Any, messages: list[Message]) -> Callable[[], Any]:
    """A call that matches all messages; the second array of its answer holds the matches."""
    if not hasattr(engine, "match_batch"):  # the naive engine has no encoding
        return lambda: engine.match(messages)
    batch = engine.encode(messages)
    if isinstance(engine, PivotEngine):
        return lambda: engine.match_batch(batch, ordered=False)
    return lambda: engine.match_batch(batch)
