"""Text that others chose, for a terminal or a log: it must not control them."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with control characters as escapes.

    >>> printable("caf\\u00e9 \\x1b[2J")
    'café \\\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str) -> str:
    """The same of several lines."""
    return "\n".join(map(printable, text.split("\n")))
