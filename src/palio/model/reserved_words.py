"""A reserved word that stands where a name is meant: `from = 'a'` is read if it is in backticks."""

from __future__ import annotations

import re
from collections.abc import Callable

from palio.model.sql_text import RESERVED

_SHAPE_MAX = 2_000
_WORDS_MAX = 8
"""Distinct ones that are tried: each is a text to parse."""
_JUNCTIONS = frozenset(("AND", "OR", "NOT", "XOR", "IN", "IS", "LIKE", "BETWEEN", "NULL"))
_BEFORE_OPERATOR = re.compile(
    r"(`(?:[^`]|``)*`|'[0-9]+')|\b([A-Za-z_]\w*)"
    r"(?=\s*(?:[=<>!+*/%-]|(?:IN|IS|NOT|LIKE|ILIKE|RLIKE|BETWEEN)\b))",
    re.IGNORECASE,
)


def reserved_name(shape: str, is_read: Callable[[str], bool]) -> tuple[str, int] | None:
    """The first reserved word, and where it stands, of a shape that would be read with it as a name."""
    if len(shape) > _SHAPE_MAX:
        return None
    first: dict[str, tuple[str, int]] = {}
    for found in _BEFORE_OPERATOR.finditer(shape):
        if found[2] and found[2].upper() in RESERVED:
            first.setdefault(found[2].upper(), (found[2], found.start()))
    words = list(first)[:_WORDS_MAX]
    together = [word for word in words if word not in _JUNCTIONS]
    for chosen in (*([word] for word in words), together):
        if chosen and is_read(_quoted(shape, frozenset(chosen))):
            return first[chosen[0]]
    return None


def _quoted(shape: str, words: frozenset[str]) -> str:
    def quote(found: re.Match[str]) -> str:
        return f"`{found[2]}`" if found[2] and found[2].upper() in words else found[0]

    return _BEFORE_OPERATOR.sub(quote, shape)
