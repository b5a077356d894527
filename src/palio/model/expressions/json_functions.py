"""get_json_object: a value within a JSON text, as Spark SQL prints it.

A path is `$`, then names and places: `$.a.b[0]['other name']`. What is not there, and JSON's null, are NULL.
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import Any

from palio.model.expressions.casts import java_double
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.number_functions import Computed
from palio.model.expressions.text_functions import text

PATH_MAX = 1_000
"""Characters of a path."""
_DIGITS_MAX = 1_000
_DEPTH_MAX = 200
_KEPT = 256
_STEP = re.compile(r"\.([^.\[\s][^.\[]*)|\[([0-9]{1,9})\]|\['([^']+)'\]")
_quoted = json.JSONEncoder(ensure_ascii=False).encode


def get_json_object(value: Computed, path: Computed) -> str | None:
    steps = json_path(text(path))
    found = _parsed(text(value))
    reached = _followed(found, steps)
    return reached if isinstance(reached, str) else _shown(reached, 0)


def json_array_length(value: Computed) -> int | None:
    """Elements of an array in JSON; NULL for other texts."""
    found = _parsed(text(value))
    return len(found) if isinstance(found, list) else None


def _parsed(written: str) -> Any:
    """What the text begins with; None where that is no JSON. Behind a number or a word stands a space, or
    nothing: 2024-02-29 is none."""
    bare = written.lstrip(" \t\r\n")
    try:
        found, end = _DECODER.raw_decode(bare)
        is_open = bare[:1] not in ("{", "[", '"') and bare[end : end + 1].strip(" \t\r\n")
        return None if is_open else found
    except (ValueError, RecursionError):
        return None


@lru_cache(_KEPT)
def json_path(path: str) -> tuple[str | int, ...]:
    """The names and places of a path."""
    if len(path) > PATH_MAX or path[:1] != "$":
        raise ExpressionError(f"a path of JSON is like $.a.b[0], not {path[:40]!r}")
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if not found or found[1] == "*":
            raise ExpressionError(
                f"the path {path[:40]!r} cannot be read at {path[at : at + 10]!r}: a path has names and "
                "places, such as $.a.b[0]['other name'], and no *"
            )
        steps.append(int(found[2]) if found[2] else found[1] or found[3])
        at = found.end()
    return tuple(steps)


class _Object(tuple[tuple[str, Any], ...]):
    """Names and values as they stand in the text. A name may be there twice."""

    __slots__ = ()


def _followed(found: Any, steps: tuple[str | int, ...]) -> Any:
    """Where the steps lead; the first place that is there, if several names are the same."""
    left = [(found, 0)]
    while left:
        value, at = left.pop()
        if at == len(steps):
            if value is not None:
                return value
            continue
        step = steps[at]
        if isinstance(step, int):
            left += [(one, at + 1) for one in value[step : step + 1]] if type(value) is list else []
        elif isinstance(value, _Object):
            left += [(one, at + 1) for name, one in reversed(value) if name == step]
    return None


def _shown(found: Any, depth: int) -> str | None:
    """As Spark prints it, without spaces."""
    if depth > _DEPTH_MAX:
        raise ExpressionError(f"JSON is nested more than {_DEPTH_MAX} deep")
    if found is None:
        return "null" if depth else None
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, float):
        return java_double(found) if math.isfinite(found) else f'"{java_double(found)}"'
    if isinstance(found, list):
        return f"[{','.join(str(_shown(one, depth + 1)) for one in found)}]"
    if isinstance(found, _Object):
        shown = (f"{_quoted(name)}:{_shown(one, depth + 1)}" for name, one in found)
        return f"{{{','.join(shown)}}}"
    return _quoted(found)


def _fraction(digits: str) -> float:
    if len(digits) > _DIGITS_MAX:
        raise ValueError("too many digits")
    return float(digits)


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS_MAX:
        raise ValueError("too many digits")
    return int(digits)


def _constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


_DECODER = json.JSONDecoder(
    parse_float=_fraction, parse_int=_integer, parse_constant=_constant, object_pairs_hook=_Object
)
