"""CESQL, the expression language of CloudEvents, read as predicates (CESQL 1.0).

    text --parse_cesql--> tree --> conditions in Palio's SQL --parse--> predicate

A message is selected where the value is TRUE and nothing that was evaluated is an error: a missing attribute, a cast
that fails, a division by zero. An attribute has the type that it has in the message, and the casts are asymmetric;
`cesql_int(x)` and the like do them. docs/reference/cloudevents.md tells the details.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from palio.errors import LimitExceeded, ParseError
from palio.model.dialects.cesql_conditions import (
    ALWAYS,
    ERROR,
    FALSEHOOD,
    NOTHING,
    CesqlCondition,
    atom,
    conjunction,
    difference,
    disjunction,
    opposite,
)
from palio.model.dialects.cesql_evaluation import (
    CesqlResult,
    evaluate,
    evaluated,
    like_pattern,
)
from palio.model.dialects.cesql_parser import parse_cesql
from palio.model.dialects.cesql_tree import (
    BOOLEAN,
    EQUALITY,
    INTEGER,
    ORDERS,
    STRING,
    CesqlAttribute,
    CesqlExists,
    CesqlJunction,
    CesqlOperation,
    In,
    Invocation,
    Like,
    Literal,
    Negation,
    Node,
    is_constant,
    parts_of,
    type_of,
)
from palio.model.dialects.cesql_values import (
    CALLS,
    IsErrorAlways,
    Value,
    checked,
    constant,
    integer,
    string,
)
from palio.model.dialects.translation import SQL_MAX, Binding, Sql, called, predicate_of
from palio.model.language import FILTERS_MAX
from palio.model.predicate import Predicate
from palio.model.sql_text import name_sql, value_sql

__all__ = ["CesqlResult", "evaluate", "read"]

STRING_ATTRIBUTES = frozenset(
    "id source type specversion subject datacontenttype dataschema".split()
)
"""Context attributes that are strings in every event."""


def read(text: str, *, limit: int = FILTERS_MAX, shape_max: int = SQL_MAX) -> Predicate:
    """The predicate of an expression that gives a Boolean.

    `limit` bounds the number of filters, `shape_max` the SQL without its literals. Raises ParseError, which points at the character.

    >>> read("source LIKE 'https://%' AND EXISTS subject")
    Predicate(source LIKE 'https://%' AND subject IS NOT NULL)
    """
    return predicate_of(condition_of(text).holds, text, limit, shape_max)


def condition_of(text: str) -> CesqlCondition:
    """When an expression that gives a Boolean holds, as SQL. Raises ParseError."""
    tree = parse_cesql(text)
    _check(tree, text)
    if type_of(tree) not in (BOOLEAN, None):
        reason = f"the expression gives {_ARTICLE[str(type_of(tree))]}, and a filter is a Boolean"
        raise ParseError(reason, text, tree.position)
    try:
        return condition_of_tree(tree)
    except LimitExceeded as error:
        raise LimitExceeded(error.reason, text) from None


_ARTICLE = {INTEGER: "an Integer", STRING: "a String"}


def _check(node: Node, text: str) -> None:
    if isinstance(node, Invocation) and node.signature is None:
        count = len(node.arguments)
        reason = f"there is no function {node.name} of {count} argument{'s' * (count != 1)}"
        raise ParseError(reason, text, node.position)
    for part in parts_of(node):
        _check(part, text)


def condition_of_tree(tree: Node) -> CesqlCondition:
    """Of the whole expression: an attribute alone is not cast."""
    if isinstance(tree, CesqlAttribute):
        text = Sql(f"{name_sql(tree.name)} = TRUE", Binding.COMPARISON)
        return atom(text, frozenset({tree.name}), is_total=True)
    return _condition(tree)


# ---- conditions


def _condition(node: Node) -> CesqlCondition:
    """When a Boolean holds, or what is cast to one."""
    if is_constant(node):
        outcome = evaluated(Invocation("BOOL", (node,), node.position), {})
        if outcome.error is not None:
            return ERROR
        return ALWAYS if outcome.value else FALSEHOOD
    try:
        if type_of(node) == BOOLEAN:
            return _CONDITIONS[type(node)](node)
        value = _value(node)
        text = called("cesql_bool", value.sql)
        is_total = value.type == INTEGER and value.is_total
        whole = Sql(f"{text.text} = TRUE", Binding.COMPARISON)
        return atom(whole, value.attributes, is_total=is_total)
    except IsErrorAlways:
        return ERROR


def _junction(node: CesqlJunction) -> CesqlCondition:
    parts = [_condition(one) for one in node.operands]
    return conjunction(parts) if node.operator == "AND" else disjunction(parts)


def _negation(node: Negation) -> CesqlCondition:
    return opposite(_condition(node.operand))


def _exists(node: CesqlExists) -> CesqlCondition:
    name = name_sql(node.name)
    is_there = Sql(f"{name} IS NOT NULL", Binding.COMPARISON)
    is_missing = Sql(f"{name} IS NULL", Binding.COMPARISON)
    known = frozenset({node.name})
    return CesqlCondition(
        is_there, is_missing, ALWAYS.holds, known, attributes=NOTHING, value=is_there.text
    )


def _operation(node: CesqlOperation) -> CesqlCondition:
    if node.operator == "XOR":
        return difference(_condition(node.left), _condition(node.right))
    if node.operator in EQUALITY:
        found = _equality(node.left, node.right)
        return found if node.operator == "=" else opposite(found)
    left, right = integer(_value(node.left)), integer(_value(node.right))
    assert node.operator in ORDERS
    return _compared(left, node.operator, right)


def _compared(left: Value, operator: str, right: Value) -> CesqlCondition:
    sides = left.sql.within(Binding.SUM), right.sql.within(Binding.SUM)
    text = Sql(f"{sides[0]} {operator} {sides[1]}", Binding.COMPARISON)
    attributes = left.attributes | right.attributes
    return atom(text, attributes, is_total=left.is_total and right.is_total)


def _equality(left: Node, right: Node) -> CesqlCondition:
    """The left side is cast to the type of the right one."""
    wanted = type_of(right)
    if wanted == BOOLEAN:
        return opposite(difference(_condition(left), _condition(right)))
    value, other = _value(left), _value(right)
    if wanted == INTEGER:
        return _compared(integer(value), "=", other)
    if wanted == STRING and isinstance(right, Literal):
        return _equal_to_text(value, str(right.value))
    if wanted == STRING or other.type == STRING:
        return _compared(string(value), "=", other)
    attributes = value.attributes | other.attributes
    return atom(_equal(value, other), attributes, is_total=False)


def _equal(value: Value, other: Value) -> Sql:
    text = called("cesql_equal", value.sql, other.sql)
    return Sql(f"{text.text} = TRUE", Binding.COMPARISON)


def _equal_to_text(value: Value, text: str) -> CesqlCondition:
    literal = Value(Sql(value_sql(text)), STRING, NOTHING)
    found = _compared(string(value), "=", literal)
    if value.type is None and not _begins_like_another_type(text):
        return _plainly(found, f"{value.sql.text} = {literal.sql.text}")
    return found


def _plainly(condition: CesqlCondition, text: str) -> CesqlCondition:
    """With a constraint on the attribute itself, where only a string can satisfy the condition."""
    plain = Sql(text, Binding.COMPARISON)
    return CesqlCondition(
        plain,
        condition.fails,
        condition.defined,
        condition.holds_with,
        condition.fails_with,
        condition.attributes,
        condition.value,
    )


def _begins_like_another_type(text: str) -> bool:
    """Numbers, times, true, false, Infinity and NaN are texts too, once they are cast."""
    return not text or text[0] in "0123456789+-tfIN"


def _like(node: Like) -> CesqlCondition:
    return _matches(_value(node.operand), like_pattern(node.pattern))


def attribute_matches(name: str, pattern: str) -> CesqlCondition:
    """An attribute as a string matches a pattern of Palio's LIKE."""
    return _matches(_value(CesqlAttribute(name, 0)), pattern)


