"""LIKE patterns that are one string constraint: %, at most, at the two ends."""

from __future__ import annotations

import re

from palio.errors import InvalidPredicate
from palio.model.operators import Op

_SPECIAL = re.compile(r"[%_\\]")
_SUPPORTED = "supported are 'text', 'text%', '%text' and '%text%'; \\% and \\_ are the characters"


def like_operand(pattern: object, escape: object = "\\") -> tuple[Op, str]:
    """The operator and the string that a pattern stands for.

    >>> like_operand("U%")
    (<Op.PREFIX: 'prefix'>, 'U')
    >>> like_operand("100\\\\%")
    (<Op.EQ: '='>, '100%')
    """
    if not isinstance(pattern, str):
        raise InvalidPredicate("LIKE takes a string")
    if not isinstance(escape, str) or len(escape) != 1:
        raise InvalidPredicate("ESCAPE takes one character")
    text, wild = _read(pattern, escape)
    for at in wild:
        if 0 < at < len(text):
            raise InvalidPredicate(
                "LIKE with % inside the pattern is not supported", remedy=_SUPPORTED
            )
    if not wild:
        return Op.EQ, text
    if wild[0] == 0 and wild[-1] == len(text):
        return Op.CONTAINS, text
    return (Op.SUFFIX if wild[0] == 0 else Op.PREFIX), text


def _read(pattern: str, escape: str) -> tuple[str, list[int]]:
    """The plain text, and where in it a % stood."""
    last = len(pattern) - 1
    if pattern[-1:] == "%" and escape == "\\" and not _SPECIAL.search(pattern, 0, last):
        return pattern[:-1], [last]  # the most common one: text%
    text: list[str] = []
    wild: list[int] = []
    chars = iter(pattern)
    for char in chars:
        if char == escape:
            taken = next(chars, None)
            if taken is None or taken not in ("%", "_", escape):
                raise InvalidPredicate(
                    f"in LIKE the escape character {escape} stands only before %, _ or itself"
                )
            text.append(taken)
        elif char == "%":
            wild.append(len(text))
        elif char == "_":
            raise InvalidPredicate("LIKE with _ is not supported", remedy=_SUPPORTED)
        else:
            text.append(char)
    return "".join(text), wild
