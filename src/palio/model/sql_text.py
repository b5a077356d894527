"""Names and values as SQL that `parse` reads back to the same."""

from __future__ import annotations

import math
import re
from datetime import datetime

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