def _matches(value: Value, pattern: str) -> CesqlCondition:
    literal = value_sql(pattern)
    text = Sql(f"{string(value).sql.text} LIKE {literal}", Binding.COMPARISON)
    found = atom(text, value.attributes, is_total=value.is_total)
    is_literal = pattern[:1] not in ("%", "_", "\\")
    if value.type is None and is_literal and not _begins_like_another_type(pattern):
        return _plainly(found, f"{value.sql.text} LIKE {literal}")
    return found


def _in(node: In) -> CesqlCondition:
    """Members are cast to the type of the operand, and asked from the left until one is equal."""
    literals = [one.value for one in node.members if isinstance(one, Literal)]
    if len(literals) == len(node.members) and all(isinstance(one, str) for one in literals):
        value = _value(node.operand)
        if value.type == STRING and not is_constant(node.operand):
            members = ", ".join(map(value_sql, literals))
            text = Sql(f"{value.sql.within(Binding.SUM)} IN ({members})", Binding.COMPARISON)
            return atom(text, value.attributes, is_total=value.is_total)
    return disjunction([_member(node.operand, one) for one in node.members])


def _member(operand: Node, member: Node) -> CesqlCondition:
    if type_of(operand) is not None:
        try:
            return _equality(member, operand)
        except IsErrorAlways:
            return ERROR
    if isinstance(member, Literal) and isinstance(member.value, str):
        value = _value(operand)
        if value.type == STRING or not _begins_like_another_type(member.value):
            return _literal_member(value, member.value)
    return _equality_of(member, operand)


