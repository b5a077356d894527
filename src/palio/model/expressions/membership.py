"""Conditions on arrays that ask for one of several elements, as questions for each of these.

    arrays_overlap(tags, array('a', 'b'))     array_contains(tags, 'a') OR array_contains(tags, 'b')
    exists(tags, t -> t IN ('a', 'b'))        the same

Tables look such elements up. Both sides are TRUE for the same messages; they are not FALSE for the
same: of `[1]`, `exists(tags, t -> t = 'a')` is NULL, and `array_contains(tags, 'a')` is FALSE. So what
is negated stays as it is.
"""

from __future__ import annotations

from palio.model.expressions.tree import (
    AttributeOf,
    Call,
    Constant,
    Expression,
    Lambda,
    Variable,
)

MEMBER_CONDITIONS = frozenset({"arrays_overlap", "exists"})
MEMBERS_MAX = 64
"""Elements: each becomes a filter, and a condition that asks for more is judged as a whole."""


def may_ask_for_members(condition: Expression | str) -> bool:
    """Can it be such a condition, once its slots are filled?"""
    return (
        isinstance(condition, Call)
        and condition.function in MEMBER_CONDITIONS
        and any(isinstance(one, AttributeOf) for one in condition.arguments)
    )


def members_of(condition: Expression) -> tuple[Call, ...]:
    """The questions one of which is TRUE where the condition is; none where there are too many, or it is
    no such condition."""
    if not isinstance(condition, Call) or not may_ask_for_members(condition):
        return ()
    array, asked = condition.arguments
    if isinstance(array, AttributeOf) and isinstance(asked, Lambda):
        values = _equal_to(asked.body, Variable(asked.level))
    else:
        if not isinstance(array, AttributeOf):
            array, asked = asked, array
        is_listed = isinstance(asked, Call) and asked.function == "array"
        values = _values(asked.arguments) if isinstance(asked, Call) and is_listed else None
    if not values or len(values) > MEMBERS_MAX:
        return ()
    return tuple(Call("array_contains", (array, value)) for value in values)


def _equal_to(body: Expression, element: Variable) -> list[Constant] | None:
    """The literals one of which an element equals wherever the body of a lambda is TRUE; None: it asks for
    something else."""
    if not isinstance(body, Call):
        return None
    if body.function == "or":
        parts = [_equal_to(part, element) for part in body.arguments]
        return None if None in parts else [one for part in parts for one in part or ()]
    if body.function == "in" and body.arguments[0] == element:
        return _values(body.arguments[1:])
    if body.function == "equal" and element in body.arguments:
        return _values(tuple(one for one in body.arguments if one != element))
    return None


def _values(listed: tuple[Expression, ...]) -> list[Constant] | None:
    """Literals. A NULL among them equals no element."""
    found = [one for one in listed if isinstance(one, Constant)]
    return [one for one in found if one.value is not None] if len(found) == len(listed) else None
