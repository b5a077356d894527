"""What an attribute of a message may hold beside a value: an array, or bytes.

An array is a tuple of values, None, bytes, tuples and dicts; lists become tuples, and their members
values as those of attributes do. An array is there, and satisfies no constraint but `any`; so do
bytes. Members are what computed attributes look at.

Arrays come from strangers: they count for memory, they and the objects around them are nested at most
DEPTH_MAX levels, and they have at most MEMBERS_MAX members. An integer beyond 64 bits is the nearest
double here, and the last of several members of one name counts. In JSON, instants, NaN and bytes are
one-key objects, as they are among attributes.
"""

from __future__ import annotations

import base64
import json
import math
import reprlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from palio.errors import InvalidValue
from palio.model.values import (
    INT_MAX,
    INT_MIN,
    PLAIN,
    Value,
    as_text,
    as_value,
    format_instant,
    parse_instant,
    shortened,
)

Member: TypeAlias = "Value | bytes | tuple[Member, ...] | dict[str, Member] | None"
Array: TypeAlias = "tuple[Member, ...]"
Content: TypeAlias = "Value | Array | bytes"
"""What an attribute of a message holds."""

DEPTH_MAX = 64
"""Objects and arrays in each other, the message among them. The same for every reader: what Python's
stack has room for depends on who calls."""
MEMBERS_MAX = 1 << 20
"""Members of an array, those of arrays and objects inside it among them."""
MEMBER_BYTES = 64
"""What a member takes in memory, beside the characters of strings."""

TAGS = frozenset({"$time", "$float", "$binary"})
_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


_ARRAYS = (list, tuple, bytes, bytearray, memoryview)


class JsonObject(list[tuple[str, Any]]):
    """A JSON object as it stands in the text, so that a repeated key is seen."""


def as_content(name: str, value: object, depth: int = 1) -> Content:
    """Turn a Python object into what the attribute `name` holds, or say why not.

    `depth`: how many objects it lies in.

    >>> as_content("tags", ["a", [1, None], {"at": 2.5}])
    ('a', (1, None), {'at': 2.5})
    """
    if type(value) in PLAIN:
        return as_value(name, value)
    opened = unwrapped(value)
    if isinstance(opened, bytes | Value):
        return opened if isinstance(opened, bytes) else as_value(name, opened)
    if isinstance(opened, JsonObject | Mapping):
        found = tagged(name, opened)
        if found is None:
            raise InvalidValue(
                f"{shortened(value)} is an object, not a value",
                attribute=name,
                remedy="name its members with dots, or give the whole to Message, which does",
            )
        return found
    if isinstance(opened, list | tuple):
        return _ArrayReader(name).array(opened, depth + 1)
    return as_value(name, value)


def is_array(value: object) -> bool:
    """Does it hold several values, or is it binary data?"""
    return isinstance(value, _ARRAYS) or bool(getattr(value, "ndim", 0))


