"""Shapes of texts: checked before sqlglot reads them, and what it refuses said in terms of the text.

    text --lift--> shape + literals        checked: words before parentheses, characters, nesting

sqlglot knows far more than the language, and takes very long for some of it: nothing reaches it
that is not checked here.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, NoReturn

from palio.errors import ParseError
from palio.model.expressions.refusals import IN_JSON, is_refused, refusal
from palio.model.expressions.words import FUNCTION_WORDS, SHOWN, hidden
from palio.model.literals import origin
from palio.model.reserved_words import reserved_name
from palio.model.syntax_errors import no_meaning, not_sql, syntax_error

NESTING_MAX = 100
BRACKETS_MAX = 4
"""Open at once: the parser reads what follows the name of a type twice, as a type and as an element."""
FOREIGN_SHAPE_MAX = 20_000
"""Characters beside the literals of a text that has functions which only Spark knows."""
SUPPORTED = (
    "a predicate compares attributes, and what is computed of them, by = != < <= > >= <=>, IN, BETWEEN, "
    "LIKE, RLIKE and IS [NOT] NULL, and joins such conditions with AND, OR, NOT"
)

UNREAD = "this literal has no meaning where it stands"


class Unsupported(Exception):
    """Something that the language does not have; `position` is an offset in the shape."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.reason, self.position = reason, position


def parsed(text: str, shape: str, *, foreign: bool = False) -> Any:
    """sqlglot's tree of a shape; ParseError points at the character of the text. With `foreign` it may have
    functions that only Spark knows."""
    from sqlglot.errors import SqlglotError

    shape = _LENGTH.sub(_without_length, shape)
    check_shape(text, shape, foreign=foreign)
    try:
        return _tree(shape, foreign)
    except RecursionError:
        raise ParseError("the expression is nested too deeply", text) from None
    except Exception as error:  # sqlglot raises others too, where it expects something else
        if found := reserved_name(shape, partial(_is_read, foreign)):
            word, at = found
            reason = f"{word} is a reserved word; as a name it takes backticks: `{word}`"
            raise ParseError(reason, text, origin(text, at)) from None
        if isinstance(error, SqlglotError):
            raise syntax_error(text, shape, error) from None
        raise not_sql(text) from None


_LENGTH = re.compile(
    r"`(?:[^`]|``)*`|(\bAS\s++|::\s*+)((?:VAR)?CHAR)\s*+\(\s*+([0-9]++)\s*+\)", re.IGNORECASE
)
"""Spark does not look at it: CAST(name AS VARCHAR(3)) is a STRING."""


def _without_length(found: re.Match[str]) -> str:
    return found[0] if found[1] is None else f"{found[1]}STRING".ljust(len(found[0]))


def lengths(shape: str) -> frozenset[int]:
    """The slots that are lengths of strings, which nothing reads."""
    return frozenset(int(found[3]) for found in _LENGTH.finditer(shape) if found[3])


def _tree(shape: str, foreign: bool) -> Any:
    import sqlglot
    from sqlglot import exp

    masked = hidden(shape, _WITH_SYNTAX if foreign else None)
    written = _XOR.sub(lambda found: found[0] if found[0][0] == "`" else ":= ", masked)
    # In parentheses no word at the start can be taken for a statement.
    return sqlglot.parse_one(f"({written}\n)", into=exp.Condition, dialect="spark")


def _is_read(foreign: bool, shape: str) -> bool:
    try:
        _tree(shape, foreign)
    except Exception:
        return False
    return True


_XOR = re.compile(r"`(?:[^`]|``)*`|\bXOR\b", re.IGNORECASE)
"""Spark SQL has none. The parser reads it as an assignment, which binds more loosely than OR; whoever
writes XOR beside OR is asked for parentheses."""
_MARK = re.compile(
    r"`(?:[^`]|``)+`|\b[xX]'[0-9A-Fa-f]*'|->>|->|'[0-9]+'|\b[^\W\d]\w*+\s*+\(|\|\||::|"
    r"(?!(?<=\w):[A-Za-z_])[^\w\s.,=<>!+*/%&|^~-]|\b(?:\w++\s*+<\s*+){4}"
)
_OPERATORS = (
    "AND OR XOR NOT IN IS LIKE ANY ALL SOME BETWEEN ESCAPE DIV CASE WHEN THEN ELSE FROM"
).split()
_BEFORE_PARENTHESIS = FUNCTION_WORDS | frozenset(_OPERATORS)
"""The parser knows hundreds of other functions, and takes for ever when some of them are nested."""
_WITH_SYNTAX = SHOWN | frozenset([*_OPERATORS, "DECIMAL", "DEC", "NUMERIC", "OVERLAY"])
"""What the parser may know of a text for Spark."""


def check_shape(text: str, shape: str, *, foreign: bool = False) -> None:
    """Refuse what would mislead the parser: unknown functions, strange characters, open quotes, deep
    nesting."""

    def fail(reason: str, at: int) -> NoReturn:
        raise ParseError(reason, text, origin(text, at))

    opened: list[tuple[str, int]] = []
    for found in _MARK.finditer(shape):
        mark, at = found[0], found.start()
        if mark[-1] in _CLOSES:
            word = mark[:-1].rstrip()
            if word and word.upper() not in _BEFORE_PARENTHESIS:
                if not foreign or is_refused(word):
                    fail(refusal(word), at)
                if len(shape) > FOREIGN_SHAPE_MAX:
                    fail(f"with {word} it has at most {FOREIGN_SHAPE_MAX:,} characters", at)
            opened.append((_CLOSES[mark[-1]], found.end() - 1))
            if len(opened) > NESTING_MAX:
                fail(f"parentheses are nested more than {NESTING_MAX} deep", at)
            if mark == "[" and _begins_operand(shape, at):
                fail("an array is written array(1, 2)", at)
            if mark == "[" and sum(closer == "]" for closer, _ in opened) > BRACKETS_MAX:
                fail(f"brackets are nested more than {BRACKETS_MAX} deep", at)
        elif mark in ")]":
            if not opened or opened[-1][0] != mark:
                fail(f"this {_CLOSERS[mark]} closes nothing", at)
            opened.pop()
        elif mark[:2] == "->":
            if mark == "->>" or not opened:  # in a call it is that of a lambda
                fail(f"{mark} {IN_JSON}", at)
        elif mark in "'\"`":
            fail(f"this {mark} is not closed", at)
        elif mark[-1] not in "'`" and mark not in _LONG_OPERATORS:
            fail("this cannot be read" if len(mark) > 1 else no_meaning(mark), at)
    if opened:
        closer, at = opened[-1]
        fail(f"this {_CLOSERS[closer]} is not closed", at)


_BEFORE = re.compile(r"(?:(\w+)|[`'\])])\s*\Z")
_BEFORE_MAX = 80  # characters that are looked at, spaces too


def _begins_operand(shape: str, at: int) -> bool:
    """Does an operand begin here? Else it is the index of one."""
    before = _BEFORE.search(shape, max(0, at - _BEFORE_MAX), at)
    if before is None:
        return True
    return bool(before[1]) and before[1].upper() in _BEFORE_OPERAND


_BEFORE_OPERAND = frozenset(_OPERATORS) - {"IN"}
_CLOSES = {"(": ")", "[": "]"}
_CLOSERS = {")": "parenthesis", "]": "bracket"}
_LONG_OPERATORS = ("||", "::")
