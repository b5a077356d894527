"""Regular expressions in the syntax of RE2, which takes time that is linear in the text.

They mean what RE2 says. What RE2 has not (back references, look-around, possessive quantifiers), and what
Spark reads otherwise, is an error. `.` is any character but a newline, `$` the end of the text.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.number_functions import Computed, whole
from palio.model.expressions.text_functions import check_length, text

REGEX_MAX = 1_000
"""Characters of a regular expression."""
REGEX_WORK_MAX = 50_000
"""Its characters times its largest repetition."""
CLASSES_MAX = 25
"""Of its classes such as \\pL, each as often as it is repeated: RE2 takes a millisecond to compile one."""
_KEPT = 256


def rlike(value: Computed, pattern: Computed) -> bool:
    """Whether a regular expression is found in a text."""
    return is_found(text(value), _checked(pattern))


def regexp_extract(value: Computed, pattern: Computed, group: Computed = 1) -> str:
    """What a group of the first match holds; group 0 is the whole."""
    found = _extracted(text(value), _checked(pattern), whole(group))
    return found or ""


def regexp_substr(value: Computed, pattern: Computed) -> str | None:
    """The first match."""
    return _extracted(text(value), _checked(pattern), 0)


def regexp_replace(value: Computed, pattern: Computed, replacement: Computed) -> str:
    """All matches replaced; $1 is what the first group holds."""
    given, regex = text(value), _checked(pattern)
    if is_found("", regex):
        raise ExpressionError("what is replaced may not be empty")
    parts = _replacement(text(replacement), _count_of_groups(regex))
    kept, marked = _replaced(given, regex, ""), _replaced(given, regex, "x")
    literal = sum(len(part) for part in parts if isinstance(part, str))
    groups = sum(isinstance(part, int) for part in parts)
    matches = len(marked) - len(kept)
    check_length(len(kept) + matches * literal + groups * (len(given) - len(kept)))
    written = (f"\\{part}" if isinstance(part, int) else _escaped(part) for part in parts)
    return _replaced(given, regex, "".join(written))


def split(value: Computed, pattern: Computed, limit: Computed = -1) -> tuple[str, ...]:
    """The parts between delimiters: a plain text, or a class of characters such as [,;]."""
    given, most = text(value), whole(limit)
    delimiter = _delimiter(text(pattern))
    if delimiter is None:
        parts = list(given) or [""]
        return tuple(parts if most <= 0 else [*parts[: most - 1], "".join(parts[most - 1 :])])
    return tuple(delimiter.split(given, max(0, most - 1)) if most != 1 else [given])


# ---- checking


def _checked(pattern: Computed) -> str:
    regex = text(pattern)
    check_regex(regex)
    return regex


_COUNTED = re.compile(r"\{([0-9]{1,9})(?:,([0-9]{0,9}))?\}")
_MISREAD = re.compile(r"\\(?:Q.*?(?:\\E|\Z)|.)|(&&|\[:)|\(\?[a-zA-Z]*U", re.DOTALL)


@lru_cache(_KEPT)
def check_regex(regex: str) -> None:
    """Raise ExpressionError unless RE2 reads it, and reads it as Spark does."""
    if len(regex) > REGEX_MAX:
        raise ExpressionError(f"a regular expression has up to {REGEX_MAX:,} characters")
    counts = [int(one) for found in _COUNTED.findall(regex) for one in found if one]
    if len(regex) * max(counts, default=1) > REGEX_WORK_MAX or classes_of(regex) > CLASSES_MAX:
        raise ExpressionError("this regular expression repeats too much")
    for found in _MISREAD.finditer(regex):
        if found[0] == "\\v" or found[0][0] != "\\":
            raise ExpressionError(f"{found[0]} means one thing to RE2 and another to Spark")
    is_found("", regex)


_ITEM = re.compile(
    r"\\Q.*?(?:\\E|\Z)|(?P<set>\\[pP](?:\{[^}]*\}|.)|\[\^?\]?(?:\\.|[^\]\\])*\])|\\.|"
    r"(?P<open>\()|(?P<close>\))|\{(?P<times>[0-9]{1,9})(?:,(?P<most>[0-9]{0,9}))?\}|.",
    re.DOTALL,
)


@lru_cache(_KEPT)
def classes_of(regex: str) -> int:
    """How many classes of Unicode such as \\pL it has, each as often as it is repeated.

    >>> classes_of(r"(\\pL{3}x){2}[^\\pN\\pP]")
    8
    """
    if "\\p" not in regex.lower():
        return 0
    sums, last = [0], 0  # of each group that is open; of what stands before a repetition
    for found in _ITEM.finditer(regex):
        if found["open"]:
            sums.append(0)
            last = 0
            continue
        if found["times"]:
            more = last * (max(int(found["times"]), int(found["most"] or 0), 1) - 1)
            sums[-1], last = sums[-1] + more, last + more
            continue
        is_group = found["close"] and len(sums) > 1
        last = sums.pop() if is_group else (found["set"] or "").lower().count("\\p")
        sums[-1] += last
    return sum(sums)


_DELIMITER = re.compile(
    r"(\[[^\[\]\\^&]+\]|\\s|\\d)(\+?)|((?:[^\\.^$|?*+()\[\]{}]|\\[^a-zA-Z0-9])*)"
)


@lru_cache(_KEPT)
def _delimiter(pattern: str) -> re.Pattern[str] | None:
    """An expression that cannot match nothing; None for the empty one."""
    found = _DELIMITER.fullmatch(pattern) if len(pattern) <= REGEX_MAX else None
    if not found:
        raise ExpressionError(
            f"split takes a plain text or a class of characters such as [,;], not {pattern[:40]!r}"
        )
    return re.compile(pattern, re.ASCII) if pattern else None


def check_delimiter(pattern: str) -> None:
    _delimiter(pattern)


# ---- groups

_GROUP = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((\?P?<[^>=!]*>|\?)?", re.DOTALL
)


def _groups(regex: str) -> Iterator[re.Match[str]]:
    """Where its capturing groups begin."""
    return (found for found in _GROUP.finditer(regex) if found[0][0] == "(" and found[1] != "?")


def _count_of_groups(regex: str) -> int:
    return sum(1 for _ in _groups(regex))


def _extracted(value: str, regex: str, group: int) -> str | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not 0 <= group <= _count_of_groups(regex):
        raise ExpressionError(f"the regular expression has no group {group}")
    pieces, end = [], 0
    for number, found in enumerate(_groups(regex), 1):
        pieces += [regex[end : found.start()], "(?P<g>" if number == group else "(?:"]
        end = found.end()
    only = "".join([*pieces, regex[end:]])
    try:
        result = pc.extract_regex(_one(value), only if group else f"(?P<g>{only})")[0].as_py()
    except pa.ArrowInvalid as error:
        raise _unreadable(error) from None
    return None if result is None else str(result["g"])


_REFERENCE = re.compile(r"\\(.)|\$([0-9]+)|([\\$])", re.DOTALL)


def _replacement(written: str, groups: int) -> list[str | int]:
    """Texts, and numbers of groups."""
    parts: list[str | int] = []
    end = 0
    for found in _REFERENCE.finditer(written):
        parts.append(written[end : found.start()])
        end = found.end()
        if found[1]:
            parts.append(found[1])
            continue
        digits = found[2] or "x"
        if not digits.isascii() or not digits.isdigit() or int(digits[0]) > groups:
            raise ExpressionError(f"{found[0]} in the replacement names no group")
        if len(digits) > 1 and int(digits[:2]) <= groups:
            raise ExpressionError("only the first nine groups can be named in a replacement")
        parts += [int(digits[0]), digits[1:]]
    return [part for part in [*parts, written[end:]] if part != ""]


def _escaped(part: str) -> str:
    return part.replace("\\", "\\\\")


# ---- RE2


def is_found(value: str, regex: str) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return bool(pc.match_substring_regex(_one(value), pattern=regex)[0].as_py())
    except pa.ArrowInvalid as error:
        raise _unreadable(error) from None


def _replaced(value: str, regex: str, replacement: str) -> str:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return str(pc.replace_substring_regex(_one(value), regex, replacement)[0].as_py())
    except pa.ArrowInvalid as error:
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> ExpressionError:
    reason = str(error).removeprefix("Invalid regular expression: ")
    return ExpressionError(f"RE2 does not read this regular expression: {reason[:200]}")


def _one(value: str) -> Any:
    """An Arrow array of one string, without pa.scalar, which imports pandas where it is installed."""
    import pyarrow as pa

    text = value.encode()
    offsets = pa.py_buffer(struct.pack("=2q", 0, len(text)))
    return pa.LargeStringArray.from_buffers(1, offsets, pa.py_buffer(text))
