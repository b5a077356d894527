"""Event patterns decided slowly, on the pattern and the event themselves: the oracle of the importer.

An event is a list of fields: a name, a value, and for each array around it the element that it is in. A
rule takes the names of its fields in order and looks for values that do not stand in different elements
of one array. It says what Palio means, which is event-ruler's meaning but for what
docs/reference/eventbridge.md lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from itertools import count, product
from typing import Any

Elements = dict[int, int]
"""Arrays, and which of their elements."""


@dataclass(frozen=True)
class EventField:
    name: str
    value: Any
    elements: Elements


def event_fields(event: dict[str, Any]) -> list[EventField]:
    arrays = count()

    def found(prefix: str, value: Any, elements: Elements, in_array: bool) -> Iterator[EventField]:
        if isinstance(value, dict):
            for name, inner in value.items():
                yield from found(f"{prefix}.{name}" if prefix else name, inner, elements, False)
        elif isinstance(value, list):
            array = next(arrays)
            for at, one in enumerate(value):
                inner = {**elements, array: at} if isinstance(one, dict | list) else elements
                yield from found(prefix, one, inner, True)
        elif value is not None or in_array:
            yield EventField(prefix, value, elements)

    return list(found("", event, {}, False))


def rules(pattern: dict[str, Any], prefix: str = "") -> Iterator[dict[str, Any]]:
    """Each a member of the list for each name: lists and $or are written out."""
    parts: list[list[dict[str, Any]]] = []
    for name, value in pattern.items():
        full = f"{prefix}.{name}" if prefix else name
        if name == "$or":
            parts.append([rule for one in value for rule in rules(one, prefix)])
        elif isinstance(value, dict):
            parts.append(list(rules(value, full)))
        else:
            parts.append([{full: member} for member in value])
    for chosen in product(*parts):
        yield {name: member for rule in chosen for name, member in rule.items()}


def rule_count(pattern: dict[str, Any]) -> int:
    found = 1
    for name, value in pattern.items():
        if name == "$or":
            found *= sum(map(rule_count, value))
        else:
            found *= rule_count(value) if isinstance(value, dict) else len(value)
    return found


def matches(pattern: dict[str, Any], event: dict[str, Any]) -> bool:
    fields = event_fields(event)
    return any(_rule_matches(sorted(rule.items()), fields, {}) for rule in rules(pattern))


def _rule_matches(
    rule: list[tuple[str, Any]], fields: list[EventField], elements: Elements
) -> bool:
    if not rule:
        return True
    (name, member), *rest = rule
    here = [
        one
        for one in fields
        if one.name == name
        and all(one.elements.get(array, at) == at for array, at in elements.items())
    ]
    if member == {"exists": False}:
        return not here and _rule_matches(rest, fields, elements)
    return any(
        satisfies(one.value, member) and _rule_matches(rest, fields, {**elements, **one.elements})
        for one in here
    )


def satisfies(value: Any, member: Any) -> bool:
    if not isinstance(member, dict):
        return _equal(value, member)
    ((kind, wanted),) = member.items()
    if kind == "exists":
        return True
    if kind == "anything-but":
        return not any(
            value == one if isinstance(one, str) else satisfies(value, one)
            for one in _excluded(wanted)
        )
    if kind == "numeric":
        return _is_number(value) and all(
            _COMPARE[op](value, bound) for op, bound in zip(wanted[::2], wanted[1::2], strict=True)
        )
    return isinstance(value, str) and _text_satisfies(value, kind, wanted)


def _excluded(wanted: Any) -> list[Any]:
    if not isinstance(wanted, dict):
        return wanted if isinstance(wanted, list) else [wanted]
    ((kind, inner),) = wanted.items()
    return [{kind: one} for one in _excluded(inner)]


def _text_satisfies(value: str, kind: str, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        value, wanted = value.lower(), wanted["equals-ignore-case"].lower()
    if kind == "prefix":
        return value.startswith(wanted)
    if kind == "suffix":
        return value.endswith(wanted)
    if kind == "equals-ignore-case":
        return value.lower() == str(wanted).lower()
    if kind == "cidr":
        address = _address(value)
        return address is not None and address in ip_network(wanted, strict=False)
    assert kind == "wildcard", kind
    parts = re.findall(r"\\(.)|(\*)|([^*\\]+)", wanted, re.DOTALL)
    regex = "".join(".*" if star else re.escape(char or text) for char, star, text in parts)
    return re.fullmatch(regex, value, re.DOTALL) is not None


_COMPARE: dict[str, Any] = {
    "=": lambda x, y: x == y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(value: Any, wanted: Any) -> bool:
    if _is_number(value) and _is_number(wanted):
        return bool(value == wanted)
    if isinstance(value, str) and isinstance(wanted, str) and ":" in wanted and _address(wanted):
        return bool(_address(value) == _address(wanted))
    return type(value) is type(wanted) and bool(value == wanted)


def _address(text: str) -> Any:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
