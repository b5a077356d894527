"""Query documents in the style of MongoDB, read as predicates.

    {"qty": {"$gt": 5}, "$or": [...]}  --tests of fields--> Palio's SQL --parse--> predicate

A condition holds for a field if its value satisfies it, or an element of it where it is an array;
`arrays` says which fields may hold arrays, and fewer mean simpler predicates. Negative operators select
exactly what the positive ones do not. Depth and number of values are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, TypeAlias

from palio.errors import LimitExceeded
from palio.model.dialects.documents import RefusedRule, document_of, located, within
from palio.model.dialects.mongo_expressions import expression_condition
from palio.model.dialects.mongo_fields import (
    LAMBDAS_MAX,
    AnyArrays,
    ElementFields,
    Fields,
    FieldTest,
    MessageFields,
    exists,
)
from palio.model.dialects.mongo_operators import TESTS, equals, is_there, matches
from palio.model.dialects.mongo_values import is_value, regex_of, value_of
from palio.model.dialects.translation import (
    EACH,
    FALSE,
    LIST_MAX,
    SQL_MAX,
    TRUE,
    Sql,
    all_of,
    any_of,
    complement,
    predicate_of,
)
from palio.model.language import FILTERS_MAX
from palio.model.predicate import Predicate


def read(
    query: object,
    *,
    arrays: Collection[str] | None = None,
    limit: int = FILTERS_MAX,
    shape_max: int = SQL_MAX,
) -> Predicate:
    """The predicate of a query document: a text in JSON, or what it says as dicts and lists.

    `arrays` are the names of the attributes that may hold arrays; without it, any may. `limit` bounds
    the number of filters, `shape_max` the SQL without its literals. Raises ParseError, which points at the character of a text.

    >>> read({"qty": {"$gte": 5, "$lt": 9}, "status": {"$in": ["A", "B"]}}, arrays=())
    Predicate(qty >= 5 AND qty < 9 AND status IN ('A', 'B'))
    >>> read({"tags": "red"})
    Predicate(tags = 'red' OR array_contains(tags, 'red'))
    """
    document, text = document_of(query, "query")
    fields = MessageFields(AnyArrays() if arrays is None else frozenset(arrays))
    try:
        return predicate_of(_condition(document, fields, text), text, limit, shape_max)
    except LimitExceeded:
        whole = replace(fields, stays_whole=True)
        return predicate_of(_condition(document, whole, text), text, limit, shape_max)


def _condition(document: Any, fields: Fields, text: str) -> Sql:
    try:
        return _query(document, fields)
    except RefusedRule as error:
        raise located(error, text) from None


def _query(document: Any, fields: Fields) -> Sql:
    """All members of a document hold."""
    if not isinstance(document, dict):
        raise RefusedRule("a query is an object")
    parts = []
    for name, operand in document.items():
        with within(name):
            if name in _LOGIC:
                parts.append(_LOGIC[name](operand, fields))
            elif name.startswith("$"):
                raise RefusedRule(_unknown(name))
            else:
                parts.append(_field(name, operand, fields))
    return all_of(parts)


def _unknown(name: str) -> str:
    known = ", ".join(sorted([*_LOGIC, *TESTS, *_FORMS, "$regex"]))
    return f"the operator {name[:40]} is not supported; there are {known}"


# ---- logic


def _queries(operand: Any, fields: Fields) -> list[Sql]:
    if not isinstance(operand, list | tuple) or not operand:
        raise RefusedRule("an array of queries is needed here")
    found = []
    for at, one in enumerate(operand):
        with within(at):
            found.append(_query(one, fields))
    return found


def _and(operand: Any, fields: Fields) -> Sql:
    return all_of(_queries(operand, fields))


def _or(operand: Any, fields: Fields) -> Sql:
    return any_of(_queries(operand, fields))


def _nor(operand: Any, fields: Fields) -> Sql:
    return all_of(map(complement, _queries(operand, fields)))


def _expr(operand: Any, fields: Fields) -> Sql:
    if not isinstance(fields, MessageFields):
        raise RefusedRule("$expr stands outside of $elemMatch only")
    return expression_condition(operand)


def _comment(_operand: Any, _fields: Fields) -> Sql:
    return TRUE


_LOGIC: dict[str, Callable[[Any, Fields], Sql]] = {
    "$and": _and,
    "$or": _or,
    "$nor": _nor,
    "$expr": _expr,
    "$comment": _comment,
}


# ---- fields


def _has_operators(operand: Any) -> bool:
    return (
        isinstance(operand, dict)
        and any(key.startswith("$") for key in operand)
        and not is_value(operand)
    )


def _field(path: str, operand: Any, fields: Fields) -> Sql:
    return _conditions(operand, lambda test: fields.holds(path, test), fields)


def _conditions(operand: Any, holds: Callable[[FieldTest], Sql], fields: Fields) -> Sql:
    """All operators hold for a field; `holds` says where it is looked for."""
    if not _has_operators(operand):
        return holds(equals(operand))
    parts = []
    for name, inner in operand.items():
        with within(name):
            if name in TESTS:
                parts.append(holds(TESTS[name](inner)))
            elif name in _FORMS:
                parts.append(_FORMS[name](inner, holds, fields))
            elif name == "$regex":
                parts.append(holds(matches(regex_of(inner, operand.get("$options", "")))))
            elif name == "$options" and "$regex" in operand:
                continue
            else:
                raise RefusedRule(_unknown(name))
    return all_of(parts)


_Holds: TypeAlias = Callable[[FieldTest], Sql]


def _not(operand: Any, holds: _Holds, fields: Fields) -> Sql:
    return complement(_conditions(operand, holds, fields))


def _not_equal(operand: Any, holds: _Holds, _fields: Fields) -> Sql:
    return complement(holds(equals(operand)))


def _not_in(operand: Any, holds: _Holds, _fields: Fields) -> Sql:
    if not isinstance(operand, list | tuple) or len(operand) <= LIST_MAX:
        return complement(holds(TESTS["$in"](operand)))
    parts = [operand[at : at + LIST_MAX] for at in range(0, len(operand), LIST_MAX)]
    return all_of(complement(holds(TESTS["$in"](part))) for part in parts)


def _exists(operand: Any, holds: _Holds, _fields: Fields) -> Sql:
    is_wanted = value_of(operand)
    if not isinstance(is_wanted, bool | int | float):
        raise RefusedRule("$exists takes true or false")
    found = holds(is_there(None))
    return found if is_wanted else complement(found)


def _all(operand: Any, holds: _Holds, fields: Fields) -> Sql:
    if not isinstance(operand, list | tuple):
        raise RefusedRule("$all takes an array")
    parts = []
    for at, one in enumerate(operand):
        with within(at):
            if isinstance(one, dict) and "$elemMatch" in one:
                parts.append(_conditions(one, holds, fields))
            else:
                parts.append(holds(equals(one)))
    return all_of(parts) if parts else FALSE


def _element_match(operand: Any, holds: _Holds, _fields: Fields) -> Sql:
    """One element of an array satisfies all conditions."""
    if not isinstance(operand, dict):
        raise RefusedRule("$elemMatch takes an object")
    if _has_operators(operand) and not operand.keys() & _LOGIC.keys():
        condition = _conditions(operand, lambda test: test.value(EACH), ElementFields())
    else:
        condition = _query(operand, ElementFields())
    if condition.lambdas >= LAMBDAS_MAX:
        raise RefusedRule(f"arrays are searched within arrays to a depth of {LAMBDAS_MAX}")
    return holds(FieldTest(lambda field: exists(field, condition)))


_FORMS: dict[str, Callable[[Any, _Holds, Fields], Sql]] = {
    "$not": _not,
    "$ne": _not_equal,
    "$nin": _not_in,
    "$exists": _exists,
    "$all": _all,
    "$elemMatch": _element_match,
}
