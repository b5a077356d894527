"""Durations on a command line: 30 s, 10 min, 2 h, 1 d."""

from __future__ import annotations

import re

from palio.errors import PalioError

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(s|min|h|d)")
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}


def duration_of(text: str) -> float | None:
    """The seconds that a text names; None: it names none.

    >>> duration_of("1.5 min"), duration_of("soon")
    (90.0, None)
    """
    found = _DURATION.fullmatch(text.strip())
    return None if found is None else float(found[1]) * _SECONDS[found[2]]


def seconds_of(option: str, text: str) -> float:
    """The same of the value of an option, which must name some."""
    seconds = duration_of(text)
    if not seconds:
        raise PalioError(f"{option}: {text!r} is no time: 30 s, 10 min, 2 h, 1 d")
    return seconds
