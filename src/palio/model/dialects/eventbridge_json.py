"""JSON text of event patterns. A key may stand twice in an object: `"points": [5], "points": {"x": [6]}`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from palio.errors import ParseError


class RepeatedKeys(dict[str, Any]):
    """An object in which a key stands twice; as a dict it has the last ones."""

    entries: list[tuple[str, Any]]


def entries(found: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """The keys of an object and their values, also where a key stands twice."""
    return found.entries if isinstance(found, RepeatedKeys) else found.items()


def decoded(text: str) -> Any:
    """What a text says; ParseError points at the character."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse)
    except RecursionError:
        raise ParseError("the pattern is nested too deeply", text) from None
    except json.JSONDecodeError as error:
        raise ParseError(f"the pattern is not JSON: {error.msg}", text, error.pos) from None
    except _NotInJson as error:
        found = max(0, text.find(str(error)))
        raise ParseError(f"the pattern is not JSON: {error} stands in it", text, found) from None
    except ValueError as error:  # an integer of thousands of digits
        raise ParseError(f"the pattern cannot be read: {error}", text) from None


class _NotInJson(Exception):
    pass


def _refuse(word: str) -> NoReturn:
    raise _NotInJson(word)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = RepeatedKeys(found)
    repeated.entries = pairs
    return repeated
