"""How many arguments functions take, for errors: the parser only says that something is missing or too much."""

from __future__ import annotations

import re

from palio.model.expressions.functions import FUNCTIONS
from palio.model.expressions.table.entry import MANY
from palio.model.expressions.words import FUNCTION_OF_WORD

_FORMS = {
    "COALESCE": (1, MANY), "NVL": (2, 2), "NVL2": (3, 3), "IFNULL": (2, 2), "IF": (2, 3), "IFF": (2, 3),
    "ISNULL": (1, 1), "ISNOTNULL": (1, 1), "ZEROIFNULL": (1, 1), "NULLIFZERO": (1, 1), "TYPEOF": (1, 1),
}  # fmt: skip
_WITH_FORMAT = frozenset({"TO_TIMESTAMP", "TO_DATE"})
_TOKEN = re.compile(r"`(?:[^`]|``)*`|\b([A-Za-z]\w*)\s*+\(|[()\[\],]|[^\s`()\[\],]+")
_OWN_GRAMMAR = re.compile(r"\b(FROM|FOR|IN|AS)\b", re.IGNORECASE)


def counted(least: int, most: int) -> str:
    """How many arguments these bounds allow.

    >>> counted(1, 1), counted(1, 2), counted(2, 4), counted(2, MANY)
    ('1 argument', '1 or 2 arguments', '2 to 4 arguments', '2 or more arguments (at most 1,000)')
    """
    if least == most:
        return f"{least} argument{'s' * (least != 1)}"
    if most >= MANY:
        return f"{least} or more arguments (at most {MANY:,})"
    return f"{least} {'or' if most == least + 1 else 'to'} {most} arguments"


def wrong_count(shape: str) -> tuple[str, int] | None:
    """The first call that has too many or too few arguments: what is said of it, and where it begins."""
    calls: list[tuple[str, int, int, int]] = []  # word, where, commas, tokens
    wrong: list[tuple[int, str]] = []
    for found in _TOKEN.finditer(shape):
        token, at = found[0], found.start()
        if token[-1] in "([" and token[0] != "`":
            if calls:
                calls[-1] = _with_token(calls[-1])
            calls.append((found[1] or "", at, 0, 0))
        elif not calls:
            continue
        elif token in (")", "]"):
            word, begin, commas, tokens = calls.pop()
            said = _said(word, commas + 1 if tokens else 0, shape[begin:at])
            if said:
                wrong.append((begin, said))
        elif token == ",":
            word, begin, commas, tokens = calls[-1]
            calls[-1] = word, begin, commas + 1, tokens
        else:
            calls[-1] = _with_token(calls[-1])
    return min(wrong)[::-1] if wrong else None


def _with_token(call: tuple[str, int, int, int]) -> tuple[str, int, int, int]:
    return (*call[:3], call[3] + 1)


def _said(word: str, given: int, text: str) -> str:
    name = word.upper()
    known = FUNCTIONS.get(FUNCTION_OF_WORD.get(name, ""))
    if known is None and name not in _FORMS:
        return ""
    if name in _WITH_FORMAT and given == 2:
        return (
            f"{word.lower()} with a format is computed by Spark only; elsewhere it takes a text such as "
            "'2024-03-01 10:00:00'"
        )
    least, most = _FORMS[name] if known is None else (known.least, known.most)
    if least <= given <= most or most >= MANY <= given or _OWN_GRAMMAR.search(text):
        return ""
    return f"{word.lower()} takes {counted(least, most)}, not {given}"
