"""Compiling predicates with expressions: what becomes an attribute of the table, and what a residual.

    lower(name) = 'ann'            one expression, many filters      shared: an attribute of the table
    array_contains(tags, 'x')      its elements ask for it           a member: an attribute too
    abs(lat - 45.3) < 0.1          other literals in every filter    a residual

A filter with residuals becomes an interface of its own, a candidate, behind those of the caller:
the inner engine finds it by its other constraints and by what its residuals imply, and then its
residuals are judged (`engine`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from palio.errors import InvalidPredicate
from palio.matching.computed.engine import ComputedEngine
from palio.matching.computed.hidden import HiddenFilters
from palio.matching.computed.implied import implied
from palio.matching.computed.shapes import Shape, shapes_of
from palio.matching.encode import codes
from palio.matching.encode.columns import ConstraintColumns, Ints, from_predicates
from palio.matching.encode.decoding import column_predicates
from palio.matching.encode.merging import filters_of, joined
from palio.matching.expressions import CHOICES, ExpressionUse
from palio.matching.pivot.engine import PivotEngine
from palio.matching.pivot.likelihood import Constraints, guess
from palio.model.expressions.foreign import is_foreign
from palio.model.expressions.names import attributes_of, canonical, is_computed
from palio.model.predicate import Constraint, Filter, Predicate

CompiledEngine: TypeAlias = PivotEngine | ComputedEngine

SHARED_CANDIDATES = 0.5
"""Candidates of a message that an expression with literals is expected to have, above which it becomes an
attribute of the table: computing it for every message costs about as much as judging so many."""
SHAPE_FEW = 8
"""Expressions of one shape that are all attributes, however few filters share each."""
_MEMBER_CHANCE = 0.02
"""That an array has an element that is asked for."""
_IMPLIED_CHANCE = 0.1
"""Of a filter that is found by nothing but what its residuals imply."""


def is_compiled(engine: Any) -> TypeGuard[CompiledEngine]:
    """Is it an engine that a file holds?"""
    return isinstance(engine, PivotEngine | ComputedEngine)


def compiled(
    columns: ConstraintColumns,
    sample: Any = None,
    *,
    expressions: str = "auto",
    foreign: bool = True,
    use: ExpressionUse | None = None,
) -> CompiledEngine:
    """The engine of these constraints; `expressions` says what becomes of those that have literals,
    `foreign` whether what only Spark computes may be among them. `use` is that of a version before."""
    use = use or ExpressionUse(expressions)
    if use.choice not in CHOICES:
        raise InvalidPredicate(f"no choice {use.choice!r}; there are {', '.join(CHOICES)}")
    if not any(map(is_computed, columns.names)):
        plain = PivotEngine.compile(columns, sample)
        plain.use = use
        return plain
    shapes = shapes_of(columns.names)
    for number, shape in shapes.items() if not foreign else ():
        if is_foreign(shape.expression):
            canonical(columns.names[number])  # says so
    is_residual = _residual_rows(columns, shapes, use.choice)
    inner, hidden = _split(columns, is_residual)
    inner = _with_names(inner, columns, shapes)
    made = ComputedEngine(PivotEngine.compile(inner), hidden, use)
    if sample is not None:
        made = ComputedEngine(PivotEngine.compile(inner, made.sampled(sample)), hidden, use)
    return made


def _residual_rows(columns: ConstraintColumns, shapes: dict[int, Shape], choice: str) -> Ints:
    """Which constraints are residuals."""
    numbers = np.array(list(shapes), np.int64)
    texts, which = np.unique([shape.text for shape in shapes.values()], return_inverse=True)
    varieties = np.bincount(which, minlength=len(texts))[which]
    candidates = _expected_candidates(columns, shapes)[numbers]
    rare = (varieties > SHAPE_FEW) & (candidates < SHARED_CANDIDATES)
    if choice != "auto":
        has_literals = np.array([bool(shape.literals) for shape in shapes.values()], bool)
        rare = has_literals & (choice == "residuals")
    rare &= ~np.array([is_foreign(shape.expression) for shape in shapes.values()], bool)
    is_member = np.array([shape.member is not None for shape in shapes.values()], bool)
    residual, member = np.zeros((2, len(columns.names)), bool)
    residual[numbers] = rare & ~is_member
    member[numbers] = is_member
    holds = (columns.op == codes.EQ) & (columns.domain == codes.BOOL) & (columns.key == 1)
    return np.asarray(residual[columns.name] | (member[columns.name] & ~holds))


def _expected_candidates(columns: ConstraintColumns, shapes: dict[int, Shape]) -> Ints:
    """For each name, how many filters that ask for it a message is expected to come near: those of
    which all constraints hold that stay in the table in any case."""
    stays = np.ones(len(columns.names), bool)
    stays[[number for number, shape in shapes.items() if shape.literals]] = False
    is_member = np.zeros(len(columns.names), bool)
    is_member[[number for number, shape in shapes.items() if shape.member is not None]] = True
    known = (stays | is_member)[columns.name]
    chance = np.where(known, guess(Constraints.of(columns)), 1.0)
    chance[is_member[columns.name]] = _MEMBER_CHANCE
    of_filter = np.full(columns.filters, 1.0)
    np.multiply.at(of_filter, columns.filter, chance)
    of_filter[np.bincount(columns.filter[known], minlength=columns.filters) == 0] = _IMPLIED_CHANCE
    weights = of_filter[columns.filter]
    return np.bincount(columns.name, weights=weights, minlength=len(columns.names))


def _split(
    columns: ConstraintColumns, is_residual: Ints
) -> tuple[ConstraintColumns, HiddenFilters | None]:
    """The columns of the inner engine, and the filters that have residuals."""
    if not is_residual.any():
        return columns, None
    is_hidden = np.zeros(columns.filters, bool)
    is_hidden[columns.filter[is_residual]] = True
    owners = np.arange(len(columns.interfaces))
    hidden = filters_of(columns, is_hidden, owners)
    rows = is_hidden[columns.filter]
    residual_rows = is_residual[rows]
    visible = filters_of(columns, ~is_hidden, owners)
    filters = _found_by(hidden, residual_rows)
    candidates = from_predicates((str(i), one) for i, one in zip(count(), filters, strict=False))
    interfaces = len(columns.interfaces)
    positions = np.arange(interfaces + hidden.filters, dtype=np.int64)
    inner = joined(
        [(visible, positions[:interfaces]), (candidates, positions[interfaces:])],
        positions,
        range(len(positions)),
    )
    return inner, HiddenFilters(hidden, residual_rows)


def _found_by(hidden: ConstraintColumns, residual_rows: Ints) -> Sequence[Predicate]:
    """For each hidden filter, what the inner engine looks for."""
    alone = replace(
        hidden,
        owner=np.arange(hidden.filters, dtype=np.int32),
        interfaces=range(hidden.filters),  # type: ignore[arg-type]
    )
    begin = np.searchsorted(hidden.filter, np.arange(hidden.filters + 1))
    found = []
    for i, predicate in enumerate(column_predicates(alone)):
        own: list[Constraint] = []
        flags = residual_rows[begin[i] : begin[i + 1]].tolist()
        for constraint, is_residual in zip(predicate.filters[0], flags, strict=True):
            own += implied(constraint) if is_residual else [constraint]
        found.append(Predicate((Filter(tuple(dict.fromkeys(own))),)))
    return found


def _with_names(
    inner: ConstraintColumns, given: ConstraintColumns, shapes: dict[int, Shape]
) -> ConstraintColumns:
    """The inner columns, whose names include the attributes that expressions read, and those given
    names that no constraint asks for: messages are read with them."""
    read = {name for shape in shapes.values() for name in attributes_of(shape.expression)}
    unused = np.flatnonzero(np.bincount(given.name, minlength=len(given.names)) == 0)
    read.update(given.names[number] for number in unused.tolist())
    missing = sorted(read.difference(inner.names))
    return replace(inner, names=[*inner.names, *missing]) if missing else inner
