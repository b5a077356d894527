"""Functions of strings by columns of bytes, where that is much quicker than a call for each distinct string.

Patterns of LIKE are read once a pool: literals of filters stay in theirs from batch to batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palio.matching.computed import string_kernels
from palio.matching.computed.columns import ValueColumn, distinct_rows
from palio.matching.computed.distinct import distinct_with_samples
from palio.matching.computed.outcomes import REFUSED, Compute, Outcome, Vector, of_bools
from palio.matching.computed.pools import StringPool
from palio.matching.encode.codes import STRING
from palio.matching.encode.columns import Ints
from palio.matching.encode.plain_arrays import int64_array, string_array
from palio.model.expressions import patterns, regex_functions
from palio.model.expressions import text_functions as texts
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.patterns import like_pieces
from palio.model.expressions.regex_functions import check_regex
from palio.model.expressions.text_functions import LENGTH_MAX

_FEW = 256
"""Distinct strings up to which Python's own functions are quick enough."""
_BYTES_MAX = 1 << 26
"""Of the strings that one call makes."""


def _are_strings(arguments: Sequence[ValueColumn]) -> bool:
    return all(argument.kind == STRING for argument in arguments)


def _steps(a: ValueColumn, b: ValueColumn) -> tuple[int, int]:
    return min(1, len(a) - 1), min(1, len(b) - 1)


# ---- one string in another


def _found(how: int) -> Vector:
    def computed(arguments: Sequence[ValueColumn]) -> Outcome | None:
        if not _are_strings(arguments):
            return REFUSED
        a, b = arguments
        found = np.empty(max(len(a), len(b)), np.uint8)
        string_kernels.find_texts(
            how, *a.texts.bytes_at(a.raw), *b.texts.bytes_at(b.raw), *_steps(a, b), found
        )
        return _answers(found)

    return computed


def _answers(found: Ints) -> Outcome:
    return Outcome(of_bools(found == string_kernels.YES), None, found == string_kernels.LEFT)


# ---- LIKE


def _like(arguments: Sequence[ValueColumn]) -> Outcome | None:
    if not _are_strings(arguments):
        return REFUSED
    if len(arguments) > 2:
        return None
    a, b = arguments
    codes, begin, at, is_bad = b.texts.read_at(b.raw, _codes_of)
    found = np.zeros(max(len(a), len(b)), np.uint8)
    string_kernels.match_likes(*a.texts.bytes_at(a.raw), codes, begin, at, *_steps(a, b), found)
    column, _, left = _answers(found)
    return Outcome(column, np.broadcast_to(is_bad, found.shape), left)


def _codes_of(pattern: str) -> bytes | None:
    """A pattern for the kernel; None: it cannot be read."""
    try:
        pieces = like_pieces(pattern)
    except ExpressionError:
        return None
    codes: list[int] = []
    for number, piece in enumerate(pieces):
        if number:
            codes.append(string_kernels.ANY_TEXT)
        for char in piece:
            codes += [string_kernels.ANY_CHARACTER] if char is None else char.encode()
    return np.array(codes, np.int16).tobytes()


# ---- regular expressions


def _rlike(arguments: Sequence[ValueColumn]) -> Outcome | None:
    """RE2 gets all strings of a pattern at once."""
    if not _are_strings(arguments):
        return REFUSED
    a, b = arguments
    number, used = distinct_with_samples(a.raw)
    texts = string_array(a.texts.at(used)).cast(pa.large_string())
    _, _, pattern, is_bad = b.texts.read_at(b.raw, _if_readable)
    if len(b) == 1:
        found = np.zeros(1, np.bool_) if is_bad[0] else _matched(texts, b.values[0])[number]
        return Outcome(of_bools(found), np.broadcast_to(is_bad, found.shape))
    order = np.argsort(pattern, kind="stable")
    texts = texts.take(int64_array(np.broadcast_to(number, len(b))[order]))
    begins = np.flatnonzero(np.diff(pattern[order], prepend=-1))
    patterns = b.texts.at(b.raw[order[begins]])
    found = np.zeros(len(b), np.bool_)
    for begin, end, regex in zip(begins, [*begins[1:], len(b)], patterns, strict=True):
        if not is_bad[order[begin]]:
            found[order[begin:end]] = _matched(texts.slice(begin, end - begin), regex)
    return Outcome(of_bools(found), is_bad)


def _matched(texts: pa.Array, regex: str) -> Ints:
    options = pc.MatchSubstringOptions(regex)
    found = pc.call_function("match_substring_regex", [texts], options)
    bits = np.frombuffer(found.buffers()[1], np.uint8)  # to_numpy would import pandas
    return np.unpackbits(bits, bitorder="little", count=len(found)).astype(np.bool_)


def _if_readable(regex: str) -> bytes | None:
    try:
        check_regex(regex)
    except ExpressionError:
        return None
    return b""


# ---- strings that are made


def _translated(change: Callable[[str], str]) -> Vector:
    table = np.array([ord(change(chr(code))) for code in range(128)] + [0] * 128, np.uint8)

    def computed(arguments: Sequence[ValueColumn]) -> Outcome | None:
        if not _are_strings(arguments):
            return REFUSED
        (a,) = arguments
        number, used = distinct_with_samples(a.raw)
        if len(used) <= _FEW:
            return None
        blob, begin, at = a.texts.bytes_at(used)
        size = int((begin[at + 1] - begin[at]).sum())
        made, made_begin = np.empty(max(1, size), np.uint8), np.empty(len(used) + 1, np.int64)
        is_left = np.zeros(len(used), np.bool_)
        string_kernels.translate(blob, begin, at, table, made, made_begin, is_left)
        column = ValueColumn.of_kind(STRING, number, StringPool.of_bytes(made, made_begin))
        return Outcome(column, None, is_left[number])

    return computed


def _concat(arguments: Sequence[ValueColumn]) -> Outcome | None:
    if not _are_strings(arguments):
        return REFUSED
    number, firsts = distinct_rows(arguments)
    if len(firsts) <= _FEW:
        return None
    column = arguments[0].among(firsts)
    for argument in arguments[1:]:
        longer = _concatenated(column, argument.among(firsts))
        if longer is None:
            return None
        column = longer
    return Outcome(column.among(number))


def _concatenated(a: ValueColumn, b: ValueColumn) -> ValueColumn | None:
    one, other = a.texts.bytes_at(a.raw), b.texts.bytes_at(b.raw)
    sizes = np.zeros(max(len(a), len(b)), np.int64)
    for _, begin, at in (one, other):
        sizes = sizes + begin[at + 1] - begin[at]
    size = int(sizes.sum())
    if sizes.max() > LENGTH_MAX or size > _BYTES_MAX:
        return None
    made, made_begin = np.empty(max(1, size), np.uint8), np.empty(len(sizes) + 1, np.int64)
    string_kernels.concatenate(*one, *other, *_steps(a, b), made, made_begin)
    texts = StringPool.of_bytes(made, made_begin)
    return ValueColumn.of_kind(STRING, np.arange(len(sizes)), texts)


TEXT_VECTORS: dict[Compute, Vector] = {
    texts.lower: _translated(str.lower),
    texts.upper: _translated(str.upper),
    texts.concat: _concat,
    texts.startswith: _found(string_kernels.STARTS),
    texts.endswith: _found(string_kernels.ENDS),
    texts.contains: _found(string_kernels.CONTAINS),
    patterns.like: _like,
    regex_functions.rlike: _rlike,
}
