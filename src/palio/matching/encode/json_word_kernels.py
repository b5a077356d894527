"""Kernels that read the words of JSON: names, strings, numbers; nothing else in this file.

A kernel that has any doubt gives up: positions below 0, NO_NUMBER, False. Hashes are polynomials
of bytes, so that the hash of `a.b` goes on from that of `a`. Doubles that need more than one exact
operation are HARD and left to Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.encode.codes import FLOAT, INT
from palio.matching.jit import borrowing

BASE = np.uint64(0x9E3779B97F4A7C15)
EMPTY, ONE, FOLD = np.uint64(0), np.uint64(1), np.uint64(29)

HARD, NO_NUMBER = -1, -2  # beside INT and FLOAT: a double for Python, an error
PROBES_MAX = 256  # slots that a text tries: texts can be chosen so that all want the same one
NO_SLOT = -(2**62)  # beside positions and free slots: all of them are taken by other texts

POWERS = np.array([10.0**i for i in range(23)])  # all exact
SAFE, INT_LIMIT = np.uint64(2**53), np.uint64(2**63)
SIGN_BITS = np.int64(-(2**63))
DIGITS_MAX = 19  # always fit in 64 bits

PLAIN = np.array([32 <= c < 128 and c not in b'"\\' for c in range(256)])  # within a string
TRUE_TEXT, FALSE_TEXT, NULL_TEXT = (
    np.frombuffer(text, np.uint8) for text in (b"true", b"false", b"null")
)


@borrowing
def same(a: Any, a_from: int, b: Any, b_from: int, length: int) -> bool:
    for i in range(length):
        if a[a_from + i] != b[b_from + i]:
            return False
    return True


@borrowing
def byte_at(data: Any, p: int, end: int) -> int:
    """The byte at p; 0, which is nowhere plain, behind the end and behind an error."""
    return np.int64(data[p]) if 0 <= p < end else 0


@borrowing
def skip(data: Any, p: int, end: int) -> int:
    """The first position from p on that is not white space."""
    while p < end:
        c = data[p]
        if c > 32 or not (c == 32 or c == 10 or c == 13 or c == 9):
            break
        p += 1
    return p


@borrowing
def is_word(data: Any, p: int, end: int, word: Any) -> bool:
    return end - p >= len(word) and same(data, p, word, 0, len(word))


# ---- names and strings


@borrowing
def hash_bytes(blob: Any, begin: int, end: int) -> Any:
    """A polynomial of the bytes: that of a longer name goes on from that of its path."""
    h = EMPTY
    for i in range(begin, end):
        h = h * BASE + np.uint64(blob[i]) + ONE
    return h


@borrowing
def slot_of(h: Any, mask: Any) -> Any:
    return (h ^ (h >> FOLD)) & mask


@borrowing
def fill_slots(hashes: Any, count: int, slots: Any) -> None:
    """Open addressing: hash -> position + 1; 0 is free. What finds no slot in PROBES_MAX has none."""
    mask = np.uint64(len(slots) - 1)
    for i in range(count):
        at = slot_of(hashes[i], mask)
        for _ in range(PROBES_MAX):
            if slots[at] == 0:
                slots[at] = i + 1
                break
            at = (at + ONE) & mask


@borrowing
def fill_hashes(blob: Any, begin: Any, hashes: Any) -> None:
    for i in range(len(hashes)):
        hashes[i] = hash_bytes(blob, begin[i], begin[i + 1])


@borrowing
def find(
    blob: Any, begin: Any, hashes: Any, slots: Any, h: Any, text: Any, start: int, length: int
) -> int:
    """The position of the known text with these bytes, or -1 - (the free slot), or NO_SLOT."""
    mask = np.uint64(len(slots) - 1)
    at = slot_of(h, mask)
    for _ in range(PROBES_MAX):
        if slots[at] == 0:
            return -1 - np.int64(at)
        found = slots[at] - 1
        if (
            hashes[found] == h
            and begin[found + 1] - begin[found] == length
            and same(blob, begin[found], text, start, length)
        ):
            return np.int64(found)
        at = (at + ONE) & mask
    return NO_SLOT


@borrowing
def hex_value(data: Any, p: int, end: int) -> int:
    """The number of four hexadecimal digits, -1 when they are not."""
    if end - p < 4:
        return -1
    value: Any = 0
    for i in range(4):
        c = np.int64(data[p + i])
        if 48 <= c <= 57:
            digit = c - 48
        elif 97 <= (c | 32) <= 102:
            digit = (c | 32) - 87
        else:
            return -1
        value = value * 16 + digit
    return value


@borrowing
def read_escape(data: Any, p: int, end: int) -> tuple[int, int]:
    """The position behind the escape whose letter is at p, and its code point."""
    c = byte_at(data, p, end)
    if c == 34 or c == 92 or c == 47:
        return p + 1, c
    if c == 110:
        return p + 1, 10
    if c == 116:
        return p + 1, 9
    if c == 114:
        return p + 1, 13
    if c == 98:
        return p + 1, 8
    if c == 102:
        return p + 1, 12
    if c != 117:
        return -1, 0
    point = hex_value(data, p + 1, end)
    p += 5
    if point < 0 or 0xDC00 <= point < 0xE000:
        return -1, 0
    if 0xD800 <= point < 0xDC00:
        if byte_at(data, p, end) != 92 or byte_at(data, p + 1, end) != 117:
            return -1, 0
        low = hex_value(data, p + 2, end)
        if not 0xDC00 <= low < 0xE000:
            return -1, 0
        return p + 6, 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
    return p, point


@borrowing
def write_point(point: int, out: Any, at: int) -> int:
    """UTF-8 of a code point; where it ends."""
    if point < 0x80:
        out[at] = point
        return at + 1
    if point < 0x800:
        out[at] = 0xC0 | (point >> 6)
    else:
        if point < 0x10000:
            out[at] = 0xE0 | (point >> 12)
        else:
            out[at] = 0xF0 | (point >> 18)
            at += 1
            out[at] = 0x80 | ((point >> 12) & 63)
        at += 1
        out[at] = 0x80 | ((point >> 6) & 63)
    out[at + 1] = 0x80 | (point & 63)
    return at + 2


@borrowing
def utf8_length(data: Any, p: int, end: int) -> int:
    """The length of the character of several bytes at p, 0 when it is not UTF-8."""
    c, second = byte_at(data, p, end), byte_at(data, p + 1, end)
    low, high = 0x80, 0xBF
    if 0xC2 <= c <= 0xDF:
        length = 2
    elif 0xE0 <= c <= 0xEF:
        length = 3
        if c == 0xE0:
            low = 0xA0
        elif c == 0xED:
            high = 0x9F
    elif 0xF0 <= c <= 0xF4:
        length = 4
        if c == 0xF0:
            low = 0x90
        elif c == 0xF4:
            high = 0x8F
    else:
        return 0
    if not low <= second <= high:
        return 0
    for i in range(2, length):
        if byte_at(data, p + i, end) & 0xC0 != 0x80:
            return 0
    return length


@borrowing
def read_string(data: Any, p: int, end: int, out: Any, at: int, h: Any) -> tuple[int, int, Any]:
    """Unescape the string whose first character is at p to out[at:].

    Returns the position behind its quote, the end of the text in `out`, and the hash of the text,
    which goes on from h.
    """
    while p < end:
        c = data[p]
        if PLAIN[c]:
            out[at] = c
            h = h * BASE + np.uint64(c) + ONE
            at += 1
            p += 1
            continue
        if c == 34:
            return p + 1, at, h
        start = at
        if c == 92:
            p, point = read_escape(data, p + 1, end)
            if p < 0:
                return -1, at, h
            at = write_point(point, out, at)
        else:
            length = utf8_length(data, p, end) if c >= 128 else 0
            if length == 0:
                return -1, at, h
            for i in range(length):
                out[at + i] = data[p + i]
            at += length
            p += length
        for i in range(start, at):
            h = h * BASE + np.uint64(out[i]) + ONE
    return -1, at, h


# ---- numbers


@borrowing
def read_number(data: Any, p: int, end: int) -> tuple[int, int, int]:
    """The position behind the number at p, INT, FLOAT, HARD or NO_NUMBER, and its raw value.

    Of a HARD one the raw value is a bound of its decimal exponent.
    """
    negative = data[p] == 45
    if negative:
        p += 1
    start = p
    mantissa = EMPTY
    digits = 0  # without leading zeros
    while 48 <= byte_at(data, p, end) <= 57:
        if digits > 0 or data[p] != 48:
            digits += 1
            if digits <= DIGITS_MAX:
                mantissa = mantissa * np.uint64(10) + np.uint64(data[p] - 48)
        p += 1
    if p == start or (data[start] == 48 and p > start + 1):
        return p, NO_NUMBER, 0
    c = byte_at(data, p, end)
    if c != 46 and c | 32 != 101:
        if digits > DIGITS_MAX or mantissa > INT_LIMIT - np.uint64(not negative):
            return p, NO_NUMBER, 0
        whole = np.int64(mantissa)  # 2^63 wraps to -2^63, and so does its negation
        return p, INT, -whole if negative else whole
    exponent = 0
    if c == 46:
        p += 1
        start = p
        while 48 <= byte_at(data, p, end) <= 57:
            if digits > 0 or data[p] != 48:
                digits += 1
                if digits <= DIGITS_MAX:
                    mantissa = mantissa * np.uint64(10) + np.uint64(data[p] - 48)
            p += 1
        if p == start:
            return p, NO_NUMBER, 0
        exponent = start - p
        c = byte_at(data, p, end)
    if c | 32 == 101:
        p += 1
        sign = byte_at(data, p, end)
        if sign == 43 or sign == 45:
            p += 1
        start = p
        power: Any = 0
        while 48 <= byte_at(data, p, end) <= 57:
            power = min(power * 10 + np.int64(data[p] - 48), 1_000_000_000)
            p += 1
        if p == start:
            return p, NO_NUMBER, 0
        exponent += -power if sign == 45 else power
    if digits == 0:
        value = 0.0
    elif digits > DIGITS_MAX or mantissa > SAFE or not -22 <= exponent <= 22:
        return p, HARD, digits + exponent
    elif exponent < 0:
        value = np.float64(mantissa) / POWERS[-exponent]
    else:
        value = np.float64(mantissa) * POWERS[exponent]
    bits = np.float64(value).view(np.int64)
    return p, FLOAT, bits | SIGN_BITS if negative else bits
