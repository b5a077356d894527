"""The kernel that passes over an array in JSON: checked as strictly as Python reads it, not read.

It gives up at what Python may refuse, or read otherwise than the text says: lone surrogates, nesting
beyond DEEP, names of members that may be tags ($time), integers with more digits than Python takes.

    levels   a bit for each array or object around, the innermost lowest: is it an object?
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.encode.json_word_kernels import (
    FALSE_TEXT,
    NULL_TEXT,
    PLAIN,
    TRUE_TEXT,
    byte_at,
    is_word,
    read_escape,
    skip,
    utf8_length,
)
from palio.matching.jit import borrowing

DEEP = 24  # levels; with those of the objects around it fewer than the model has
LONG_INTEGER = 4000  # digits


@borrowing
def skip_string(data: Any, p: int, end: int) -> int:
    """The position behind the string whose first character is at p, -1 when it is none."""
    while p < end:
        c = data[p]
        if PLAIN[c]:
            p += 1
        elif c == 34:
            return p + 1
        elif c == 92:
            p, _ = read_escape(data, p + 1, end)
            if p < 0:
                return -1
        else:
            length = utf8_length(data, p, end) if c >= 128 else 0
            if length == 0:
                return -1
            p += length
    return -1


@borrowing
def skip_digits(data: Any, p: int, end: int) -> int:
    while 48 <= byte_at(data, p, end) <= 57:
        p += 1
    return p


@borrowing
def skip_number(data: Any, p: int, end: int) -> int:
    """The position behind the number at p, -1 when it is none."""
    if byte_at(data, p, end) == 45:
        p += 1
    start = p
    p = skip_digits(data, p, end)
    if p == start or (data[start] == 48 and p > start + 1) or p > start + LONG_INTEGER:
        return -1
    if byte_at(data, p, end) == 46:
        start = p + 1
        p = skip_digits(data, start, end)
        if p == start:
            return -1
    if byte_at(data, p, end) | 32 == 101:
        start = p + 1
        sign = byte_at(data, start, end)
        if sign == 43 or sign == 45:
            start += 1
        p = skip_digits(data, start, end)
        if p == start:
            return -1
    return p


@borrowing
def skip_array(data: Any, p: int, end: int) -> int:
    """The position behind the array at p, -1 when it is not plain."""
    levels = np.int64(0)
    depth = 0
    is_name = False  # of a member: what must come next
    while True:
        c = byte_at(data, p, end)
        if c == 34:
            second = byte_at(data, p + 1, end)
            if is_name and (second == 36 or second == 92):
                return -1
            p = skip_string(data, p + 1, end)
            if p < 0:
                return -1
            if is_name:
                p = skip(data, p, end)
                if byte_at(data, p, end) != 58:
                    return -1
                p = skip(data, p + 1, end)
                is_name = False
                continue
        elif is_name:
            return -1
        elif c == 91 or c == 123:
            depth += 1
            if depth > DEEP:
                return -1
            is_name = c == 123
            levels = (levels << 1) | np.int64(is_name)
            p = skip(data, p + 1, end)
            if byte_at(data, p, end) != c + 2:  # ] and } come two behind [ and {
                continue
            is_name = False
        elif c == 45 or 48 <= c <= 57:
            p = skip_number(data, p, end)
            if p < 0:
                return -1
        elif c == 116 and is_word(data, p, end, TRUE_TEXT):
            p += 4
        elif c == 102 and is_word(data, p, end, FALSE_TEXT):
            p += 5
        elif c == 110 and is_word(data, p, end, NULL_TEXT):
            p += 4
        else:
            return -1
        while True:  # behind a value, or at the end of an empty array or object
            p = skip(data, p, end)
            c = byte_at(data, p, end)
            p += 1
            if c == 44:
                is_name = (levels & 1) == 1
                p = skip(data, p, end)
                break
            if c != (125 if levels & 1 else 93):
                return -1
            depth -= 1
            if depth == 0:
                return p
            levels >>= 1
