"""Kernels that read the words of JSON: strings, numbers, instants; nothing else in this file.

A kernel that has any doubt gives up: positions below 0, NO_NUMBER, False. Hashes are polynomials
of bytes, so that the hash of `a.b` goes on from that of `a`. Doubles that need more than one exact
operation are HARD and left to Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.encode.codes import FLOAT, INT, TIME
from palio.matching.jit import borrowing

BASE = np.uint64(0x9E3779B97F4A7C15)
EMPTY, ONE, FOLD = np.uint64(0), np.uint64(1), np.uint64(29)

HARD, NO_NUMBER = -1, -2  # beside INT and FLOAT: a double for Python, an error
PROBES_MAX = 256  # slots that a text tries: texts can be chosen so that all want the same one
NO_SLOT = -(2**62)  # beside positions and free slots: all of them are taken by other texts

POWERS = np.array([10.0**i for i in range(23)])  # all exact
SAFE, INT_LIMIT = np.uint64(2**53), np.uint64(2**63)
NAN_BITS, INFINITY_BITS = np.int64(0x7FF8_0000_0000_0000), np.int64(0x7FF0_0000_0000_0000)
SIGN_BITS = np.int64(-(2**63))
DIGITS_MAX = 19  # always fit in 64 bits

PLAIN = np.array([32 <= c < 128 and c not in b'"\\' for c in range(256)])  # within a string
TIME_TEXT, FLOAT_TEXT, NAN_TEXT, INFINITY_TEXT = (
    np.frombuffer(text, np.uint8) for text in (b"$time", b"$float", b"NaN", b"Infinity")
)
MONTH_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
DAYS_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334])


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


# ---- numbers and times


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


@borrowing
def read_digits(text: Any, p: int, count: int) -> int:
    """The number of so many digits, or a very negative one."""
    value: Any = 0
    for i in range(count):
        digit = np.int64(text[p + i]) - 48
        if digit < 0 or digit > 9:
            return -1_000_000_000
        value = value * 10 + digit
    return value


@borrowing
def read_time(text: Any, p: int, end: int) -> tuple[bool, int]:
    """Microseconds of an instant in UTC as `format_instant` writes it, with or without the Z."""
    zulu = end - p > 19 and text[end - 1] == 90
    if zulu:
        end -= 1
    length = end - p
    if not (length == 10 or length == 19 or 21 <= length <= 26):
        return False, 0
    year, month = read_digits(text, p, 4), read_digits(text, p + 5, 2)
    if text[p + 4] != 45 or text[p + 7] != 45 or year < 1 or not 1 <= month <= 12:
        return False, 0
    day = read_digits(text, p + 8, 2)
    leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
    if not 1 <= day <= MONTH_DAYS[month - 1] + np.int64(leap and month == 2):
        return False, 0
    seconds, micros = 0, 0
    if length > 10:
        hour, minute = read_digits(text, p + 11, 2), read_digits(text, p + 14, 2)
        second = read_digits(text, p + 17, 2)
        if not (
            (text[p + 10] == 84 or text[p + 10] == 32)
            and text[p + 13] == 58
            and text[p + 16] == 58
            and 0 <= hour <= 23
            and 0 <= minute <= 59
            and 0 <= second <= 59
        ):
            return False, 0
        seconds = (hour * 60 + minute) * 60 + second
    if length > 19:
        micros = read_digits(text, p + 20, length - 20)
        if text[p + 19] != 46 or micros < 0:
            return False, 0
        for _ in range(26 - length):
            micros *= 10
    past = year - 1
    days = past * 365 + past // 4 - past // 100 + past // 400 - 719_162
    days += DAYS_BEFORE[month - 1] + day - 1 + np.int64(leap and month > 2)
    return True, (days * 86_400 + seconds) * 1_000_000 + micros


@borrowing
def read_tagged(tag: int, text: Any, begin: int, end: int) -> tuple[bool, int]:
    """The raw value of {"$time": text} (tag TIME) or {"$float": text}."""
    if tag == TIME:
        return read_time(text, begin, end)
    length = end - begin
    if length == 3 and same(text, begin, NAN_TEXT, 0, 3):
        return True, NAN_BITS
    if length == 8 and same(text, begin, INFINITY_TEXT, 0, 8):
        return True, INFINITY_BITS
    if length == 9 and text[begin] == 45 and same(text, begin + 1, INFINITY_TEXT, 0, 8):
        return True, INFINITY_BITS | SIGN_BITS
    return False, 0


@borrowing
def tag_of(path: Any, begin: int, end: int) -> int:
    """TIME for $time, FLOAT for $float, -1 for another key."""
    if end - begin == 5 and same(path, begin, TIME_TEXT, 0, 5):
        return TIME
    if end - begin == 6 and same(path, begin, FLOAT_TEXT, 0, 6):
        return FLOAT
    return -1
