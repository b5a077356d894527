"""LIKE, in time that is linear in the text.

    LIKE 'a%b_c%'      pieces  a | b_c | (nothing)      the first and the last stand at the ends

Pieces without _ are found by the search of strings, others by RE2.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from palio.errors import InvalidPredicate
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.number_functions import Computed
from palio.model.expressions.regex_functions import REGEX_MAX, is_found
from palio.model.expressions.text_functions import text
from palio.model.like import ANY_TEXT, like_parts

LIKE_MAX = 10_000
"""Characters of a pattern of LIKE."""
_KEPT = 256

Piece: TypeAlias = tuple[str | None, ...]
"""Characters; None is any one."""


def like(value: Computed, pattern: Computed, escape: Computed = "\\") -> bool:
    found = text(value)
    pieces = like_pieces(text(pattern), text(escape))
    if len(pieces) == 1:
        return len(found) == len(pieces[0]) and _stands(found, 0, pieces[0])
    first, *middle, last = pieces
    begin, end = len(first), len(found) - len(last)
    if begin > end or not _stands(found, 0, first) or not _stands(found, end, last):
        return False
    wanted = ["".join(map(str, piece)) for piece in middle if None not in piece]
    if len(wanted) < len(middle):
        return is_found(found, like_as_regex(pieces))
    for piece in wanted:
        at = found.find(piece, begin, end)
        if at < 0:
            return False
        begin = at + len(piece)
    return True


def like_any(value: Computed | None, *patterns: Computed | None) -> bool | None:
    if value is None:
        return None
    found = [None if pattern is None else like(value, pattern) for pattern in patterns]
    return True if True in found else None if None in found else False


def like_all(value: Computed | None, *patterns: Computed | None) -> bool | None:
    if value is None:
        return None
    found = [None if pattern is None else like(value, pattern) for pattern in patterns]
    return False if False in found else None if None in found else True


@lru_cache(_KEPT)
def like_pieces(pattern: str, escape: str = "\\") -> list[Piece]:
    """What stands between the % of a pattern; % next to each other are one."""
    if len(pattern) > LIKE_MAX:
        raise ExpressionError(f"a pattern has up to {LIKE_MAX:,} characters")
    pieces: list[list[str | None]] = [[]]
    try:
        for char, is_wild in like_parts(pattern, escape):
            if is_wild and char == ANY_TEXT:
                pieces.append([])
            else:
                pieces[-1].append(None if is_wild else char)
    except InvalidPredicate as error:
        raise ExpressionError(error.detail) from None
    between = [piece for piece in pieces[1:-1] if piece]
    if len(pattern) > REGEX_MAX and any(None in piece for piece in between):
        raise ExpressionError(f"a pattern with _ between two % has up to {REGEX_MAX:,} characters")
    return [tuple(one) for one in (pieces[:1] + between + pieces[1:][-1:])]


def like_as_regex(pieces: list[Piece]) -> str:
    """An expression of RE2 that finds what the pattern matches."""
    parts = ("".join("." if char is None else _quoted(char) for char in piece) for piece in pieces)
    return rf"(?s)\A{'.*'.join(parts)}\z"


def _quoted(char: str) -> str:
    return char if not char.isascii() or char.isalnum() else f"\\x{ord(char):02x}"


def _stands(found: str, at: int, piece: Piece) -> bool:
    return all(char is None or found[at + i] == char for i, char in enumerate(piece))
