"""The kernels of strings: plain loops over their bytes in UTF-8, nothing else.

String i has the bytes blob[begin[at[i]] : begin[at[i] + 1]]. A step is 0 for a constant, else 1. A pattern of
LIKE is a row of codes: bytes, ANY_CHARACTER and ANY_TEXT. Rows that would take too long are left.
"""

from __future__ import annotations

from typing import Any

from palio.matching.encode.constraint_kernels import same
from palio.matching.jit import borrowing

ANY_CHARACTER = 256
ANY_TEXT = 257
STARTS, ENDS, CONTAINS = 0, 1, 2
NO, YES, LEFT = 0, 1, 2
WORK_MAX = 1 << 16  # bytes of a text times those of a pattern


@borrowing
def order_texts(
    blob: Any, begin: Any, at: Any, blob_b: Any, begin_b: Any, at_b: Any, step: int, step_b: int, found: Any
) -> None:  # fmt: skip
    """-1, 0 or 1: by their bytes."""
    for i in range(len(found)):
        a, b = at[i * step], at_b[i * step_b]
        start, start_b = begin[a], begin_b[b]
        size, size_b = begin[a + 1] - start, begin_b[b + 1] - start_b
        order = 0
        for j in range(min(size, size_b)):
            if blob[start + j] != blob_b[start_b + j]:
                order = 1 if blob[start + j] > blob_b[start_b + j] else -1
                break
        if order == 0 and size != size_b:
            order = 1 if size > size_b else -1
        found[i] = order


@borrowing
def find_texts(
    how: int,
    blob: Any, begin: Any, at: Any, blob_b: Any, begin_b: Any, at_b: Any, step: int, step_b: int, found: Any
) -> None:  # fmt: skip
    """Does the first begin with the second, end with it, contain it?"""
    for i in range(len(found)):
        a, b = at[i * step], at_b[i * step_b]
        start, start_b = begin[a], begin_b[b]
        size, size_b = begin[a + 1] - start, begin_b[b + 1] - start_b
        found[i] = NO
        if size_b > size:
            continue
        if how == STARTS:
            found[i] = same(blob, start, blob_b, start_b, size_b)
        elif how == ENDS:
            found[i] = same(blob, start + size - size_b, blob_b, start_b, size_b)
        elif size * size_b > WORK_MAX:
            found[i] = LEFT
        else:
            for j in range(size - size_b + 1):
                if same(blob, start + j, blob_b, start_b, size_b):
                    found[i] = YES
                    break


@borrowing
def match_likes(
    blob: Any, begin: Any, at: Any, codes: Any, begin_b: Any, at_b: Any, step: int, step_b: int, found: Any
) -> None:  # fmt: skip
    """Does the string match the pattern?"""
    for i in range(len(found)):
        a, b = at[i * step], at_b[i * step_b]
        p, stop, c, last = begin[a], begin[a + 1], begin_b[b], begin_b[b + 1]
        if (stop - p) * (last - c) > WORK_MAX:
            found[i] = LEFT
            continue
        retry_p, retry_c = (
            -1,
            -1,
        )  # where the last ANY_TEXT began to match, and what stands behind it
        found[i] = YES
        while p < stop or c < last:
            if c < last and codes[c] == ANY_TEXT:
                c += 1
                retry_p, retry_c = p, c
                if c == last:
                    break
                continue
            if c < last and p < stop:
                if codes[c] == ANY_CHARACTER:
                    c, p = c + 1, p + 1
                    while p < stop and blob[p] & 0xC0 == 0x80:
                        p += 1
                    continue
                if codes[c] == blob[p]:
                    c, p = c + 1, p + 1
                    continue
            if retry_p < 0 or retry_p >= stop:
                found[i] = NO
                break
            retry_p += 1
            while retry_p < stop and blob[retry_p] & 0xC0 == 0x80:
                retry_p += 1
            p, c = retry_p, retry_c


@borrowing
def translate(
    blob: Any, begin: Any, at: Any, table: Any, made: Any, made_begin: Any, is_left: Any
) -> None:
    """Each byte by a table, one string behind the other; a string that is not ASCII is left."""
    to = 0
    for i in range(len(at)):
        made_begin[i] = to
        for j in range(begin[at[i]], begin[at[i] + 1]):
            if blob[j] >= 128:
                is_left[i] = True
            made[to] = table[blob[j]]
            to += 1
    made_begin[len(at)] = to


@borrowing
def concatenate(
    blob: Any, begin: Any, at: Any, blob_b: Any, begin_b: Any, at_b: Any, step: int, step_b: int,
    made: Any, made_begin: Any,
) -> None:  # fmt: skip
    """The one string behind the other."""
    to = 0
    for i in range(len(made_begin) - 1):
        a, b = at[i * step], at_b[i * step_b]
        made_begin[i] = to
        for j in range(begin[a], begin[a + 1]):
            made[to] = blob[j]
            to += 1
        for j in range(begin_b[b], begin_b[b + 1]):
            made[to] = blob_b[j]
            to += 1
    made_begin[len(made_begin) - 1] = to
