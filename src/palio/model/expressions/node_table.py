"""What the nodes of sqlglot's tree are called here, and which of their arguments count, in order."""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlglot import exp

Arguments: TypeAlias = tuple[str, ...]
CALLS: dict[type[Any], tuple[str, Arguments]] = {
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
    exp.Between: ("between", ("this", "low", "high")),
    exp.RegexpLike: ("rlike", ("this", "expression")),
    exp.ArraySize: ("size", ("this",)),
    exp.IsArray: ("is_array", ("this",)),
    exp.ArrayContains: ("array_contains", ("this", "expression")),
    exp.ArrayPosition: ("array_position", ("this", "expression")),
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
    exp.BitwiseAnd: ("bit_and", ("this", "expression")),
    exp.BitwiseOr: ("bit_or", ("this", "expression")),
    exp.BitwiseXor: ("bit_xor", ("this", "expression")),
    exp.BitwiseNot: ("bit_not", ("this",)),
    exp.And: ("and", ("this", "expression")),
    exp.Or: ("or", ("this", "expression")),
    exp.Not: ("not", ("this",)),
}
OF_DATES = (
    exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear,
    exp.WeekOfYear, exp.DateDiff,
)  # fmt: skip
"""Whose arguments sqlglot wraps into a conversion."""
IGNORED = frozenset({"safe", "_type", "ignore_nulls", "coalesce"})
"""Arguments of nodes that say what Spark does anyway."""
CAST_TYPES = {
    "TEXT": "STRING",
    "VARCHAR": "STRING",
    "TIMESTAMPTZ": "TIMESTAMP",
    "TIMESTAMPLTZ": "TIMESTAMP",
}
_LOOSENESS: dict[type[Any], int] = {
    exp.BitwiseAnd: 1,
    exp.BitwiseXor: 2,
    exp.BitwiseOr: 3,
}
"""Of operators that Spark SQL binds differently, and sqlglot alike."""


def looseness(node: Any) -> int:
    return _LOOSENESS.get(type(node), 0)
