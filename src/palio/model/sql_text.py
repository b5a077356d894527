"""Printing predicates as SQL that `parse` reads back to the same predicate.

Spark SQL reads it with the same meaning, but for `typeof(x) = 'int'` (an `any` of one type): there
a column has its type even where it is NULL, and other names for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from palio.model.predicate import Constraint, Filter, Op, Predicate
from palio.model.values import Value, format_instant

# Words that SQL's grammar wants for itself; as names they need backticks.
RESERVED = frozenset(
    [
        "ALL",
        "ALTER",
        "AND",
        "ANTI",
        "ANY",
        "ARRAY",
        "AS",
        "ASC",
        "AT",
        "BETWEEN",
        "CALL",
        "CASE",
        "CAST",
        "CONNECT_BY_ROOT",
        "CREATE",
        "CROSS",
        "CURRENT_CATALOG",
        "CURRENT_DATABASE",
        "CURRENT_DATE",
        "CURRENT_SCHEMA",
        "CURRENT_TIME",
        "CURRENT_TIMESTAMP",
        "CURRENT_USER",
        "DATE",
        "DESC",
        "DESCRIBE",
        "DISTINCT",
        "DIV",
        "DROP",
        "ELSE",
        "END",
        "ESCAPE",
        "EXCEPT",
        "EXECUTE",
        "EXISTS",
        "EXPLAIN",
        "FALSE",
        "FETCH",
        "FOR",
        "FROM",
        "FULL",
        "GLOB",
        "GRANT",
        "GROUP",
        "HAVING",
        "IF",
        "ILIKE",
        "IN",
        "INNER",
        "INSERT",
        "INTERSECT",
        "INTERVAL",
        "INTO",
        "IS",
        "JOIN",
        "LATERAL",
        "LEFT",
        "LIKE",
        "LIMIT",
        "LIST",
        "LOCALTIME",
        "LOCALTIMESTAMP",
        "MAP",
        "MINUS",
        "NATURAL",
        "NOT",
        "NOTNULL",
        "NULL",
        "NULLABLE",
        "OBJECT",
        "ON",
        "OPTIMIZE",
        "OR",
        "ORDER",
        "OUTER",
        "OVERLAPS",
        "PARTITIONED_BY",
        "PREPARE",
        "PRIOR",
        "QUALIFY",
        "RANGE",
        "REGEXP",
        "RENAME",
        "RETURNING",
        "REVOKE",
        "RIGHT",
        "RLIKE",
        "ROLLBACK",
        "SELECT",
        "SEMI",
        "SERDEPROPERTIES",
        "SESSION_USER",
        "SHOW",
        "SOME",
        "STRUCT",
        "TABLE",
        "TABLESAMPLE",
        "THEN",
        "TIME",
        "TIMESTAMP",
        "TIMESTAMP_LTZ",
        "TIMESTAMP_NTZ",
        "TRUE",
        "UNCACHE",
        "UNION",
        "UNIQUE",
        "UNNEST",
        "USING",
        "VACUUM",
        "VALUES",
        "VARIANT",
        "WHEN",
        "WHERE",
        "WITH",
        "XOR",
    ]
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPED = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\000"}
_ESCAPED["\x1a"] = "\\Z"
_TO_ESCAPE = re.compile(r"[\\'\n\r\t\x00\x1a]")


def name_sql(name: str) -> str:
    """A name, in backticks where it needs them."""
    if _PLAIN.fullmatch(name) and name.upper() not in RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def value_sql(value: Value) -> str:
    """A literal of this value and type."""
    if isinstance(value, str):
        return "'" + _TO_ESCAPE.sub(lambda found: _ESCAPED[found[0]], value) + "'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        if math.isinf(value):
            return f"CAST('{'-' * (value < 0)}Infinity' AS DOUBLE)"
        return repr(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{format_instant(value)}'"
    return str(value)


_FUNCTIONS = {Op.PREFIX: "startswith", Op.SUFFIX: "endswith", Op.CONTAINS: "contains"}
_POSITIVE = {
    Op.NOT_PREFIX: Op.PREFIX,
    Op.NOT_SUFFIX: Op.SUFFIX,
    Op.NOT_CONTAINS: Op.CONTAINS,
}


def _string_op(constraint: Constraint) -> str:
    name, text = name_sql(constraint.name), str(constraint.value)
    op = _POSITIVE.get(constraint.op, constraint.op)
    negated = op is not constraint.op
    if not text or any(char in text for char in "%_\\"):
        call = f"{_FUNCTIONS[op]}({name}, {value_sql(text)})"
        return f"NOT {call}" if negated else call
    pattern = ("" if op is Op.PREFIX else "%") + text + ("" if op is Op.SUFFIX else "%")
    return f"{name} {'NOT ' * negated}LIKE {value_sql(pattern)}"


def _set(constraint: Constraint) -> str:
    members: Any = constraint.value
    return f"{name_sql(constraint.name)} IN ({', '.join(map(value_sql, members))})"


def _any(constraint: Constraint) -> str:
    if constraint.type is None:
        return f"{name_sql(constraint.name)} IS NOT NULL"
    return f"typeof({name_sql(constraint.name)}) = '{constraint.type}'"


_PRINT: dict[Op, Callable[[Constraint], str]] = {
    Op.IN: _set,
    Op.ANY: _any,
    Op.ABSENT: lambda constraint: f"{name_sql(constraint.name)} IS NULL",
    **dict.fromkeys((*_FUNCTIONS, *_POSITIVE), _string_op),
}


def constraint_sql(constraint: Constraint) -> str:
    special = _PRINT.get(constraint.op)
    if special is not None:
        return special(constraint)
    value: Any = constraint.value
    return f"{name_sql(constraint.name)} {constraint.op} {value_sql(value)}"


def filter_sql(conjunction: Filter) -> str:
    return " AND ".join(map(constraint_sql, conjunction.constraints)) or "TRUE"


def predicate_sql(predicate: Predicate) -> str:
    """The predicate as SQL.

    >>> from palio.model.language import parse
    >>> predicate_sql(parse("x in (3, 1) or `y z` > 2.5"))
    'x IN (1, 3) OR `y z` > 2.5'
    """
    return " OR ".join(map(filter_sql, predicate.filters)) or "FALSE"