def _literal_member(value: Value, text: str) -> CesqlCondition:
    """A literal is cast to the type of the attribute, which is an error unless that is String."""
    other = Sql(value_sql(text))
    if value.type == STRING:
        return _compared(value, "=", Value(other, STRING, NOTHING))
    whole = Sql(f"cesql_equal({other.text}, {value.sql.text}) = TRUE", Binding.COMPARISON)
    found = atom(whole, value.attributes, is_total=False)
    return _plainly(found, f"{value.sql.text} = {other.text}")


def _equality_of(member: Node, operand: Node) -> CesqlCondition:
    try:
        return _equality(member, operand)
    except IsErrorAlways:
        return ERROR


def _call(node: Invocation) -> CesqlCondition:
    """BOOL(x), the one function that gives a Boolean."""
    return _condition(node.arguments[0])


_CONDITIONS: dict[type[Any], Callable[[Any], CesqlCondition]] = {
    CesqlJunction: _junction,
    Negation: _negation,
    CesqlExists: _exists,
    CesqlOperation: _operation,
    Like: _like,
    In: _in,
    Invocation: _call,
}


# ---- values


def _value(node: Node) -> Value:
    if is_constant(node):
        outcome = evaluated(node, {})
        if outcome.error is not None:
            raise IsErrorAlways
        return constant(outcome.value)
    if isinstance(node, CesqlAttribute):
        known = STRING if node.name in STRING_ATTRIBUTES else None
        return Value(Sql(name_sql(node.name)), known, frozenset({node.name}))
    if type_of(node) == BOOLEAN:
        condition = _condition(node)
        if condition is ERROR:
            raise IsErrorAlways
        attributes = condition.holds_with & condition.fails_with
        is_total = condition.attributes == attributes
        return Value(Sql(condition.as_value, Binding.OR), BOOLEAN, attributes, is_total)
    if isinstance(node, Invocation):
        return CALLS[node.name](*map(_value, node.arguments))
    if isinstance(node, Negation):
        operand = integer(_value(node.operand))
        return checked(f"-({operand.sql.text})", operand)
    assert isinstance(node, CesqlOperation)
    left, right = integer(_value(node.left)), integer(_value(node.right))
    operator = "DIV" if node.operator == "/" else node.operator
    if operator in ("DIV", "%") and right.sql.text == "0":
        raise IsErrorAlways
    return checked(
        f"{left.sql.within(Binding.ATOM)} {operator} {right.sql.within(Binding.ATOM)}", left, right
    )
