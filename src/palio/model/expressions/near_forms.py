"""Syntax of other databases that sqlglot reads and predicates do not have: what to write instead.

One line for each node of its tree; what only depends on a word or a character is in `syntax_errors`, and
functions are in `refusals`.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from palio.model.expressions.refusals import IN_JSON, PLAIN_STRING, QUANTIFIED
from palio.model.expressions.words import FUNCTION_WORDS, called

_IN_JSON = f"-> {IN_JSON}"
_BYTES = (
    "bytes are compared as text: hex(b) = 'FF'; palio.spark.compile and palio.spark.forward take X'FF', "
    "for wide columns"
)
_NEAR: dict[type[Any], str] = {
    exp.Any: QUANTIFIED,
    exp.All: QUANTIFIED,
    exp.HexString: _BYTES,
    exp.National: PLAIN_STRING,
    exp.BitString: PLAIN_STRING,
    exp.ByteString: PLAIN_STRING,
    exp.UnicodeString: PLAIN_STRING,
    exp.Introducer: PLAIN_STRING,
    exp.JSONExtract: _IN_JSON,
    exp.JSONExtractScalar: _IN_JSON,
    exp.JSONBExtract: _IN_JSON,
    exp.JSONBExtractScalar: _IN_JSON,
    exp.SimilarTo: "SIMILAR TO is of other databases; write name RLIKE '^(a|b)c*$', or LIKE",
    exp.Glob: "GLOB is of other databases; write name LIKE 'a%'",
    exp.RegexpILike: "~* is of other databases; write name RLIKE '(?i)a'",
    exp.AtTimeZone: "AT TIME ZONE is of other databases; write from_utc_timestamp(at, 'Europe/Rome')",
    exp.Tuple: (
        "a list stands behind IN, or is compared by = or != with another one: (a, b) = (1, 2); write "
        "a < 1 OR (a = 1 AND b < 2) for an order"
    ),
}
_ELEMENT = (
    "IN takes a list in parentheses, x IN (1, 2); array_contains(tags, 'x') asks for an element"
)
_SYMMETRIC = "SYMMETRIC is of other databases; write x BETWEEN least(a, b) AND greatest(a, b)"
_SCHEMAS = frozenset({"builtin", "system.builtin"})
_NAME_MAX = 60


def near_form(node: Any) -> str:
    """What to write instead of a node; empty: nothing is known of it."""
    if isinstance(node, exp.In) and node.args.get("field"):
        return _ELEMENT
    if isinstance(node, exp.Between) and node.args.get("symmetric"):
        return _SYMMETRIC
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous):
        return _method(node)
    return _NEAR.get(type(node), "")


def _method(node: Any) -> str:
    """x.startswith('a')"""
    word = called(str(node.expression.this)).lower()
    before = node.this.sql(dialect="spark")
    if word.upper() not in FUNCTION_WORDS or before.lower() in _SCHEMAS:
        return ""
    subject = before if len(before) <= _NAME_MAX and before.isidentifier() else "x"
    more = ", ..." if node.expression.expressions else ""
    return f"there are no methods; write {word}({subject}{more})"
