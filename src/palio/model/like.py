"""LIKE patterns: those that are one string constraint, with % at most at the two ends, and the others.

A canonical pattern escapes with a backslash, and only what needs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from palio.errors import InvalidPredicate
from palio.model.operators import Op

_SPECIAL = re.compile(r"[%_\\]")
ANY_TEXT, ANY_CHARACTER = "%", "_"


def like_operand(pattern: object, escape: object = "\\") -> tuple[Op, str] | None:
    """The operator and the string that a pattern stands for; None: it says more than one can.

    >>> like_operand("U%")
    (<Op.PREFIX: 'prefix'>, 'U')
    >>> like_operand("100\\\\%")
    (<Op.EQ: '='>, '100%')
    >>> like_operand("a%b")
    """
    if (
        isinstance(pattern, str)
        and escape == "\\"
        and pattern[1:]
        and pattern[-1] == "%"
        and not _SPECIAL.search(pattern, 0, len(pattern) - 1)
    ):
        return Op.PREFIX, pattern[:-1]  # the most common one: text%
    text: list[str] = []
    wild: list[int] = []
    for char, is_wild in like_parts(pattern, escape):
        if not is_wild:
            text.append(char)
        elif char == ANY_CHARACTER:
            return None
        else:
            wild.append(len(text))
    if any(0 < at < len(text) for at in wild):
        return None
    if not wild:
        return Op.EQ, "".join(text)
    if wild[0] == 0 and wild[-1] == len(text):
        return Op.CONTAINS, "".join(text)
    return (Op.SUFFIX if wild[0] == 0 else Op.PREFIX), "".join(text)


def like_parts(pattern: object, escape: object = "\\") -> Iterator[tuple[str, bool]]:
    """The characters of a pattern, and which of them are wildcards."""
    if not isinstance(pattern, str):
        raise InvalidPredicate("LIKE takes a string")
    if not isinstance(escape, str) or len(escape) != 1:
        raise InvalidPredicate("ESCAPE takes one character")
    chars = iter(pattern)
    for char in chars:
        if char == escape:
            taken = next(chars, None)
            if taken is None or taken not in ("%", "_", escape):
                raise InvalidPredicate(
                    f"in LIKE the escape character {escape} stands only before %, _ or itself"
                )
            yield taken, False
        else:
            yield char, char in (ANY_TEXT, ANY_CHARACTER)


def canonical_pattern(pattern: object, escape: object = "\\") -> str:
    """The pattern as it is written with a backslash.

    >>> canonical_pattern("50!%%_", "!")
    '50\\\\%%_'
    """
    parts = like_parts(pattern, escape)
    return "".join(c if is_wild or c not in "%_\\" else f"\\{c}" for c, is_wild in parts)
