"""A function of columns whose rows may be of any types.

The rows are grouped by the types of the arguments (mostly one group); a group goes to the vector function
for these types, and where there is none, each distinct combination of arguments to the Python function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from palio.matching.computed.columns import (
    ABSENT,
    MIXED,
    NULL,
    ValueColumn,
    column_of,
    distinct_rows,
    merged,
)
from palio.matching.computed.outcomes import Compute, Outcome, Vector
from palio.matching.computed.vector_casts import CAST_VECTORS
from palio.matching.computed.vector_comparisons import COMPARISON_VECTORS
from palio.matching.computed.vector_numbers import NUMBER_VECTORS
from palio.matching.computed.vector_texts import TEXT_VECTORS
from palio.matching.computed.vector_times import TIME_VECTORS
from palio.matching.encode.columns import Ints
from palio.model.expressions.errors import UNCOMPUTABLE
from palio.model.expressions.functions import Function

VECTORS: dict[Compute, Vector] = {
    **NUMBER_VECTORS,
    **COMPARISON_VECTORS,
    **TEXT_VECTORS,
    **TIME_VECTORS,
    **CAST_VECTORS,
}


class FailedCalls(NamedTuple):
    """The rows for which a function fails, None for all, and its arguments for the first of them."""

    rows: Ints | None
    arguments: Sequence[ValueColumn]


def called(
    function: Function, arguments: list[ValueColumn]
) -> tuple[ValueColumn, list[FailedCalls]]:
    """The values of a function, one row if all arguments are constants; and what failed."""
    kinds = [argument.kind for argument in arguments]
    if function.is_strict and ABSENT in kinds:
        return NULL, []
    failed: list[FailedCalls] = []
    if MIXED not in kinds:
        return _of_group(function, arguments, None, failed), failed
    pieces = []
    for group in _groups(function, arguments):
        own = [argument.among(group) for argument in arguments]
        pieces.append((group, _of_group(function, own, group, failed)))
    return merged(max(map(len, arguments)), pieces), failed


_GROUPS_MAX = 8
"""Of rows whose arguments have the same types; all further rows are one group of mixed types."""


def _groups(function: Function, arguments: list[ValueColumn]) -> list[Ints]:
    mixed = [argument.type for argument in arguments if argument.kind == MIXED]
    signature = mixed[0].astype(np.int64)
    for more in mixed[1:]:
        signature = signature * 256 + more if len(mixed) <= 7 else signature * 31 + more
    left = np.arange(len(signature))
    if function.is_strict:
        left = np.flatnonzero(np.logical_and.reduce([one != ABSENT for one in mixed]))
        signature = signature[left]
    groups: list[Ints] = []
    while len(left) and len(groups) < _GROUPS_MAX:
        own = signature == signature[0]
        groups.append(left[own])
        left, signature = left[~own], signature[~own]
    return [*groups, left] if len(left) else groups


def _of_group(
    function: Function,
    arguments: list[ValueColumn],
    group: Ints | None,
    failed: list[FailedCalls],
) -> ValueColumn:
    """A function of rows whose arguments are mostly of one type each."""
    quick = VECTORS.get(function.compute)
    outcome = None
    if quick is not None and all(argument.kind != MIXED for argument in arguments):
        outcome = quick(arguments)
    if outcome is None:
        outcome = _by_distinct_arguments(function, arguments)
    column = outcome.column
    if outcome.left is not None and outcome.left.any():
        column, outcome = _with_left(function, arguments, outcome)
    if outcome.bad is None or not outcome.bad.any():
        return column
    bad = np.flatnonzero(outcome.bad)
    first = [argument.among(bad[:1]) for argument in arguments]
    if len(column) == 1:
        failed.append(FailedCalls(group, first))
        return NULL
    failed.append(FailedCalls(bad if group is None else group[bad], first))
    type_ = column.type.copy()
    type_[bad] = ABSENT
    return ValueColumn(type_, column.raw, column.texts, column.decimals)


def _with_left(
    function: Function, arguments: list[ValueColumn], outcome: Outcome
) -> tuple[ValueColumn, Outcome]:
    """The rows that the vector function left, computed by the Python function."""
    assert outcome.left is not None
    count = len(outcome.column)
    left = np.flatnonzero(outcome.left)
    found = _by_distinct_arguments(function, [argument.among(left) for argument in arguments])
    bad = np.zeros(count, np.bool_) if outcome.bad is None else outcome.bad.copy()
    bad[left] = False if found.bad is None else found.bad
    column = merged(count, [(np.arange(count), outcome.column), (left, found.column)])
    return column, Outcome(column, bad)


def _by_distinct_arguments(function: Function, arguments: list[ValueColumn]) -> Outcome:
    """The Python function, called once for each combination of arguments."""
    number, firsts = distinct_rows(arguments)
    values: list[Any] = []
    for argument in arguments:
        found = argument.among(firsts).values
        values.append(found * len(firsts) if len(argument) == 1 else found)
    results: list[Any] = []
    bad = []
    compute_one, add = function.compute, results.append
    for position, combination in enumerate(zip(*values, strict=True) if values else [()]):
        try:
            add(compute_one(*combination))
        except UNCOMPUTABLE:
            add(None)
            bad.append(position)
    column = column_of(results)
    if len(number) == 1:
        return Outcome(column, np.ones(1, np.bool_) if bad else None)
    if not bad:
        return Outcome(column.take(number))
    is_bad = np.zeros(len(firsts), np.bool_)
    is_bad[bad] = True
    return Outcome(column.take(number), is_bad[number])


def reason_of(function: Function, arguments: Sequence[ValueColumn]) -> str:
    """Why a call fails."""
    try:
        function.compute(*(argument.values[0] for argument in arguments))
    except UNCOMPUTABLE as error:
        return f"{function.name}: {error}"
    return f"{function.name} has no value"
