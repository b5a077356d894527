"""Kernels that read what JSON writes as one-key objects: instants, NaN, infinity; nothing else here.

A kernel that has any doubt gives up, and leaves the row to Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.encode.codes import ARRAY, FLOAT, TIME
from palio.matching.encode.json_word_kernels import SIGN_BITS, same
from palio.matching.jit import borrowing

NAN_BITS, INFINITY_BITS = np.int64(0x7FF8_0000_0000_0000), np.int64(0x7FF0_0000_0000_0000)
TIME_TEXT, FLOAT_TEXT, BINARY_TEXT, NAN_TEXT, INFINITY_TEXT = (
    np.frombuffer(text, np.uint8)
    for text in (b"$time", b"$float", b"$binary", b"NaN", b"Infinity")
)
MONTH_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
DAYS_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334])


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
    if tag == ARRAY:  # {"$binary": ...}: Python's
        return False, 0
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
    """TIME for $time, FLOAT for $float, ARRAY for $binary, -1 for another key."""
    if end - begin == 5 and same(path, begin, TIME_TEXT, 0, 5):
        return TIME
    if end - begin == 6 and same(path, begin, FLOAT_TEXT, 0, 6):
        return FLOAT
    if end - begin == 7 and same(path, begin, BINARY_TEXT, 0, 7):
        return ARRAY
    return -1
