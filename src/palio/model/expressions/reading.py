"""From sqlglot's tree to an expression, with slots where the text has literals.

A shape is parsed once; `filled` puts the literals of a text into its slots. What is not in the tables
below is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from sqlglot import exp

from palio.model.expressions.decimals import Exact
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.functions import FUNCTIONS
from palio.model.expressions.number_functions import Computed, IntLiteral
from palio.model.expressions.tree import AttributeOf, Call, Constant, Expression, Slot
from palio.model.literals import BadLiteral, Literal, read

_DECIMAL = re.compile(r"[0-9]*\.[0-9]*(?:[bB][dD])?|[0-9]+[bB][dD]")


class NotAnExpression(Exception):
    """A node that no expression has."""

    def __init__(self, node: Any, reason: str = "") -> None:
        super().__init__(reason)
        self.node, self.reason = node, reason


_Arguments: TypeAlias = tuple[str, ...]
_CALLS: dict[type, tuple[str, _Arguments]] = {
    exp.Add: ("add", ("this", "expression")),
    exp.Sub: ("subtract", ("this", "expression")),
    exp.Mul: ("multiply", ("this", "expression")),
    exp.Div: ("divide", ("this", "expression")),
    exp.Mod: ("mod", ("this", "expression")),
    exp.IntDiv: ("div", ("this", "expression")),
    exp.Neg: ("negative", ("this",)),
    exp.Abs: ("abs", ("this",)),
    exp.Round: ("round", ("this", "decimals")),
    exp.Floor: ("floor", ("this",)),
    exp.Ceil: ("ceil", ("this",)),
    exp.Pow: ("power", ("this", "expression")),
    exp.Sqrt: ("sqrt", ("this",)),
    exp.Sign: ("sign", ("this",)),
    exp.Nullif: ("nullif", ("this", "expression")),
    exp.EQ: ("equal", ("this", "expression")),
    exp.NEQ: ("not_equal", ("this", "expression")),
    exp.LT: ("less", ("this", "expression")),
    exp.LTE: ("less_or_equal", ("this", "expression")),
    exp.GT: ("greater", ("this", "expression")),
    exp.GTE: ("greater_or_equal", ("this", "expression")),
    exp.NullSafeEQ: ("same", ("this", "expression")),
    exp.Lower: ("lower", ("this",)),
    exp.Upper: ("upper", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.Left: ("left", ("this", "expression")),
    exp.Right: ("right", ("this", "expression")),
    exp.DPipe: ("concat", ("this", "expression")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.SplitPart: ("split_part", ("this", "delimiter", "part_index")),
    exp.StrPosition: ("locate", ("substr", "this", "position")),
    exp.StartsWith: ("startswith", ("this", "expression")),
    exp.EndsWith: ("endswith", ("this", "expression")),
    exp.Contains: ("contains", ("this", "expression")),
    exp.Year: ("year", ("this",)),
    exp.Quarter: ("quarter", ("this",)),
    exp.Month: ("month", ("this",)),
    exp.Day: ("day", ("this",)),
    exp.DayOfMonth: ("day", ("this",)),
    exp.Hour: ("hour", ("this",)),
    exp.Minute: ("minute", ("this",)),
    exp.Second: ("second", ("this",)),
    exp.DayOfWeek: ("dayofweek", ("this",)),
    exp.DayOfYear: ("dayofyear", ("this",)),
    exp.WeekOfYear: ("weekofyear", ("this",)),
    exp.TsOrDsToDate: ("to_date", ("this",)),
    exp.DateDiff: ("datediff", ("this", "expression")),
    exp.And: ("and", ("this", "expression")),
    exp.Or: ("or", ("this", "expression")),
    exp.Not: ("not", ("this",)),
}
_NAMED = {"btrim": "trim", "weekday": "weekday", "negative": "negative", "signum": "sign"}
"""Functions that sqlglot has no class for."""
_OF_DATES = (
    exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear,
    exp.WeekOfYear, exp.DateDiff,
)  # fmt: skip
"""Whose arguments sqlglot wraps into a conversion."""
_IGNORED = frozenset({"safe", "_type", "ignore_nulls", "coalesce"})
"""Arguments of nodes that say what Spark does anyway."""
_CASTS = {
    "TEXT": "STRING",
    "VARCHAR": "STRING",
    "TIMESTAMPTZ": "TIMESTAMP",
    "TIMESTAMPLTZ": "TIMESTAMP",
}


def read_expression(node: Any, name_of: Callable[[Any], str | None]) -> Expression:
    """The expression of a node; `name_of` says which attribute a node names."""
    return _Reader(name_of).read(node)


class _Reader:
    def __init__(self, name_of: Callable[[Any], str | None]) -> None:
        self._name_of = name_of

    def read(self, node: Any) -> Expression:
        kind = type(node)
        if kind is exp.Paren:
            return self.read(node.this)
        if kind is exp.Literal:
            return Slot(_slot(node))
        if kind is exp.Null:
            return Constant(None)
        if kind is exp.Boolean:
            return Constant(bool(node.this))
        name = self._name_of(node)
        if name is not None:
            return AttributeOf(name)
        if kind in _CALLS:
            return self._call(node, *_CALLS[kind])
        visit = _VISITS.get(kind)
        if visit is None:
            raise NotAnExpression(node)
        return visit(self, node)

    def _call(self, node: Any, function: str, keys: _Arguments) -> Expression:
        extra = [key for key, value in node.args.items() if value and key not in keys]
        if any(key not in _IGNORED for key in extra):
            raise NotAnExpression(node)
        found = [node.args.get(key) for key in keys]
        if isinstance(node, _OF_DATES):
            found = [_unwrapped(one) for one in found]
        return self._called(node, function, [one for one in found if one is not None])

    def _called(self, node: Any, function: str, nodes: list[Any]) -> Expression:
        known = FUNCTIONS.get(function)
        if known is not None and not known.least <= len(nodes) <= known.most:
            needs = f"{known.least}" if known.least == known.most else f"{known.least} or more"
            raise NotAnExpression(node, f"{function} takes {needs} arguments, not {len(nodes)}")
        return Call(function, tuple(self.read(one) for one in nodes))

    def listed(self, node: Any) -> Expression:
        """this, and more in expressions."""
        function = {exp.Coalesce: "coalesce", exp.Least: "least", exp.Greatest: "greatest"}[
            type(node)
        ]
        return self._called(node, function, [node.this, *node.expressions])

    def concat(self, node: Any) -> Expression:
        return self._called(node, "concat", node.expressions)

    def trim(self, node: Any) -> Expression:
        function = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
            node.args.get("position") or "", "trim"
        )
        characters = node.args.get("expression")
        return self._called(node, function, [node.this, *([characters] if characters else [])])

    def if_(self, node: Any) -> Expression:
        otherwise = node.args.get("false") or exp.Null()
        return Call("case", tuple(map(self.read, (node.this, node.args["true"], otherwise))))

    def case(self, node: Any) -> Expression:
        parts: list[Expression] = []
        compared = self.read(node.this) if node.this else None
        for branch in node.args["ifs"]:
            condition = self.read(branch.this)
            if compared is not None:
                condition = Call("equal", (compared, condition))
            parts += [condition, self.read(branch.args["true"])]
        default = node.args.get("default")
        return Call("case", (*parts, self.read(default) if default else Constant(None)))

    def is_null(self, node: Any) -> Expression:
        if isinstance(node.expression, exp.Null):
            return Call("is null", (self.read(node.this),))
        return Call("same", (self.read(node.this), self.read(node.expression)))

    def nvl2(self, node: Any) -> Expression:
        absent = Call("is null", (self.read(node.this),))
        otherwise = node.args.get("false") or exp.Null()
        return Call("case", (absent, self.read(otherwise), self.read(node.args["true"])))

    def cast(self, node: Any) -> Expression:
        wanted = node.args["to"].this.name
        function = f"cast as {_CASTS.get(wanted, wanted)}"
        if function not in FUNCTIONS:
            raise NotAnExpression(node, f"there is no CAST to {wanted}")
        return Call(function, (self.read(node.this),))

    def trunc(self, node: Any) -> Expression:
        unit = node.args["unit"].name  # of the shape: the slot of a literal
        if not unit.isdigit():
            raise NotAnExpression(node)
        return Call("date_trunc", (Slot(int(unit)), self.read(node.this)))

    def named(self, node: Any) -> Expression:
        name = str(node.this).lower()
        if name == "isnull" and len(node.expressions) == 1:
            return Call("is null", (self.read(node.expressions[0]),))
        if name == "isnotnull" and len(node.expressions) == 1:
            return Call("not", (Call("is null", (self.read(node.expressions[0]),)),))
        if name not in _NAMED:
            raise NotAnExpression(node)
        return self._called(node, _NAMED[name], node.expressions)


_VISITS: dict[type, Callable[[_Reader, Any], Expression]] = {
    exp.Coalesce: _Reader.listed,
    exp.Least: _Reader.listed,
    exp.Greatest: _Reader.listed,
    exp.Concat: _Reader.concat,
    exp.Trim: _Reader.trim,
    exp.If: _Reader.if_,
    exp.Case: _Reader.case,
    exp.Is: _Reader.is_null,
    exp.Nvl2: _Reader.nvl2,
    exp.Cast: _Reader.cast,
    exp.TryCast: _Reader.cast,
    exp.TimestampTrunc: _Reader.trunc,
    exp.Anonymous: _Reader.named,
}


def _unwrapped(node: Any) -> Any:
    return node.this if isinstance(node, exp.TsOrDsToDate) else node


def _slot(node: Any) -> int:
    text = node.this
    if text.isascii() and text.isdigit():
        return int(text)
    raise NotAnExpression(node, "this cannot be read")


def filled(expression: Expression, literals: list[Literal]) -> Expression:
    """The expression with the literals of a text."""
    if isinstance(expression, Slot):
        return Constant(_value(literals[expression.number], expression.number))
    if isinstance(expression, Call):
        return Call(
            expression.function, tuple(filled(part, literals) for part in expression.arguments)
        )
    return expression


def _value(token: Literal, slot: int) -> Computed:
    if not isinstance(token, str):
        raise BadLiteral("a list stands only behind IN", slot)
    if _DECIMAL.fullmatch(token):
        try:
            return Exact.of_text(token.rstrip("bBdD"))
        except ExpressionError as error:
            raise BadLiteral(str(error), slot) from None
    found = read(token)
    return IntLiteral(found) if type(found) is int else found


def first_slot(expression: Expression) -> int:
    """The first literal of an expression; -1: it has none."""
    if isinstance(expression, Slot):
        return expression.number
    if isinstance(expression, Call):
        return next((slot for part in expression.arguments if (slot := first_slot(part)) >= 0), -1)
    return -1


def has_attributes(expression: Expression) -> bool:
    if isinstance(expression, Call):
        return any(map(has_attributes, expression.arguments))
    return isinstance(expression, AttributeOf)
