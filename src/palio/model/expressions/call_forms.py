"""Calls that are written with a word but are no line of the table, or have an order of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from sqlglot import exp

from palio.model.expressions.calendar_functions import MICROSECONDS, MONTHS
from palio.model.expressions.evaluation import OVER_ELEMENTS
from palio.model.expressions.node_forms import NodeReader, NotAnExpression
from palio.model.expressions.refusals import refusal
from palio.model.expressions.tree import Call, Constant, Expression
from palio.model.expressions.words import FUNCTION_OF_WORD, called

CallForm: TypeAlias = Callable[[NodeReader, Any, list[Any]], Expression]


def named(reader: NodeReader, node: Any) -> Expression:
    """A call of a function by its name."""
    word, given = called(str(node.this)).lower(), node.expressions
    if word in OVER_ELEMENTS:
        return reader.over_elements(node, word, given)
    form = _FORMS.get(word)
    if form is not None:
        count, write = form
        if len(given) in count:
            return write(reader, node, given)
    function = FUNCTION_OF_WORD.get(word.upper())
    if function is None:
        raise NotAnExpression(node, refusal(word), is_wrong=False)
    return reader.called(node, function, given)


def _is_null(reader: NodeReader, _node: Any, given: list[Any]) -> Expression:
    return Call("is null", (reader.read(given[0]),))


def _is_not_null(reader: NodeReader, node: Any, given: list[Any]) -> Expression:
    return Call("not", (_is_null(reader, node, given),))


def _iff(reader: NodeReader, _node: Any, given: list[Any]) -> Expression:
    return Call("case", tuple(map(reader.read, given)))


def _or_zero(reader: NodeReader, _node: Any, given: list[Any]) -> Expression:
    return Call("coalesce", (reader.read(given[0]), Constant(0)))


def _null_of_zero(reader: NodeReader, _node: Any, given: list[Any]) -> Expression:
    return Call("nullif", (reader.read(given[0]), Constant(0)))


def _swapped(reader: NodeReader, node: Any, given: list[Any]) -> Expression:
    """instr(text, wanted)"""
    return reader.called(node, "locate", given[::-1])


def _natural(reader: NodeReader, node: Any, given: list[Any]) -> Expression:
    return reader.called(node, "ln", given)


def _like(reader: NodeReader, node: Any, given: list[Any]) -> Expression:
    return reader.called(node, "like" if len(given) == 2 else "like escape", given)


def _at(function: str) -> CallForm:
    """element_at(tags, 1) and element_at(m, 'k')"""

    def form(reader: NodeReader, node: Any, given: list[Any]) -> Expression:
        key = given[1]
        is_key = isinstance(key, exp.Literal) and key.is_string
        return reader.called(node, "field" if is_key else function, given)

    return form


def _with_unit(function: str) -> CallForm:
    """timestampadd(HOUR, 1, at)"""

    def form(reader: NodeReader, node: Any, given: list[Any]) -> Expression:
        unit = given[0].name.upper() if isinstance(given[0], exp.Column | exp.Var) else ""
        if unit not in MICROSECONDS and unit not in MONTHS and unit != "DAYOFYEAR":
            known = ", ".join([*MICROSECONDS, *MONTHS])
            raise NotAnExpression(node, f"a unit stands first here: {known}")
        return Call(function, (Constant(unit), *map(reader.read, given[1:])))

    return form


_FORMS: dict[str, tuple[tuple[int, ...], CallForm]] = {
    "isnull": ((1,), _is_null),
    "isnotnull": ((1,), _is_not_null),
    "iff": ((3,), _iff),
    "zeroifnull": ((1,), _or_zero),
    "nullifzero": ((1,), _null_of_zero),
    "instr": ((2,), _swapped),
    "log": ((1,), _natural),
    "like": ((2, 3), _like),
    "element_at": ((2,), _at("element_at")),
    "try_element_at": ((2,), _at("try_element_at")),
    "timestampadd": ((3,), _with_unit("timestampadd")),
    "dateadd": ((3,), _with_unit("timestampadd")),
    "date_add": ((3,), _with_unit("timestampadd")),
    "timestampdiff": ((3,), _with_unit("timestampdiff")),
    "datediff": ((3,), _with_unit("timestampdiff")),
    "date_diff": ((3,), _with_unit("timestampdiff")),
}
"""By how many arguments there are."""
