"""From the list of a field to its conditions: `["a", {"prefix": "b"}, {"numeric": [">", 5]}]`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from ipaddress import ip_network
from typing import Any, NoReturn

from palio.errors import InvalidPredicate
from palio.model.dialects.eventbridge_conditions import (
    AnythingBut,
    Block,
    Condition,
    Edge,
    Exists,
    IsNull,
    NumberRange,
    OneOf,
    SameText,
    TypedTest,
    Wildcard,
)
from palio.model.dialects.eventbridge_json import entries
from palio.model.expressions.address_functions import address_of, key_of
from palio.model.operators import Op
from palio.model.values import INT_MAX, INT_MIN, as_value, shortened

ABSENT = object()
"""{"exists": false}: no condition on a value."""


_BITS = re.compile("[0-9]{1,4}")


class ConditionsReader:
    """Reads the conditions of one field; errors name it."""

    def __init__(self, field: str) -> None:
        self._field = field

    def read(self, members: Sequence[Any]) -> tuple[tuple[Condition, ...], bool]:
        """The conditions on a value, and whether the field may be missing."""
        if not members:
            self._fail("its list is empty", 'write the values that are wanted: ["running"]')
        found: list[Any] = []
        for member in members:
            if isinstance(member, Mapping):
                found.append(self._expression(member))
            elif member is None:
                found += [IsNull(), ABSENT]
            else:
                found.append(self._value(member))
        conditions = {repr(one): one for one in _collected(found) if one is not ABSENT}
        return tuple(conditions[text] for text in sorted(conditions)), ABSENT in found

    def _value(self, member: Any) -> Condition:
        if isinstance(member, bool):
            return OneOf("bool", (member,))
        if isinstance(member, int | float):
            return OneOf("number", (self._number(member),))
        if not isinstance(member, str):
            self._fail(
                f"{shortened(member)} is no condition",
                "a condition is a string, a number, true, false, null or an object",
            )
        address = address_of(member) if ":" in member else None
        if address is None:  # or IPv4, which has one spelling
            return OneOf("string", (self._string(member, "a value"),))
        return Block(key_of(address), key_of(address))

    # ---- objects

    def _expression(self, member: Mapping[str, Any]) -> Any:
        kind, value = self._only_entry(member, "a condition")
        read = _EXPRESSIONS.get(kind)
        if read is None:
            near = get_close_matches(kind, _EXPRESSIONS, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            self._fail(
                f"there is no condition {shortened(kind)}",
                f"{hint}there are {', '.join(_EXPRESSIONS)}",
            )
        return read(self, value)

    def exactly(self, value: Any) -> Condition:
        return OneOf("string", (self._string(value, "exactly"),))

    def prefix(self, value: Any) -> TypedTest:
        return self._edge("prefix", Op.PREFIX, value)

    def suffix(self, value: Any) -> TypedTest:
        return self._edge("suffix", Op.SUFFIX, value)

    def _edge(self, kind: str, op: Op, value: Any) -> TypedTest:
        if not isinstance(value, Mapping):
            return _edge(op, self._string(value, kind))
        inner, text = self._only_entry(value, kind)
        if inner != "equals-ignore-case":
            self._fail(
                f"{kind} does not combine with {shortened(inner)}",
                'it takes a string or {"equals-ignore-case": "..."}',
            )
        text = self._string(text, f"{kind} with equals-ignore-case")
        return _edge(op, text.lower(), ignores_case=True)

    def same_text(self, value: Any) -> TypedTest:
        return SameText(self._string(value, "equals-ignore-case").lower())

    def wildcard(self, value: Any) -> Condition:
        test = self.wildcard_test(value)
        if isinstance(test, Wildcard) and test.is_text:
            return OneOf("string", test.pieces)
        return test

    def wildcard_test(self, value: Any) -> TypedTest:
        text = self._string(value, "wildcard")
        pieces, at = [""], 0
        while at < len(text):
            char, after = text[at], text[at + 1 : at + 2]
            if char == "*" and after == "*":
                self._fail(
                    f"the wildcard {shortened(text)} has two stars side by side",
                    "write one, or \\* for the star itself",
                )
            if char == "\\":
                if after not in ("*", "\\"):
                    self._fail(
                        f"in the wildcard {shortened(text)} a backslash stands before {after or 'nothing'!r}",
                        "it stands before * or another backslash; in JSON each is written twice",
                    )
                char, at = after, at + 1
            elif char == "*":
                pieces.append("")
                char = ""
            pieces[-1] += char
            at += 1
        match pieces:
            case [start, ""]:
                return _edge(Op.PREFIX, start)
            case ["", end]:
                return _edge(Op.SUFFIX, end)
        return Wildcard(tuple(pieces))

    def exists(self, value: Any) -> Any:
        if not isinstance(value, bool):
            self._fail(f"exists takes true or false, not {shortened(value)}")
        return Exists() if value else ABSENT

    def cidr(self, value: Any) -> Condition:
        text = self._string(value, "cidr")
        start, slash, bits = text.partition("/")
        address = address_of(start)
        if not slash or address is None or not _BITS.fullmatch(bits):
            self._fail(
                f"{shortened(text)} is no block of addresses", "write 10.0.0.0/8 or 2001:db8::/32"
            )
        if int(bits) > address.max_prefixlen:
            self._fail(
                f"the block {shortened(text)} fixes {bits} bits of an address that has {address.max_prefixlen}"
            )
        network = ip_network((address.packed, int(bits)), strict=False)
        return Block(key_of(network.network_address), key_of(network.broadcast_address))

    def numeric(self, value: Any) -> Condition:
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            self._fail('numeric takes a list such as [">", 0, "<=", 5]')
        if len(value) not in (2, 4):
            self._fail(f"numeric takes one or two comparisons, not {len(value)} members", _NUMERIC)
        pairs = list(zip(value[::2], value[1::2], strict=True))
        for op, _number in pairs:
            if op not in _COMPARISONS:
                self._fail(f"numeric has no operator {shortened(op)}", _NUMERIC)
        bounds = [(Op(op), self._number(number, "numeric")) for op, number in pairs]
        if len(bounds) == 2:
            (low, least), (high, most) = bounds
            if low not in (Op.GT, Op.GE) or high not in (Op.LT, Op.LE):
                self._fail(f"{low} and {high} make no range", _NUMERIC)
            if least >= most:
                self._fail(
                    f"no number is {low} {least} and {high} {most}: the lower bound comes first "
                    "and is the smaller one",
                    f'for one number, write {{"numeric": ["=", {most}]}}' if least == most else "",
                )
        if bounds[0][0] is Op.EQ:
            return OneOf("number", (bounds[0][1],))
        return NumberRange(tuple(bounds))

    def anything_but(self, value: Any) -> Condition:
        if isinstance(value, Mapping):
            kind, inner = self._only_entry(value, "anything-but")
            read = _IN_ANYTHING_BUT.get(kind)
            if read is None:
                self._fail(
                    f"anything-but does not combine with {shortened(kind)}",
                    f"it takes values, or {', '.join(_IN_ANYTHING_BUT)}",
                )
            members = self._members(inner, f"anything-but with {kind}")
            if kind in ("prefix", "suffix") and "" in members:
                self._fail(f"anything-but with an empty {kind} is satisfied by no string")
            if any(not isinstance(one, str) for one in members):
                self._fail(f"anything-but with {kind} takes a string or a list of strings")
            tests = [read(self, one) for one in members]
            texts = [one.pieces[0] for one in tests if isinstance(one, Wildcard) and one.is_text]
            if len(texts) == len(tests):
                return AnythingBut(_unique(texts))
            return AnythingBut(tests=tuple(sorted(dict.fromkeys(tests), key=repr)))
        members = self._members(value, "anything-but")
        values: list[str | int | float]
        if all(isinstance(one, str) for one in members):
            values = [self._string(one, "anything-but") for one in members]
        elif all(isinstance(one, int | float) and not isinstance(one, bool) for one in members):
            values = [self._number(one) for one in members]
        else:
            self._fail("anything-but takes strings or numbers, and not both in one list")
        return AnythingBut(_unique(values))

    # ---- parts

    def _members(self, value: Any, of: str) -> list[Any]:
        members = list(value) if isinstance(value, list | tuple) else [value]
        if not members:
            self._fail(f"the list of {of} is empty")
        return members

    def _only_entry(self, value: Mapping[str, Any], of: str) -> tuple[str, Any]:
        found = list(entries(value))
        if len(found) != 1:
            names = ", ".join(repr(name) for name, _ in found) or "none"
            self._fail(f"{of} is an object with one key, and this one has {names}")
        return found[0]

    def _string(self, value: Any, of: str) -> str:
        if not isinstance(value, str):
            is_list = isinstance(value, list | tuple)
            remedy = "write one condition for each: the list of a field is a disjunction"
            self._fail(f"{of} takes a string, not {shortened(value)}", remedy if is_list else "")
        return str(self._checked(value))

    def _number(self, value: Any, of: str = "a number") -> int | float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._fail(f"{of} compares with a number, not {shortened(value)}")
        if isinstance(value, float) and not math.isfinite(value):
            self._fail("a number does not fit in a double")
        if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
            self._fail(f"the integer {shortened(value)} does not fit in 64 bits")
        return value

    def _checked(self, value: str) -> Any:
        try:
            return as_value(self._field, value)
        except ValueError as error:
            self._fail(getattr(error, "reason", str(error)))

    def _fail(self, reason: str, remedy: str = "") -> NoReturn:
        raise InvalidPredicate(reason, attribute=self._field, remedy=remedy)


_COMPARISONS = ("=", "<", "<=", ">", ">=")
_NUMERIC = 'write ["=", 5], ["<", 5] or [">", 0, "<=", 5]'
_EXPRESSIONS: dict[str, Callable[[ConditionsReader, Any], Any]] = {
    "prefix": ConditionsReader.prefix,
    "suffix": ConditionsReader.suffix,
    "equals-ignore-case": ConditionsReader.same_text,
    "wildcard": ConditionsReader.wildcard,
    "anything-but": ConditionsReader.anything_but,
    "numeric": ConditionsReader.numeric,
    "exists": ConditionsReader.exists,
    "cidr": ConditionsReader.cidr,
    "exactly": ConditionsReader.exactly,
}
_IN_ANYTHING_BUT: dict[str, Callable[[ConditionsReader, Any], TypedTest]] = {
    name: getattr(ConditionsReader, method)
    for name, method in {
        "prefix": "prefix",
        "suffix": "suffix",
        "equals-ignore-case": "same_text",
        "wildcard": "wildcard_test",
    }.items()
}


def _edge(op: Op, text: str, ignores_case: bool = False) -> Edge:
    """All strings have an empty prefix: there is one way of saying it."""
    return Edge(op, text, ignores_case) if text else Edge(Op.PREFIX, "", False)


def _collected(conditions: list[Any]) -> list[Any]:
    """Values of one kind are one condition."""
    values: dict[str, list[Any]] = {}
    for one in conditions:
        if isinstance(one, OneOf):
            values.setdefault(one.kind, []).extend(one.values)
    exact = [OneOf(kind, _unique(found)) for kind, found in values.items()]
    return [*exact, *(one for one in conditions if not isinstance(one, OneOf))]


def _unique(values: list[Any]) -> tuple[Any, ...]:
    """In order, so that equal lists are equal."""
    return tuple(sorted(dict.fromkeys(values)))
