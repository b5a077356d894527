"""The table, part one: comparisons, and what chooses among values."""

from __future__ import annotations

from palio.model.expressions import cesql_functions, logic, patterns, regex_functions
from palio.model.expressions.casts import CASTS
from palio.model.expressions.table.entry import LISTED, Function, lines

_COMPARISONS = (
    ("equal", logic.equal, "=", "equal; NULL for values of different types"),
    ("not_equal", logic.not_equal, "!=", "not equal; also `<>`"),
    ("less", logic.less, "<", "less: numbers by value, strings by code points, arrays by elements"),
    ("less_or_equal", logic.less_or_equal, "<=", "less or equal"),
    ("greater", logic.greater, ">", "greater; NaN is above all numbers"),
    ("greater_or_equal", logic.greater_or_equal, ">=", "greater or equal"),
)
_CASTS = {
    "STRING": ("string", "a number or a time as a string", "CAST(1.0D AS STRING)"),
    "BIGINT": ("bigint", "a 64-bit integer; of a fraction the whole part", "CAST('42' AS BIGINT)"),
    "INT": ("int", "a 32-bit integer", "CAST(2.9D AS INT)"),
    "SMALLINT": ("smallint", "a 16-bit integer", "CAST('7' AS SMALLINT)"),
    "TINYINT": ("tinyint", "an 8-bit integer", "CAST('7' AS TINYINT)"),
    "DOUBLE": ("double", "a double", "CAST('1e3' AS DOUBLE)"),
    "FLOAT": ("float", "a double that has been through 32 bits", "CAST('0.1' AS FLOAT)"),
    "BOOLEAN": (
        "boolean",
        "a boolean, of words such as `yes` or of a number",
        "CAST('yes' AS BOOLEAN)",
    ),
    "TIMESTAMP": ("timestamp to_timestamp", "a time", "CAST('2024-03-01 10:00:00' AS TIMESTAMP)"),
    "DATE": ("", "the day of a time", "CAST('2024-03-01' AS DATE)"),
}
LOGIC = lines(
    *[
        Function(name, compute, "a b", meaning, f"2 {sign} 3", written=f"a {sign} b")
        for name, compute, sign, meaning in _COMPARISONS
    ],
    Function(
        "same", logic.same, "a b", "equal, or both NULL; never NULL", "NULL <=> NULL",
        is_strict=False, words="equal_null", written="a <=> b",
    ),
    Function(
        "in", logic.among, "value member member...", "equal to one of a list", "2 IN (1, 2)",
        is_strict=False, written="value IN (member, ...)", most=LISTED,
    ),
    Function(
        "between", logic.between, "value low high", "from one value to another, both included",
        "2 BETWEEN 1 AND 3", is_strict=False, written="value BETWEEN low AND high",
    ),
    Function(
        "like", patterns.like, "text pattern",
        "matches a pattern: `%` is any characters, `_` is one, `\\` takes them literally",
        "'palio' LIKE 'p_l%'", words="like", written="text LIKE pattern",
    ),
    Function(
        "like escape", patterns.like, "text pattern mark", "LIKE with another mark than `\\`",
        "'50%' LIKE '50#%' ESCAPE '#'", written="text LIKE pattern ESCAPE mark",
    ),
    Function(
        "like any", patterns.like_any, "text pattern pattern...", "matches one of several patterns",
        "'palio' LIKE ANY ('s%', '%o')", is_strict=False, written="text LIKE ANY (pattern, ...)",
    ),
    Function(
        "like all", patterns.like_all, "text pattern pattern...", "matches all of several patterns",
        "'palio' LIKE ALL ('p%', '%o')", is_strict=False, written="text LIKE ALL (pattern, ...)",
    ),
    Function(
        "rlike", regex_functions.rlike, "text regex",
        "a regular expression (RE2) is found in the text", "'palio' RLIKE '^p.*o$'",
        words="rlike regexp regexp_like", written="text RLIKE regex",
    ),
    Function("nullif", logic.nullif, "a b", "NULL if both are equal, else the first", "nullif(3, 3)", is_strict=False),
    Function("least", logic.least, "a b...", "the least; NULLs are left out", "least(3, NULL, 2)", is_strict=False),
    Function("greatest", logic.greatest, "a b...", "the greatest; NULLs are left out", "greatest(3, NULL, 2)", is_strict=False),
    *[
        Function(f"cast as {type_}", CASTS[type_], "value", meaning, example, words=words,
                 written=f"CAST(value AS {type_})")
        for type_, (words, meaning, example) in _CASTS.items()
    ],
    Function("cesql_int", cesql_functions.cesql_int, "value", "a 32-bit integer, as CESQL casts", "cesql_int('+5')", is_of_spark=False),
    Function("cesql_bool", cesql_functions.cesql_bool, "value", "a boolean, as CESQL casts", "cesql_bool('TRUE')", is_of_spark=False),
    Function("cesql_string", cesql_functions.cesql_string, "value", "a string, as CESQL casts", "cesql_string(FALSE)", is_of_spark=False),
    Function("cesql_equal", cesql_functions.cesql_equal, "a b", "equal, after a is cast to the type of b as in CESQL", "cesql_equal('5', 5)", is_of_spark=False),
)  # fmt: skip
