"""Functions of strings, with the meaning that Spark SQL gives them. Positions count from 1."""

from __future__ import annotations

import hashlib
import zlib

from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.number_functions import Computed, whole
from palio.model.values import INT_MAX, shortened

LENGTH_MAX = 1 << 20
"""Characters of a string that a function makes."""


def text(value: Computed) -> str:
    """The argument of a function that takes a string; nothing is cast."""
    if isinstance(value, str):
        return value
    raise ExpressionError(f"a string is needed, not {shortened(value)}")


def lower(value: Computed) -> str:
    return text(value).lower()


def upper(value: Computed) -> str:
    return text(value).upper()


def trim(value: Computed, characters: Computed = " ") -> str:
    return ltrim(rtrim(value, characters), characters)


_FEW = 64
"""Characters that are looked for one after the other, for each character of the text."""


def ltrim(value: Computed, characters: Computed = " ") -> str:
    found, unwanted = text(value), text(characters)
    if len(unwanted) <= _FEW:
        return found.lstrip(unwanted)
    members = frozenset(unwanted)
    begin = next((at for at, one in enumerate(found) if one not in members), len(found))
    return found[begin:]


def rtrim(value: Computed, characters: Computed = " ") -> str:
    found, unwanted = text(value), text(characters)
    if len(unwanted) <= _FEW:
        return found.rstrip(unwanted)
    members = frozenset(unwanted)
    after = next((at for at, one in enumerate(reversed(found)) if one not in members), len(found))
    return found[: len(found) - after]


def length(value: Computed) -> int:
    """In characters."""
    return len(text(value))


def substring(value: Computed, position: Computed, count: Computed = INT_MAX) -> str:
    """From a position; a negative one counts from the end, and 0 is 1."""
    found, start = text(value), whole(position)
    begin = start - 1 if start > 0 else len(found) + start if start < 0 else 0
    end = begin + whole(count)
    return found[max(0, begin) : max(0, end)]


def left(value: Computed, count: Computed) -> str:
    return text(value)[: max(0, whole(count))]


def right(value: Computed, count: Computed) -> str:
    wanted, found = whole(count), text(value)
    return found[max(0, len(found) - wanted) :] if wanted > 0 else ""


def concat(*values: Computed) -> str:
    parts = [text(value) for value in values]
    check_length(sum(map(len, parts)))
    return "".join(parts)


def replace(value: Computed, wanted: Computed, other: Computed = "") -> str:
    """An empty string is found nowhere."""
    whole_text, found, replacement = text(value), text(wanted), text(other)
    if not found:
        return whole_text
    added = whole_text.count(found) * (len(replacement) - len(found))
    check_length(len(whole_text) + added)
    return whole_text.replace(found, replacement)


def check_length(characters: int) -> None:
    """Before the string is made: `replace` in `replace` could make any number of characters."""
    if characters > LENGTH_MAX:
        raise ExpressionError(f"a string of {characters:,} characters; the limit is {LENGTH_MAX:,}")


def split_part(value: Computed, delimiter: Computed, number: Computed) -> str:
    """A part between delimiters; a negative number counts from the end."""
    found, between, wanted = text(value), text(delimiter), whole(number)
    if wanted == 0:
        raise ExpressionError("parts are counted from 1")
    parts = found.split(between) if between else [found]
    at = wanted - 1 if wanted > 0 else len(parts) + wanted
    return parts[at] if 0 <= at < len(parts) else ""


def position(wanted: Computed, value: Computed, start: Computed = 1) -> int:
    """Where a string begins in another; 0: nowhere."""
    found, begin = text(value), whole(start)
    return found.find(text(wanted), begin - 1) + 1 if begin > 0 else 0


def startswith(value: Computed, other: Computed) -> bool:
    return text(value).startswith(text(other))


def endswith(value: Computed, other: Computed) -> bool:
    return text(value).endswith(text(other))


def contains(value: Computed, other: Computed) -> bool:
    return text(other) in text(value)


def concat_ws(separator: Computed | None, *values: Computed | None) -> str | None:
    """Joined by a separator; NULLs are left out, and arrays are spread."""
    if separator is None:
        return None
    parts: list[str] = []
    for value in values:
        parts += (
            text(one)
            for one in (value if isinstance(value, tuple) else (value,))
            if one is not None
        )
    between = text(separator)
    check_length(sum(map(len, parts)) + len(between) * max(0, len(parts) - 1))
    return between.join(parts)


