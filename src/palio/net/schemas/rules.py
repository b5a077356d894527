"""What a schema may say, beyond what JSON Schema asks for, and how much work a message can make of it.

A schema is its operator's, messages are a stranger's. So nothing in it may take time that grows faster
than the message: no reference to itself (nested arrays could take time exponential in their depth), no
reference to elsewhere, no regular expression that RE2 does not read. `work` bounds what is left: how
many keywords are looked at for each value of a message, references followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from palio.errors import PalioError
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.regex_functions import check_regex

WORK_MAX = 10_000
"""Keywords, each as often as references lead to it."""
DEPTH_MAX = 64
_DIVISION, _UNIQUE, _PATTERN = 3000, 200, 20
"""What a multipleOf that is no integer takes, uniqueItems, and a regular expression, as so many keywords."""

_ONE = frozenset(
    "additionalItems additionalProperties contains contentSchema else if items not propertyNames then "
    "unevaluatedItems unevaluatedProperties".split()
)
_LIST = frozenset("allOf anyOf items oneOf prefixItems".split())
_NAMED = frozenset("dependencies dependentSchemas patternProperties properties".split())
_DEFINED = frozenset({"$defs", "definitions"})
_REFUSED = {
    "$dynamicRef": "a reference that depends on who refers",
    "$recursiveRef": "a reference that depends on who refers",
    "$anchor": "a name for a place; refer to it as #/$defs/NAME",
    "$dynamicAnchor": "a name for a place; refer to it as #/$defs/NAME",
}


class UnusableSchema(PalioError):
    """A schema that is none, or that a broker does not take; `pointer` says where in it."""

    def __init__(self, reason: str, pointer: str = "") -> None:
        super().__init__(f"{reason} (at {pointer})" if pointer else reason)
        self.pointer = pointer


def work(document: object) -> int:
    """How many keywords are looked at for each value of a message, at most; raises UnusableSchema."""
    return _SchemaWalk(document).work(document, "#", ())


def resolved(document: Any, schema: Any) -> Any:
    """The schema that a schema refers to, if that is all it does."""
    for _ in range(DEPTH_MAX):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            return schema
        schema = target(document, schema["$ref"])
    return schema


def target(document: Any, reference: str) -> Any:
    """What a reference such as #/$defs/price names; KeyError: nothing."""
    found = document
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        found = found[int(key)] if isinstance(found, list) and key.isdigit() else found[key]
    return found


class _SchemaWalk:
    def __init__(self, document: object) -> None:
        self._document = document
        self._known: dict[str, int] = {}

    def work(self, schema: object, pointer: str, within: tuple[str, ...]) -> int:
        if len(pointer.split("/")) > DEPTH_MAX or len(within) > DEPTH_MAX:
            raise UnusableSchema("it is nested too deep", pointer[:200])
        if not isinstance(schema, dict):
            return 1
        total = 1
        for keyword, value in schema.items():
            total += self._keyword(keyword, value, pointer)
            if keyword == "$ref":
                total += self._referred(value, pointer, within)
            for below, inner, is_used in _inner(keyword, value):
                found = self.work(inner, f"{pointer}/{keyword}{below}", within)
                total += found if is_used else 0
            if total > WORK_MAX:
                raise UnusableSchema(
                    f"it takes too long: it asks for more than {WORK_MAX:,} things of a value; "
                    "simplify it",
                    pointer,
                )
        return total

    def _keyword(self, keyword: str, value: Any, pointer: str) -> int:
        if keyword in _REFUSED:
            raise UnusableSchema(f"{keyword} is not supported: {_REFUSED[keyword]}", pointer)
        if keyword in ("$id", "id") and pointer != "#":
            raise UnusableSchema(f"{keyword} is supported only at the top", pointer)
        if keyword == "multipleOf" and not isinstance(value, int):
            return _DIVISION
        if keyword == "uniqueItems":
            return _UNIQUE
        patterns = [value] if keyword == "pattern" else []
        if keyword == "patternProperties" and isinstance(value, dict):
            patterns = [*value]
        for one in patterns:
            if isinstance(one, str):
                _check_pattern(one, f"{pointer}/{keyword}")
        return 1 + _PATTERN * len(patterns)

    def _referred(self, reference: Any, pointer: str, within: tuple[str, ...]) -> int:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise UnusableSchema(
                f"$ref {str(reference)[:200]!r} is elsewhere: a schema is one file, and refers to its "
                "own parts only, as #/$defs/NAME",
                pointer,
            )
        if reference in within or reference == "#" or f"{pointer}/".startswith(f"{reference}/"):
            raise UnusableSchema(
                f"$ref {reference!r} leads back to itself: attributes are not nested, so no schema "
                "needs that",
                pointer,
            )
        if reference not in self._known:
            try:
                found = target(self._document, reference)
            except (KeyError, IndexError, TypeError):
                raise UnusableSchema(
                    f"$ref {reference!r}: there is no such part", pointer
                ) from None
            self._known[reference] = self.work(found, reference, (*within, reference))
        return self._known[reference]


def _inner(keyword: str, value: Any) -> Iterator[tuple[str, Any, bool]]:
    """The schemas that a keyword holds: where, and whether messages are checked by them."""
    if keyword in _NAMED | _DEFINED and isinstance(value, dict):
        for name, one in value.items():
            yield f"/{name}", one, keyword in _NAMED
    elif keyword in _LIST and isinstance(value, list):
        for place, one in enumerate(value):
            yield f"/{place}", one, True
    elif keyword in _ONE:
        yield "", value, True


def _check_pattern(pattern: str, pointer: str) -> None:
    try:
        check_regex(pattern)
    except ExpressionError as error:
        raise UnusableSchema(f"the pattern {pattern[:100]!r}: {error}", pointer) from None
