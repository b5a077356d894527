"""The engines by name. They are loaded when they are asked for: kernels and numba take seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from palio.errors import InvalidPredicate
from palio.matching.encode.columns import ConstraintColumns
from palio.model.expressions.names import is_computed

if TYPE_CHECKING:
    from palio.matching.engine import Engine


def _pivot(columns: ConstraintColumns, sample: Any = None, **options: Any) -> Engine:
    from palio.matching.computed.compiling import compiled

    return compiled(columns, sample, **options)


def _counting(columns: ConstraintColumns, **options: Any) -> Engine:
    from palio.matching.counting.engine import CountingEngine

    computed = next(filter(is_computed, columns.names), None)
    if computed is not None:
        raise InvalidPredicate(
            f"the engine 'counting' computes no expressions, and one is {computed[1:]}",
            remedy="the engine pivot does",
        )
    return CountingEngine(columns, **options)


def _naive(columns: ConstraintColumns) -> Engine:
    from palio.matching.naive import NaiveEngine

    return NaiveEngine(columns)


ENGINES: dict[str, Callable[..., Engine]] = {
    "pivot": _pivot,
    "counting": _counting,
    "naive": _naive,
}
