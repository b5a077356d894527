"""Any expression, by the Python evaluator, once for each distinct combination of what it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from palio.matching.computed.columns import ValueColumn, column_of, distinct_rows
from palio.matching.encode.columns import Ints
from palio.model.expressions.evaluation import evaluator
from palio.model.expressions.tree import AttributeOf, Constant, Expression, Slot


def inputs(expression: Expression) -> tuple[Expression, set[str], dict[str, int]]:
    """The expression with slots as attributes; the names of attributes, and slots by theirs."""
    names: set[str] = set()
    slots: dict[str, int] = {}

    def named(node: Any) -> Any:
        if isinstance(node, Slot):
            slots[f"\0{node.number}"] = node.number
            return AttributeOf(f"\0{node.number}")
        if isinstance(node, AttributeOf):
            names.add(node.name)
        elif isinstance(node, tuple):
            return tuple(map(named, node))
        elif is_dataclass(node) and not isinstance(node, Constant | type):
            parts = {field.name: named(getattr(node, field.name)) for field in fields(node)}
            return replace(node, **parts)
        return node

    return named(expression), names, slots


def row_by_row(
    expression: Expression, columns: Mapping[str, ValueColumn]
) -> tuple[ValueColumn, list[tuple[Ints, str]]]:
    """The values, one row where all columns are constants; and rows that fail, with reasons."""
    number, firsts = distinct_rows([*columns.values()])
    values = []
    for column in columns.values():
        own = column.among(firsts).values
        values.append(own * len(firsts) if len(column) == 1 else own)
    evaluate = evaluator(expression)
    results, reasons = [], []
    for position in range(len(firsts)):
        row = {
            name: value[position]
            for name, value in zip(columns, values, strict=True)
            if value[position] is not None
        }
        failures: list[str] = []
        results.append(evaluate(row, failures.append))
        reasons.append(failures)
    found = column_of(results)
    failed = []
    for turn in range(max(map(len, reasons))):
        is_bad = np.array([len(failures) > turn for failures in reasons])
        rows = np.flatnonzero(is_bad[number])
        failed.append((rows, reasons[int(number[rows[0]])][turn]))
    return (found if len(number) == 1 else found.take(number)), failed