def lpad(value: Computed, count: Computed, fill: Computed = " ") -> str:
    found = text(value)
    return _padding(found, count, fill) + found[: max(0, whole(count))]


def rpad(value: Computed, count: Computed, fill: Computed = " ") -> str:
    found = text(value)
    return found[: max(0, whole(count))] + _padding(found, count, fill)


def _padding(found: str, count: Computed, fill: Computed) -> str:
    missing, filling = whole(count) - len(found), text(fill)
    if missing <= 0 or not filling:
        return ""
    check_length(whole(count))
    return (filling * (missing // len(filling) + 1))[:missing]


def repeat(value: Computed, count: Computed) -> str:
    found, times = text(value), max(0, whole(count))
    check_length(len(found) * times)
    return found * times


def space(count: Computed) -> str:
    return repeat(" ", count)


def reverse(value: Computed) -> Computed:
    """Of a string or an array."""
    return value[::-1] if isinstance(value, tuple) else text(value)[::-1]


def initcap(value: Computed) -> str:
    """Words are what stands between spaces."""
    words = text(value).lower().split(" ")
    return " ".join(word[:1].title() + word[1:] for word in words)


def translate(value: Computed, wanted: Computed, other: Computed) -> str:
    """Each character replaced by that at its place in another string, or left out."""
    replacements: dict[int, str] = {}
    others = text(other)
    for at, char in enumerate(text(wanted)):
        replacements.setdefault(ord(char), others[at : at + 1])
    return text(value).translate(replacements)


def substring_index(value: Computed, delimiter: Computed, count: Computed) -> str:
    """What stands before the so many-th delimiter; a negative number counts from the end."""
    found, between, wanted = text(value), text(delimiter), whole(count)
    if not between or not wanted:
        return ""
    if len(between) * min(abs(wanted), len(found)) > _WORK_MAX:
        raise ExpressionError("the delimiter is too long")
    at = -1 if wanted > 0 else len(found) - len(between) + 1
    for _ in range(abs(wanted)):
        if wanted > 0:
            at = found.find(between, at + 1)
        else:
            at = found.rfind(between, 0, at - 1 + len(between)) if at > 0 else -1
        if at < 0:
            return found
    return found[:at] if wanted > 0 else found[at + len(between) :]


_WORK_MAX = 50_000_000


def find_in_set(wanted: Computed, value: Computed) -> int:
    """Which part of a list with commas it is; 0: none."""
    part = text(wanted)
    parts = text(value).split(",")
    return parts.index(part) + 1 if part in parts else 0


def ascii(value: Computed) -> int:
    """The code point of the first character; 0 for an empty string."""
    return ord(text(value)[0]) if text(value) else 0


def chr_(code: Computed) -> str:
    """The character of a code, modulo 256."""
    found = whole(code)
    return "" if found < 0 else chr(found & 0xFF)


def octet_length(value: Computed) -> int:
    return len(text(value).encode())


def bit_length(value: Computed) -> int:
    return 8 * octet_length(value)


def md5(value: Computed) -> str:
    return hashlib.md5(text(value).encode(), usedforsecurity=False).hexdigest()


def sha1(value: Computed) -> str:
    return hashlib.sha1(text(value).encode(), usedforsecurity=False).hexdigest()


def sha2(value: Computed, bits: Computed) -> str | None:
    """224, 256 (or 0), 384 or 512 bits."""
    found = _SHA2.get(whole(bits))
    return None if found is None else hashlib.new(found, text(value).encode()).hexdigest()


_SHA2 = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}


def crc32(value: Computed) -> int:
    return zlib.crc32(text(value).encode())


def hex_(value: Computed) -> str:
    """Of the 64 bits of an integer, or of the bytes of a string."""
    if isinstance(value, str):
        return value.encode().hex().upper()
    return f"{whole(value) & _BITS:X}"


def bin_(value: Computed) -> str:
    return f"{whole(value) & _BITS:b}"


_BITS = (1 << 64) - 1
