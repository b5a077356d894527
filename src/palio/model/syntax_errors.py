"""What sqlglot refuses, said in terms of the text and of SQL.

Its own words are for whoever writes a parser: where it stopped is kept, and what stands there decides
what is said. Reserved words that are used as names are found before (reserved_words.py).
"""

from __future__ import annotations

import re

from palio.errors import ParseError
from palio.model.expressions.argument_counts import wrong_count
from palio.model.expressions.refusals import PLAIN_STRING
from palio.model.literals import origin


def not_sql(text: str) -> ParseError:
    return ParseError("this is not a SQL expression", text, 0)


def syntax_error(text: str, shape: str, error: Exception) -> ParseError:
    """Where sqlglot stopped, in terms of the text."""
    details = getattr(error, "errors", None) or [{}]
    detail = details[0]
    line, column = detail.get("line"), detail.get("col")
    if not isinstance(line, int) or not isinstance(column, int):
        return not_sql(text)
    highlight = str(detail.get("highlight") or "")
    starts = [0, *(found.end() for found in re.finditer("\n", f"({shape}\n)"))]
    offset = starts[min(line, len(starts)) - 1] + column - len(highlight) - 1
    if lonely := _OPERATOR_FIRST.match(shape):
        return ParseError(f"{lonely[1]} lacks an operand", text, origin(text, lonely.start(1)))
    if (reversed_sign := shape.find("=<")) >= 0:
        offset = reversed_sign
    if prefixed := _PREFIXED.search(shape):
        return ParseError(PLAIN_STRING, text, origin(text, prefixed.start()))
    if operator := _foreign_operator(shape):
        reason, at = operator
        return ParseError(reason, text, origin(text, at))
    if offset >= len(shape.rstrip()) and not wrong_count(shape):
        return ParseError("the expression ends too early", text, len(text.rstrip()))
    offset = max(0, offset)
    if wrong := wrong_count(shape):
        return ParseError(wrong[0], text, origin(text, wrong[1]))
    reason = _of_place(shape, offset) or _of_reason(str(detail.get("description") or ""))
    return ParseError(reason, text, origin(text, offset))


_PREFIXED = re.compile(r"(?<![\w`'])(?:[bBeEnN]|_\w+)'[0-9]+'")
_CHARACTERS = {
    "?": "a predicate has no parameters: write the literal, x = 5",
    ":": "a predicate has no parameters: write the literal, x = 5",
    "$": "a predicate has no parameters: write the literal, x = 5",
    "@": "array_contains(tags, 'x') asks for an element of an array",
    "{": "write the literal, or m['k'] = 5 for the key of a map",
}


def no_meaning(character: str) -> str:
    """What is said of a character that predicates do not have."""
    near = _CHARACTERS.get(character)
    return f"{character} has no meaning here" + (f"; {near}" if near else "")


_OPERATORS = {
    "**": "power(x, 2)", "===": "x = 5", "!~": "NOT (name RLIKE '^a')", "MOD": "x % 3 or mod(x, 3)",
    "MATCHES": "name RLIKE '^a'", "STARTS": "startswith(name, 'a')", "ENDS": "endswith(name, 'a')",
    "CONTAINS": "contains(name, 'a'), or array_contains(tags, 'x')", "HAS": "array_contains(tags, 'x')",
    "STARTSWITH": "startswith(name, 'a')", "ENDSWITH": "endswith(name, 'a')",
}  # fmt: skip
_FOREIGN_OPERATOR = re.compile(
    r"`(?:[^`]|``)*`|(\*\*|===|!~)|(?<=[\w)\]'`])\s+"
    r"(MOD|MATCHES|STARTS\s+WITH|ENDS\s+WITH|CONTAINS|HAS|STARTSWITH|ENDSWITH)\s+(?=[\w'(`])",
    re.IGNORECASE,
)


def _foreign_operator(shape: str) -> tuple[str, int] | None:
    """The first operator of another language, of a shape that cannot be read."""
    for found in _FOREIGN_OPERATOR.finditer(shape):
        if found[1] or found[2]:
            group = 1 if found[1] else 2
            shown = " ".join(found[group].split())
            near = _OPERATORS[shown.upper().split()[0]]
            return f"{shown} is of other languages; write {near}", found.start(group)
    return None


_OPERATOR_FIRST = re.compile(r"\s*(AND\b|OR\b|[=<>]+)", re.IGNORECASE)
_WORD = re.compile(r"&&|=[<>]|\w+|\S")
_BEGINNINGS = frozenset({"WHERE", "HAVING", "QUALIFY", "FROM", "ON"})
_CLAUSES = frozenset(
    "SELECT FROM WHERE GROUP ORDER HAVING LIMIT OFFSET QUALIFY SORT UNION WINDOW JOIN ON".split()
)
_INSTEAD = {
    "&&": "write AND",
    "~": "a regular expression is asked for by RLIKE",
    "!": "write != or NOT",
    "=>": "write >=",
    "=<": "write <=",
}


def _of_place(shape: str, offset: int) -> str:
    """What is said of what stands there."""
    found = _WORD.search(shape, offset)
    first = _WORD.search(shape)
    if first is not None and first[0].upper() in _BEGINNINGS:
        return f"a predicate is what stands behind WHERE; leave {first[0]} out"
    if found is None:
        return ""
    if found[0].upper() in _CLAUSES:
        return f"{found[0]} has no meaning here: a predicate is a condition, as behind WHERE, and nothing else"
    if instead := _INSTEAD.get(found[0]):
        return f"{found[0]} has no meaning here; {instead}"
    return ""


_LACKS = re.compile(r"Required keyword: .* missing for .*\.(\w+)'>")
_SHOWN = {
    "EQ": "=", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "Like": "LIKE", "And": "AND",
    "ILike": "ILIKE", "RegexpLike": "RLIKE", "Between": "BETWEEN", "In": "IN", "Or": "OR", "Not": "NOT",
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "IntDiv": "DIV", "Neg": "-", "Case": "CASE",
}  # fmt: skip
"""Operators by sqlglot's names."""


_TYPES = "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, TIMESTAMP, DATE"


def _of_reason(description: str) -> str:
    reason = description.strip().rstrip(".")
    if lacking := _LACKS.match(reason):
        return f"{_SHOWN.get(lacking[1], 'an operator')} lacks an operand"
    if reason.startswith("The number of provided arguments"):
        return "the function has too many arguments"
    if reason.lower().startswith("expected type"):
        return f"no such type; there are {_TYPES}"
    if reason.startswith("Expected END"):
        return "CASE takes WHEN ... THEN ... END"
    if reason.startswith("Expecting )"):
        return "an operator, such as AND, or the end is expected here"
    return "this cannot be read"
