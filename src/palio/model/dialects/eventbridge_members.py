"""From the constraints on a field to the members of its list in an event pattern.

A list is a disjunction, so the constraints of a filter on one field have to become one member, or, of a set
of values, one for each value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, summarize_address_range
from typing import Any, cast

from palio.errors import InvalidPredicate
from palio.model.expressions.address_functions import address_with_key
from palio.model.expressions.names import expression_of, is_computed
from palio.model.expressions.tree import AttributeOf, Call, Constant
from palio.model.like import ANY_TEXT, like_parts
from palio.model.operators import Op
from palio.model.predicate import Constraint
from palio.model.values import Type


@dataclass(frozen=True, slots=True)
class FieldConstraint:
    """A constraint, the field that it is about, and through which function: "" is the value itself."""

    constraint: Constraint
    field: str
    function: str
    pattern: str = ""  # of LIKE


def part_of(constraint: Constraint) -> FieldConstraint:
    """Which field a constraint is about."""
    if not is_computed(constraint.name):
        return FieldConstraint(constraint, constraint.name, "")
    match expression_of(constraint.name):
        case Call("lower" | "ip_key" as function, (AttributeOf(name),)):
            return FieldConstraint(constraint, name, function)
        case Call("like", (AttributeOf(name), Constant(str(pattern)))):
            return FieldConstraint(constraint, name, "like", pattern)
        case Call(
            "array_contains", (AttributeOf(name), Constant(str() | int() | float() as value))
        ):
            if constraint.op is Op.EQ and constraint.value is True:
                return FieldConstraint(Constraint(name, Op.EQ, value), name, "")
    raise _unsaid(constraint, constraint.name[1:])


def members_of(name: str, parts: Sequence[FieldConstraint]) -> list[Any]:
    """The members that say the same as all constraints together."""
    functions = {part.function for part in parts}
    constraints = [part.constraint for part in parts]
    ops = {one.op for one in constraints}
    if functions == {"ip_key"}:
        return [_addresses(name, constraints)]
    if all(map(_excludes, parts)):
        return [_anything_but(name, parts)]
    if functions == {""} and ops <= _RANGES and len(parts) == 2:
        return [{"numeric": _range(name, constraints)}]
    if len(parts) > 1:
        shown = " and ".join(map(str, constraints))
        raise InvalidPredicate(
            f"no member of a list in an event pattern says {shown}",
            attribute=name,
            remedy="palio.reduce drops constraints that others imply",
        )
    (part,) = parts
    return _of_function[part.function](name, part)


# ---- one constraint


def _plain(name: str, part: FieldConstraint) -> list[Any]:
    constraint = part.constraint
    op, value, type = constraint.op, cast(Any, constraint.value), constraint.type
    if op is Op.ABSENT:
        return [{"exists": False}]
    if op is Op.ANY and type is None:
        return [{"exists": True}]
    if op is Op.ANY and type in (Type.STRING, Type.BOOL):
        return [{"wildcard": "*"}] if type is Type.STRING else [True, False]
    if op is Op.IN:
        return [_literal(name, one, constraint) for one in value]
    if op is Op.EQ:
        return [_literal(name, value, constraint)]
    if op is Op.NE and type is Type.BOOL:
        return [not value]
    if op in _RANGES:
        return [{"numeric": _range(name, [constraint])}]
    if op is Op.PREFIX or op is Op.SUFFIX:
        return [{str(op): value}]
    if op is Op.CONTAINS:
        return [{"wildcard": _wildcard([value], around=True)}]
    raise _unsaid(constraint, name)


def _lower(name: str, part: FieldConstraint) -> list[Any]:
    op, value = part.constraint.op, cast(Any, part.constraint.value)
    texts = value if op is Op.IN else [value]
    if op is Op.ANY or op is Op.ABSENT or any(_is_upper(text) for text in texts):
        raise _unsaid(part.constraint, name)
    if op is Op.EQ or op is Op.IN:
        return [{"equals-ignore-case": text} for text in texts]
    if op is Op.PREFIX or op is Op.SUFFIX:
        return [{str(op): {"equals-ignore-case": value}}]
    raise _unsaid(part.constraint, name)


def _like(name: str, part: FieldConstraint) -> list[Any]:
    return [{"wildcard": _of_like(name, part)}]


_of_function: dict[str, Callable[[str, FieldConstraint], list[Any]]] = {
    "": _plain,
    "lower": _lower,
    "like": _like,
}
_RANGES = frozenset({Op.LT, Op.LE, Op.GT, Op.GE})


def _is_upper(text: object) -> bool:
    """lower(...) is never such a text."""
    return not isinstance(text, str) or text != text.lower()


def _literal(name: str, value: Any, constraint: Constraint) -> Any:
    if not isinstance(value, str | int | float) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise _unsaid(constraint, name)
    return value


def _range(name: str, constraints: Sequence[Constraint]) -> list[Any]:
    """The lower bound first."""
    found: list[Any] = []
    for one in sorted(constraints, key=lambda one: one.op in (Op.LT, Op.LE)):
        if isinstance(one.value, str):
            raise _unsaid(one, name)
        found += [str(one.op), _literal(name, one.value, one)]
    if len(found) == 4 and (found[0][0] == found[2][0] or found[1] >= found[3]):
        raise _unsaid(constraints[1], name)
    return found


def _addresses(name: str, constraints: Sequence[Constraint]) -> Any:
    """An address, or the block between two keys."""
    bounds = {one.op: one.value for one in constraints}
    first, last = (
        address_with_key(str(bounds.get(op, bounds.get(Op.EQ, "")))) for op in (Op.GE, Op.LE)
    )
    if first is None or last is None or len(bounds) < len(constraints):
        raise _unsaid(constraints[0], name)
    if bounds.keys() == {Op.EQ}:
        return str(first)
    blocks = list(_blocks(first, last)) if bounds.keys() == {Op.GE, Op.LE} else []
    if len(blocks) != 1:
        raise _unsaid(constraints[-1], name)
    return {"cidr": str(blocks[0])}


def _blocks(first: IPv4Address | IPv6Address, last: IPv4Address | IPv6Address) -> list[Any]:
    if isinstance(first, IPv4Address) and isinstance(last, IPv4Address) and first <= last:
        return list(summarize_address_range(first, last))
    if isinstance(first, IPv6Address) and isinstance(last, IPv6Address) and first <= last:
        return list(summarize_address_range(first, last))
    return []


# ---- what is excluded


_EXCLUDED = {
    Op.NE: "",
    Op.NOT_PREFIX: "prefix",
    Op.NOT_SUFFIX: "suffix",
    Op.NOT_CONTAINS: "wildcard",
}


def _excludes(part: FieldConstraint) -> bool:
    constraint = part.constraint
    if part.function == "like":
        return constraint.op is Op.EQ and constraint.value is False
    return constraint.op in _EXCLUDED and constraint.type not in (Type.BOOL, Type.TIME)


def _anything_but(name: str, parts: Sequence[FieldConstraint]) -> Any:
    constraints = [part.constraint for part in parts]
    values = [cast(Any, one.value) for one in constraints]
    kinds = {_EXCLUDED.get(one.op, "") for one in constraints}
    functions = {part.function for part in parts}
    if functions == {"lower"}:
        if kinds != {""} or any(map(_is_upper, values)):
            raise _unsaid(constraints[0], name)
        return {"anything-but": {"equals-ignore-case": _one_or_many(values)}}
    if functions == {""} and kinds == {""}:
        if len({isinstance(value, str) for value in values}) > 1:
            raise _unsaid(constraints[-1], name)
        return {"anything-but": _one_or_many([_literal(name, v, constraints[0]) for v in values])}
    if "lower" in functions or not all(isinstance(value, str | bool) for value in values):
        raise _unsaid(constraints[-1], name)
    if "" in values and kinds != {""}:
        raise _unsaid(constraints[0], name)
    if functions == {""} and len(kinds) == 1 and kinds <= {"prefix", "suffix"}:
        return {"anything-but": {kinds.pop(): _one_or_many(values)}}
    return {"anything-but": {"wildcard": _one_or_many([_excluded(name, part) for part in parts])}}


def _excluded(name: str, part: FieldConstraint) -> str:
    """As a wildcard."""
    op, value = part.constraint.op, cast(Any, part.constraint.value)
    if part.function == "like":
        return _of_like(name, part)
    if op is Op.NOT_CONTAINS:
        return _wildcard([value], around=True)
    return _wildcard({Op.NOT_PREFIX: [value, ""], Op.NOT_SUFFIX: ["", value]}.get(op, [value]))


def _one_or_many(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else list(values)


# ---- wildcards


def _wildcard(pieces: Sequence[str], around: bool = False) -> str:
    escaped = "*".join(piece.replace("\\", "\\\\").replace("*", "\\*") for piece in pieces)
    if around:
        return f"*{escaped}*" if escaped else "*"
    return escaped


def _of_like(name: str, part: FieldConstraint) -> str:
    pieces = [""]
    for char, is_wild in like_parts(part.pattern):
        if is_wild and char != ANY_TEXT:
            raise _unsaid(part.constraint, name)
        if not is_wild:
            pieces[-1] += char
        elif pieces[-1] or len(pieces) == 1:  # of %% one
            pieces.append("")
    return _wildcard(pieces)


def _unsaid(constraint: Constraint, name: str) -> InvalidPredicate:
    return InvalidPredicate(
        f"no event pattern says {constraint}",
        attribute=name,
        remedy="docs/reference/eventbridge.md lists what one can say",
    )
