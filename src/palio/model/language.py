"""The language: a SQL boolean expression becomes a predicate in disjunctive normal form.

    text --lift--> shape + literals --template (kept)--> predicate

Each shape is parsed once and kept; a text of a known shape costs a scan of its literals. Parsing
evaluates nothing, and every size is bounded: text, nesting, filters, constraints.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from palio.errors import InvalidPredicate, LimitExceeded, ParseError
from palio.model.literals import BadLiteral, Literal, lift, origin, slot_origin
from palio.model.predicate import Predicate

if TYPE_CHECKING:
    from palio.model.templates import Template

FILTERS_MAX = 4096
TEXT_MAX = 64_000_000  # characters of a predicate
SHAPE_MAX = 4_000_000  # characters without the literals
NESTING_MAX = 100
_KEPT_SHAPE_MAX = 20_000  # characters of a shape worth keeping
_KEPT_MAX = 400_000  # characters of all of them; a template takes about 100 bytes for each


class _Templates(dict[str, "Template"]):
    """Templates by shape; all go when they have become too large."""

    characters = 0

    def keep(self, shape: str, template: Template) -> None:
        if self.characters + len(shape) > _KEPT_MAX:
            self.clear()
            self.characters = 0
        self.characters += len(shape)
        self[shape] = template


_kept = _Templates()


def parse(
    text: str | Predicate, *, limit: int = FILTERS_MAX, shape_max: int = SHAPE_MAX
) -> Predicate:
    """Read a predicate written as a SQL boolean expression.

    `limit` bounds the number of filters of the normal form, `shape_max` the characters beside the
    literals. Raises ParseError, which points at the character, or its child LimitExceeded.

    >>> parse("dest = 'MXP' AND price < 500 OR airline LIKE 'U%'")
    Predicate(dest = 'MXP' AND price < 500 OR airline LIKE 'U%')
    >>> parse("NOT (price < 500 OR gate IS NULL)")
    Predicate(price >= 500 AND gate IS NOT NULL)
    """
    if isinstance(text, Predicate):
        return text
    if not isinstance(text, str):
        raise InvalidPredicate(f"a predicate is a string of SQL, not a {type(text).__name__}")
    if len(text) > TEXT_MAX:
        raise LimitExceeded(
            f"the predicate has {len(text):,} characters, the limit is {TEXT_MAX:,}"
        )
    if (ended := text.rstrip()).endswith(";"):
        text = ended[:-1]
    shape, literals = lift(text)
    template = _kept.get(shape)
    if template is None or len(template.filters) > limit:
        if len(shape) > shape_max:
            raise LimitExceeded(
                f"the predicate has {len(shape):,} characters beside its literals, "
                f"the limit is {shape_max:,}"
            )
        template = _template(text, shape, literals, limit)
    try:
        return template.fill(literals)
    except BadLiteral as error:
        raise ParseError(error.reason, text, slot_origin(text, error.slot)) from None


def _template(text: str, shape: str, literals: list[Literal], limit: int) -> Template:
    from sqlglot.errors import SqlglotError

    from palio.model.dnf import Explosion
    from palio.model.sql import template
    from palio.model.sql_nodes import Unsupported

    if not text.strip():
        raise ParseError("the predicate is empty; TRUE selects every message")
    _check_shape(text, shape)
    try:
        made = template(shape, literals, limit)
    except Unsupported as error:
        raise ParseError(error.reason, text, origin(text, error.position)) from None
    except BadLiteral as error:
        raise ParseError(error.reason, text, slot_origin(text, error.slot)) from None
    except Explosion as error:
        raise LimitExceeded(error.reason, text, origin(text, error.node.position)) from None
    except RecursionError:
        raise ParseError("the expression is nested too deeply", text) from None
    except SqlglotError as error:
        raise _syntax_error(text, shape, error) from None
    except Exception:  # whatever else sqlglot raises where it expects something else
        raise ParseError("this is not a SQL expression", text, 0) from None
    if made.reusable and len(shape) <= _KEPT_SHAPE_MAX:
        _kept.keep(shape, made)
    return made


_MARK = re.compile(
    r"`(?:[^`]|``)+`|'[0-9]+'|\b[^\W\d]\w*+\s*+\(|\|\||[^\w\s.,=<>!+*/%-]|\b(?:\w++\s*+<\s*+){4}"
)
_OPERATORS = (
    "AND OR XOR NOT IN IS LIKE ANY ALL SOME BETWEEN ESCAPE DIV CASE WHEN THEN ELSE FROM"
).split()
_FUNCTIONS = (
    "CAST TRY_CAST TYPEOF STARTSWITH ENDSWITH CONTAINS "
    "ABS ROUND FLOOR CEIL CEILING MOD POW POWER SQRT SIGN SIGNUM NEGATIVE LEAST GREATEST "
    "COALESCE NVL NVL2 IFNULL NULLIF IF ISNULL ISNOTNULL "
    "LOWER LCASE UPPER UCASE TRIM LTRIM RTRIM BTRIM LENGTH LEN CHAR_LENGTH CHARACTER_LENGTH SUBSTRING "
    "SUBSTR LEFT RIGHT CONCAT REPLACE SPLIT_PART LOCATE INSTR POSITION "
    "YEAR QUARTER MONTH DAY DAYOFMONTH HOUR MINUTE SECOND DAYOFWEEK WEEKDAY DAYOFYEAR WEEKOFYEAR "
    "TO_DATE DATEDIFF DATE_DIFF DATE_TRUNC"
).split()
_BEFORE_PARENTHESIS = frozenset([*_OPERATORS, *_FUNCTIONS])
"""The parser knows hundreds of other functions, and takes for ever when some of them are nested."""


def _check_shape(text: str, shape: str) -> None:
    """Refuse what would mislead the parser: unknown functions, strange characters, open quotes, deep
    nesting."""

    from palio.model.sql_nodes import SUPPORTED

    def fail(reason: str, at: int) -> NoReturn:
        raise ParseError(reason, text, origin(text, at))

    opened: list[int] = []
    for found in _MARK.finditer(shape):
        mark, at = found[0], found.start()
        if mark[-1] == "(":
            word = mark[:-1].rstrip()
            if word and word.upper() not in _BEFORE_PARENTHESIS:
                fail(f"the function {word} is not supported: {SUPPORTED}", at)
            opened.append(found.end() - 1)
            if len(opened) > NESTING_MAX:
                fail(f"parentheses are nested more than {NESTING_MAX} deep", at)
        elif mark == ")":
            if not opened:
                fail("this parenthesis closes nothing", at)
            opened.pop()
        elif mark in "'\"`":
            fail(f"this {mark} is not closed", at)
        elif mark[0] not in "'`" and mark != "||":
            fail("this cannot be read" if len(mark) > 1 else f"{mark} has no meaning here", at)
    if opened:
        fail("this parenthesis is not closed", opened[-1])


def _syntax_error(text: str, shape: str, error: Exception) -> ParseError:
    """Where sqlglot stopped, in terms of the text."""
    details = getattr(error, "errors", None) or [{}]
    detail = details[0]
    reason = str(detail.get("description") or "").strip().rstrip(".")
    highlight = str(detail.get("highlight") or "")
    line, column = detail.get("line"), detail.get("col")
    if not isinstance(line, int) or not isinstance(column, int):
        return ParseError("this is not a SQL expression", text, 0)
    starts = [0, *(found.end() for found in re.finditer("\n", f"({shape}\n)"))]
    offset = starts[min(line, len(starts)) - 1] + column - len(highlight) - 1
    if offset >= len(shape.rstrip()):
        return ParseError("the expression ends too early", text, len(text.rstrip()))
    if lacking := _LACKS.match(reason):
        reason = f"{_SHOWN.get(lacking[1], lacking[1].upper())} lacks an operand"
    elif reason.startswith("The number of provided arguments"):
        reason = "the function has too many arguments"
    elif not reason or reason.startswith("Invalid expression"):
        reason = "this cannot be read"
    return ParseError(reason, text, origin(text, max(0, offset)))


_LACKS = re.compile(r"Required keyword: .* missing for .*\.(\w+)'>")
_SHOWN = {"EQ": "=", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
