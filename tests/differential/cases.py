"""Cases written by hand: precedence, NULL, NaN, signed zeros, the order of strings, patterns.

`SAME` has the same text in Spark SQL and DuckDB, `BOTH` is written once for each, `SPARK` is about
literals that only Spark has. `ODD` need not be supported, but what Palio accepts must be right.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pyarrow as pa
from tests.differential.generate import INF, INT_MAX, INT_MIN, NAN, Text

_INTS = (0, 1, 2, 5, -5, 2**53, 2**53 + 1, -(2**53) - 1, INT_MIN, INT_MAX)
_FLOATS = (0.0, -0.0, 0.5, 1.0, 5.0, 0.1, NAN, INF, -INF, 2.0**53)
_STRINGS = ("", "a", "ab", "B", "é", "z", "\uffee", "😀", "50%", "a\\b")
_TIMES = tuple(
    datetime.fromisoformat(text).replace(tzinfo=UTC)
    for text in (
        "2013-01-31 00:00:00",
        "2013-01-31 09:59:59.999999",
        "2013-01-31 10:00:00",
        "2013-01-31 10:00:00.000001",
        "2013-02-01 00:00:00",
    )
)
_TRUTHS = tuple(itertools.product((True, False, None), repeat=2))


def table() -> pa.Table:
    """Every value of each pool at least once, and rows in which each column is missing."""
    count = 22
    filled: dict[str, tuple[object, ...]] = {
        "x": _INTS,
        "y": _FLOATS,
        "s": _STRINGS,
        "seen": _TIMES * 2,
    }
    columns = {
        name: [pool[n] if n < len(pool) else None for n in range(count)]
        for name, pool in filled.items()
    }
    columns["s"] = columns["s"][5:] + columns["s"][:5]  # so that s and x are not missing together
    columns["b"] = [_TRUTHS[n % 9][0] for n in range(count)]
    columns["c"] = [_TRUTHS[n % 9][1] for n in range(count)]
    types = {"x": pa.int64(), "y": pa.float64(), "s": pa.string(), "b": pa.bool_(), "c": pa.bool_()}
    types["seen"] = pa.timestamp("us", tz="UTC")
    return pa.table({name: pa.array(columns[name], kind) for name, kind in types.items()})


SAME = (
    # precedence
    "NOT x = 5",
    "NOT x = 5 AND b",
    "NOT x = 5 OR b",
    "NOT (x = 5 AND b)",
    "NOT (x = 5 OR b)",
    "b OR c AND x = 5",
    "(b OR c) AND x = 5",
    "b AND c OR x = 5 AND NOT c",
    "NOT b AND c",
    "NOT b OR c",
    "NOT NOT b",
    "NOT NOT NOT b AND c",
    "NOT x IN (1, 2)",
    "NOT x NOT IN (1, 2)",
    "NOT x BETWEEN 1 AND 2 AND b",
    "x BETWEEN 1 AND 5 AND b OR c",
    "NOT x IS NULL",
    "NOT s LIKE 'a%' AND b",
    "NOT b = FALSE",
    "NOT b IS NOT TRUE",
    # three values
    "x = 5 OR NULL",
    "x = 5 AND NULL",
    "NOT (x = 5 OR NULL)",
    "NOT (x = 5 AND NULL)",
    "NULL",
    "NOT NULL",
    "NULL OR TRUE",
    "NULL AND FALSE OR b",
    "x = NULL",
    "NOT x = NULL",
    "NULL != x",
    "x IN (NULL)",
    "x NOT IN (NULL)",
    "x IN (5, NULL)",
    "x NOT IN (5, NULL)",
    "NOT x IN (5, NULL)",
    "NOT x NOT IN (5, NULL)",
    "x BETWEEN NULL AND 1",
    "x BETWEEN 1 AND NULL",
    "x NOT BETWEEN NULL AND 1",
    "x NOT BETWEEN 1 AND NULL",
    "x BETWEEN 5 AND 1",
    "x NOT BETWEEN 5 AND 1",
    "NOT (x > 1 AND x < NULL)",
    "b OR NOT b",
    "b AND NOT b",
    "b IS TRUE OR b IS FALSE",
    "b IS NOT TRUE AND b IS NOT FALSE",
    "b IS DISTINCT FROM TRUE",
    "x IS NOT DISTINCT FROM NULL",
    "NULL IS DISTINCT FROM x",
    "5 IS DISTINCT FROM x",
    "NOT x IS DISTINCT FROM 5",
    "x != 5 OR x IS NULL",
    "s LIKE NULL OR s NOT LIKE NULL",
    # constants
    "TRUE",
    "FALSE",
    "NOT TRUE",
    "1 = 1",
    "NOT 1 = 1",
    "1 = NULL",
    "'a' < 'B' OR 2 > 1 AND b",
    # numbers
    "x = 9007199254740993",
    "x > 9007199254740992",
    "x <= -9007199254740993",
    "x >= 9223372036854775807",
    "x < 9223372036854775807",
    "x = -9223372036854775808",
    "x > -9223372036854775808",
    "x IN (9007199254740993, 9223372036854775807)",
    "x > 0.5",
    "x = 5.0",
    "5 > x",
    "1 <> x",
    "y = 0",
    "y = -0.0",
    "y < 0 OR y > 0",
    "y IN (0, 1)",
    "y IN (5, 1, 2, 3, 4, 0, 6, 7, 8, 9, 10, 11, 12)",
    "y != 1",
    "NOT y = 1",
    "y > 1",
    "y <= 1",
    "NOT y > 1",
    "y NOT IN (1, 2)",
    "y BETWEEN 0 AND 5",
    "y NOT BETWEEN 0 AND 5",
    "y = 0.1",
    "y = 9007199254740992",
    "y > CAST('Infinity' AS DOUBLE)",  # NaN alone
    "y >= CAST('Infinity' AS DOUBLE)",
    "y > CAST('-Infinity' AS DOUBLE)",
    "y < CAST('Infinity' AS DOUBLE)",
    "NOT y <= CAST('Infinity' AS DOUBLE)",
    # strings: order of code points, which UTF-16 has not
    "s < 'a'",
    "s > 'Z'",
    "s > '\uffee'",
    "s < '😀'",
    "s BETWEEN 'z' AND 'é'",
    "s >= ''",
    "s = ''",
    "s LIKE ''",
    "s NOT LIKE ''",
    "s LIKE '%'",
    "s LIKE '%%'",
    "s NOT LIKE '%'",
    "s LIKE '%a%'",
    "s LIKE 'ab'",
    "s LIKE '😀%'",
    "contains(s, '')",
    # times
    "seen = TIMESTAMP '2013-01-31 10:00:00'",
    "seen > TIMESTAMP '2013-01-31 10:00:00'",
    "seen >= DATE '2013-02-01'",
    "seen BETWEEN DATE '2013-01-31' AND TIMESTAMP '2013-01-31 09:59:59.999999'",
)

BOTH = (
    Text("x <=> 5", "x IS NOT DISTINCT FROM 5"),
    Text("NOT x <=> 5", "x IS DISTINCT FROM 5"),
    Text("NOT x <=> NULL", "x IS NOT NULL"),
    Text("! b = FALSE", "NOT (b = FALSE)"),
    Text("!x IN (1, 2)", "NOT (x IN (1, 2))"),
    Text("y = -0.0E0", "y = CAST('-0.0' AS DOUBLE)"),
    Text("x = 1e0 OR y = 5D", "x = 1 OR y = 5"),
    Text("s LIKE '50\\%'", "s = '50%'"),
    Text("s LIKE '%\\%'", "suffix(s, '%')"),
    Text("s LIKE '%\\\\\\\\%'", "contains(s, '\\')"),
    Text("s LIKE '%|%' ESCAPE '|'", "suffix(s, '%')"),
    Text("s = '50\\%'", "s = '50\\%'"),  # outside LIKE the backslash stays
    Text("startswith(s, '')", "s IS NOT NULL"),
    Text("NOT endswith(s, '')", "FALSE"),
    Text("seen = TIMESTAMP '2013-01-31T10:00:00Z'", "seen = TIMESTAMPTZ '2013-01-31 10:00:00+00'"),
    Text(
        "seen = TIMESTAMP '2013-01-31 15:30:00.000001+05:30'",
        "seen = TIMESTAMPTZ '2013-01-31 10:00:00.000001+00'",
    ),
)

# Each is compared with every string of STRINGS_READ: what does the literal stand for?
STRINGS_READ = (
    *("a'b", 'a"b', "A", "301", "Á", "é", "😀", "\\%", "\\_", "\\", "\\n", "\n", "aqx41"),
    *("", "''", '""', "u12", "\x1a", "\t", "ab", "8", "\x007", "\x07"),
)
SPARK = (
    *(r"'a''b'", r"'a\'b'", r'"a""b"', r'"a\"b"', r"'a\"b'", r'''"a'b"'''),
    *(r"'\101'", r"'\301'", r"'\u00e9'", r"'\U0001F600'", r"'\uD83D\uDE00'", r"'\u12'"),
    *(r"'\%'", r"'\_'", r"'\\%'", r"'\\'", r"r'\n'", r"'\\n'", r"'\n'", r"'\a\q\x41'", r"R'\%'"),
    *(r"''", r'""', r"""'""'""", '''"''"''', r"'\Z'", r"'\t'", r"'\8'", r"'\07'", r"'\007'"),
)

ODD = (
    "seen = DATE '2013-01-31 10:00:00'",  # Spark drops the time of day
    "seen = CAST('2013-01-31 10:00:00' AS DATE)",
    "seen = TIMESTAMP '2013-01-31 10'",
    "seen > TIMESTAMP '2013-01'",
    "seen > TIMESTAMP '2013-01-31 09:59:59.9999999'",
    "seen = TIMESTAMP '2013-01-31 10:00:00 UTC'",
    "seen = TIMESTAMP '2013-01-31 11:00:00 Europe/Rome'",
    "x = CAST(1.5 AS BIGINT)",
    "x = CAST(1.5 AS INT)",
    "x = CAST('5' AS INT)",
    "x = CAST(' 5 ' AS BIGINT)",
    "y = CAST('5' AS FLOAT)",
    "y = CAST('0.1' AS FLOAT)",
    "y = CAST(' 0.5 ' AS DOUBLE)",
    "y = CAST('1e400' AS DOUBLE)",
    "y = CAST('0.5' AS DECIMAL(1, 0))",
    "y = CAST('NaN' AS DOUBLE)",
    "s = CAST('ab' AS STRING)",
    "s = CAST('ab' AS CHAR(3))",
    "s != CAST(1e10 AS STRING)",
    "s = 'a' 'b'",
    "s LIKE 'a_'",
    "s LIKE '%a%b%'",
    "s ILIKE 'b'",
    "s LIKE ANY ('a%', '%b')",
    "x !> 5",
    "x = 0x5",
    "x = 2 + 3",
    "x = 5 IS NULL",
    "(x = 5) IS NOT TRUE",
    "(b OR c) IS NOT FALSE",
    "(x = 5) <=> NULL",
    "b = (x = 5)",
    "b = c",
    "b <=> c",
    "NULL <=> NULL",
    "TRUE IS TRUE",
    "1 IN (1, 2)",
    "5 BETWEEN 1 AND x",
    "x < 9223372036854775808 AND x IS NOT NULL",
    "y < 9223372036854775808",
    "isnull(x)",
    "coalesce(b, c)",
)