def unwrapped(value: object) -> object:
    """Rows of Spark as mappings, arrays of numpy as lists, binary data as bytes; others as they are."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    as_dict = getattr(value, "asDict", None)
    if as_dict is not None and hasattr(value, "__fields__"):
        return as_dict()
    if getattr(value, "ndim", 0) and hasattr(value, "tolist"):
        return value.tolist()
    return value


def tagged(name: str, value: JsonObject | Mapping[Any, Any]) -> Value | bytes | None:
    """What {"$time": ...}, {"$float": ...} and {"$binary": ...} stand for; None: a plain object."""
    if len(value) != 1:
        return None
    tag, text = value[0] if isinstance(value, JsonObject) else next(iter(value.items()))
    if tag not in TAGS:
        return None
    if not isinstance(text, str):
        raise InvalidValue(f"{tag} takes a string", attribute=name)
    if tag == "$time":
        return parse_instant(text)
    if tag == "$binary":
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:
            raise InvalidValue("$binary takes base64", attribute=name) from None
    if text not in _FLOATS:
        raise InvalidValue(f"$float takes one of {', '.join(_FLOATS)}", attribute=name)
    return _FLOATS[text]


class _ArrayReader:
    """Makes the array of one attribute, within bounds."""

    __slots__ = ("_members", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._members = 0

    def array(self, found: list[Any] | tuple[Any, ...], depth: int) -> Array:
        self._enter(len(found), depth)
        if _is_plain(found):
            return tuple(found)
        return tuple([self.member(value, depth) for value in found])

    def _object(self, found: Mapping[Any, Any], depth: int) -> dict[str, Member]:
        self._enter(len(found), depth)
        return {self._key(key): self.member(value, depth) for key, value in found.items()}

    def _enter(self, members: int, depth: int) -> None:
        self._members += members
        if depth > DEPTH_MAX:
            raise too_deep(self._name)
        if self._members > MEMBERS_MAX:
            raise InvalidValue(
                f"the array has more than {MEMBERS_MAX:,} members", attribute=self._name
            )

    def _key(self, key: object) -> str:
        if not isinstance(key, str):
            raise InvalidValue(
                f"{shortened(key)} is the name of a member, which is a string",
                attribute=self._name,
            )
        return as_text(self._name, key)

    def member(self, value: Any, depth: int) -> Member:
        """A member of what is nested so deep."""
        if value is None:
            return None
        if type(value) is int and not INT_MIN <= value <= INT_MAX:
            return _nearest(value)
        if type(value) in PLAIN:
            return as_value(self._name, value)
        opened: Any = unwrapped(value)
        if isinstance(opened, JsonObject):
            opened = dict(opened)  # of several members of one name the last one counts
        if isinstance(opened, Mapping):
            found = tagged(self._name, opened)
            return self._object(opened, depth + 1) if found is None else found
        if isinstance(opened, list | tuple):
            return self.array(opened, depth + 1)
        return opened if isinstance(opened, bytes) else as_value(self._name, opened)


def _is_plain(found: list[Any] | tuple[Any, ...]) -> bool:
    """Are all members taken as they are? Quickly, since an array may have very many."""
    types = set(map(type, found))
    if types == {str}:  # others than ASCII may hold halves of characters
        return all(map(str.isascii, found))
    if types <= {int, bool}:
        return not found or (min(found) >= INT_MIN and max(found) <= INT_MAX)
    return types == {float}


def too_deep(name: str | None = None) -> InvalidValue:
    return InvalidValue(f"a message is nested at most {DEPTH_MAX} levels deep", attribute=name)


def _nearest(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


# ---- as JSON


_WRITTEN = frozenset({str, int, bool, type(None)})


def jsonable(content: Any) -> Any:
    """The same for json.dumps: tags for what JSON cannot write."""
    if type(content) in _WRITTEN:
        return content
    if isinstance(content, tuple | list):
        return [jsonable(member) for member in content]
    if isinstance(content, dict):
        return {key: jsonable(member) for key, member in content.items()}
    if isinstance(content, datetime):
        return {"$time": format_instant(content)}
    if isinstance(content, float) and not math.isfinite(content):
        return {"$float": "NaN" if math.isnan(content) else f"{'-' * (content < 0)}Infinity"}
    if isinstance(content, bytes):
        return {"$binary": base64.b64encode(content).decode()}
    return content


def array_text(content: Any) -> str:
    """The JSON text of an array, as `read_array` reads it. That of bytes is an empty object: nothing
    computes with them.

    >>> array_text(("a", 1, {"b": None}))
    '["a",1,{"b":null}]'
    """
    if isinstance(content, bytes):
        return "{}"
    return json.dumps(jsonable(content), ensure_ascii=False, separators=(",", ":"))


def read_array(text: str | bytes, depth: int = 1) -> Any:
    """The array of a JSON text that a reader of messages accepted; of bytes, an empty dict.

    `depth`: how many objects it lies in; below 1 it may be nested deeper than messages are.

    >>> read_array('["a", {"$float": "NaN"}, 1e400, [1.50]]')
    ('a', nan, inf, (1.5,))
    """
    return _ArrayReader("array").member(json.loads(text), depth)


# ---- as values


def identity(content: Member) -> object:
    """Equal for equal contents of equal types, and hashable: 1 and 1.0 differ, NaN equals NaN."""
    kind = type(content)
    if kind is tuple:
        return tuple, tuple(map(identity, content))  # type: ignore[arg-type]
    if isinstance(content, dict):
        return dict, frozenset((key, identity(member)) for key, member in content.items())
    return kind, "NaN" if content != content else content


def memory_bytes(content: Member) -> int:
    """About how many bytes of memory it takes, beside what holds it."""
    if isinstance(content, str):  # one byte a character, or up to four
        return len(content) if content.isascii() else 4 * len(content)
    if isinstance(content, tuple):
        return sum(MEMBER_BYTES + memory_bytes(member) for member in content)
    if isinstance(content, dict):
        return sum(
            2 * MEMBER_BYTES + memory_bytes(key) + memory_bytes(member)
            for key, member in content.items()
        )
    return len(content) if isinstance(content, bytes) else 0


_WIDTH = 100
_SHORT = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxtuple = 5
_SHORT.maxdict = _SHORT.maxlevel = 3


def shown(content: Array | bytes) -> str:
    """As explanations show it.

    >>> shown(("a", "b", 3, 4, 5, 6, 7)), shown(b"12")
    ("the array ['a', 'b', 3, 4, 5, ...]", '2 bytes')
    """
    if isinstance(content, bytes):
        return f"{len(content)} bytes"
    text = _SHORT.repr(list(content))
    return f"the array {text if len(text) <= _WIDTH else text[: _WIDTH - 3] + '...'}"
