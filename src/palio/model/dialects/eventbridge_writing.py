"""From a predicate to an event pattern.

    filters ─▶ fields of each: name to members of its list ─▶ equal but for one field: one list ─▶ $or

A predicate that was read from a pattern has more filters than the pattern has rules (see
`eventbridge_filters`). So the filters that can be said are written first, and read back: when that gives
all the filters, the pattern is found. Otherwise each filter has to be said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeAlias

from palio.errors import InvalidPredicate
from palio.model.dialects.eventbridge_fields import OR, RESERVED
from palio.model.dialects.eventbridge_members import FieldConstraint, members_of, part_of
from palio.model.operators import Op
from palio.model.predicate import Constraint, Filter, Predicate
from palio.model.values import Type

Fields: TypeAlias = dict[str, list[Any]]
Read: TypeAlias = Callable[..., Predicate]
_SINGLE_VALUES: Collection[str] = ()


def written(predicate: Predicate, read: Read) -> str:
    """The pattern of a predicate, as JSON; `read` reads it back."""
    if not predicate.filters:
        raise InvalidPredicate("the predicate selects nothing, and no event pattern says that")
    for says_any_string in (False, True):
        text = _guessed(predicate, says_any_string)
        if text is not None and _reads_back(text, predicate, read):
            return text
    return _text([_fields(own, number) for number, own in enumerate(predicate.filters, 1)])


# ---- filters that came from a pattern


def _guessed(predicate: Predicate, says_any_string: bool) -> str | None:
    """The pattern of those filters that one can say."""
    found = []
    for own in predicate.filters:
        constraints = _without_implied(own)
        if not says_any_string and any(_is_any_string(one) for one in constraints):
            continue
        try:
            found.append(_fields(Filter(constraints), 0))
        except InvalidPredicate:
            continue
    try:
        return _text(found) if found else None
    except InvalidPredicate:
        return None


def _is_any_string(constraint: Constraint) -> bool:
    """What anything-but with numbers is satisfied by, and what the wildcard * is."""
    return constraint.op is Op.ANY and constraint.type in (Type.STRING, Type.BOOL)


def _without_implied(own: Filter) -> tuple[Constraint, ...]:
    """Without what the reader adds: a field that is there is no array, one that is not is in no array."""
    absent = [one.name for one in own if one.op is Op.ABSENT]
    return tuple(
        one
        for one in own
        if not one.name.startswith("=is_array(")
        and not (one.op is Op.ABSENT and any(name.startswith(f"{one.name}.") for name in absent))
    )


def _reads_back(text: str, predicate: Predicate, read: Read) -> bool:
    wanted = {frozenset(own) for own in predicate.filters}
    for arrays in (None, _SINGLE_VALUES):
        try:
            if {frozenset(own) for own in read(text, arrays=arrays)} == wanted:
                return True
        except InvalidPredicate:
            pass
    return False


# ---- fields


def _fields(own: Filter, number: int) -> Fields:
    """The members of each field's list; InvalidPredicate names the constraint that there is none for."""
    by_field: dict[str, list[FieldConstraint]] = {}
    try:
        for constraint in own:
            part = part_of(constraint)
            by_field.setdefault(part.field, []).append(part)
        return {name: members_of(name, parts) for name, parts in by_field.items()}
    except InvalidPredicate as error:
        raise error.at(filter=number or None) from None


def _text(alternatives: list[Fields]) -> str:
    for fields in alternatives:
        if not fields:
            raise InvalidPredicate(
                "the predicate selects every message, and no event pattern says that",
                remedy="ask for a field that all messages have",
            )
    return json.dumps(_document(_merged(alternatives)), ensure_ascii=False)


def _merged(alternatives: list[Fields]) -> list[Fields]:
    """Alternatives that differ in one field become one, with the members of both in its list."""
    names = dict.fromkeys(name for fields in alternatives for name in fields)
    before = 0
    while before != len(alternatives):
        before = len(alternatives)
        for name in names:
            alternatives = list(_merged_by(name, alternatives))
    return alternatives


def _merged_by(name: str, alternatives: list[Fields]) -> Iterable[Fields]:
    found: dict[str, Fields] = {}
    for fields in alternatives:
        rest = {other: members for other, members in fields.items() if other != name}
        key = json.dumps([name in fields, rest], sort_keys=True)
        into = found.setdefault(key, {**fields, **({name: []} if name in fields else {})})
        if name in fields:
            into[name] += [one for one in fields[name] if not _is_in(one, into[name])]
    return found.values()


def _is_in(member: Any, members: list[Any]) -> bool:
    """True is not 1 here."""
    return json.dumps(member) in map(json.dumps, members)


# ---- JSON


def _document(alternatives: list[Fields]) -> Mapping[str, Any]:
    first, *others = alternatives
    if not others:
        return _nested(first)
    common = {
        name: members
        for name, members in first.items()
        if all(other.get(name) == members for other in others)
    }
    rests = [
        {name: members for name, members in fields.items() if name not in common}
        for fields in alternatives
    ]
    if {} in rests:  # it selects what the others select
        return _nested(common)
    for name in dict.fromkeys(name for rest in rests for name in rest):
        if not RESERVED.isdisjoint(name.split(".")):
            raise InvalidPredicate(f"within {OR} no field has this name", attribute=name)
    return {**_nested(common), OR: [_nested(rest) for rest in rests]}


def _nested(fields: Fields) -> dict[str, Any]:
    """Objects within objects. Below a field that has a list, names keep their dots."""
    root: dict[str, Any] = {}
    for name, members in fields.items():
        parts = name.split(".")
        if OR in parts:
            raise InvalidPredicate(f"in event patterns {OR} is no name of a field", attribute=name)
        into, taken = root, 1
        while taken < len(parts) and ".".join(parts[:taken]) not in fields:
            into = into.setdefault(parts[taken - 1], {})
            taken += 1
        into[".".join(parts[taken - 1 :])] = members
    return root
