"""docs/reference/functions.md, made of the table: `python -m palio.model.expressions.reference`.

A test compares the page with what is made here, and the examples with Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from palio.model.expressions.casts import to_string
from palio.model.expressions.evaluation import value
from palio.model.expressions.functions import FAMILIES
from palio.model.expressions.parsing import expression_of_text
from palio.model.expressions.refusals import CHANGING
from palio.model.expressions.table.coverage import ELSEWHERE, SPARK_COMPUTES, WITH_DUCKDB
from palio.model.expressions.table.entry import Function

_HEAD = """\
# Functions of expressions

A predicate may compute what it compares: `lower(name) = 'ann'`, `price * qty > 100`, `tags[0] = 'x'`.
Every function here runs everywhere: embedded, on the command line, in brokers, and on Spark. They mean
what Spark SQL means by them in its ANSI mode, with a session in UTC; those marked "ours" Spark has not.

- **NULL.** Unless it is said otherwise a function is NULL where an argument is.
- **Errors are NULL**: a division by zero, an overflow of 64 bits, a text that is no number, an element
  outside of an array. They are counted.
- **Nothing is cast.** A function of strings given a number is an error; write `CAST(x AS STRING)`.
- **Bounds.** A string that is made has up to 1,048,576 characters, a pattern of LIKE up to 10,000, a
  regular expression up to 1,000; what is longer is an error. The time of a call is linear in its arguments.
- **Regular expressions** have the syntax of RE2. What RE2 does not read (back references, look-around) and
  what Spark would read otherwise (`&&` in classes, `[:alpha:]`, `\\v`, `(?U)`) is refused.

This page is made of the table in the code (`python -m palio.model.expressions.reference`), a test
compares them, and the examples with Spark; random compositions are compared with Spark too.

- **runs**: "all" is embedded, on the command line, in brokers, and on Spark in a worker of Palio. "all, Spark
  itself" says that on Spark it is Spark's own function, where the columns have the types that it takes.
- **compared with**: "Spark" is `tests/differential/test_expressions.py`, which draws the function in random
  expressions of attributes, and `test_where.py`, which draws it in rules and compares the table alone, of
  Arrow and of JSON, with the WHERE clause; "DuckDB" is `test_duckdb_expressions.py`. What Spark has not has a
  test of its own.
"""
_FORMS = (
    ("a AND b, a OR b, NOT a", "the logic of SQL, with three values", "NULL OR TRUE"),
    ("x IS [NOT] NULL, isnull(x), isnotnull(x)", "whether there is a value", "isnull(NULL)"),
    ("x IS [NOT] TRUE, x IS [NOT] FALSE", "never NULL", "NULL IS NOT TRUE"),
    ("x IS [NOT] DISTINCT FROM y", "as `<=>`", "1 IS DISTINCT FROM NULL"),
    ("coalesce(a, b, ...), nvl, ifnull", "the first that is not NULL", "coalesce(NULL, 2)"),
    ("zeroifnull(a), nullifzero(a)", "0 for NULL, and NULL for 0", "zeroifnull(NULL)"),
    ("nvl2(a, b, c)", "b unless a is NULL, else c", "nvl2(NULL, 1, 2)"),
    ("if(condition, a, b), iff", "one of two; the other is not computed", "if(2 > 1, 'a', 'b')"),
    ("CASE WHEN c THEN a ... ELSE b END", "the first that holds", "CASE WHEN FALSE THEN 1 ELSE 2 END"),
    ("CASE x WHEN v THEN a ... ELSE b END", "the first that is equal", "CASE 2 WHEN 2 THEN 'b' END"),
    ("text ILIKE pattern", "LIKE, both in lower case", "'Palio' ILIKE 'P%O'"),
    ("x::type, type(x), TRY_CAST(x AS type)", "as CAST", "'42'::bigint"),
    ("typeof(x) = 'string'", "an attribute is there and of this type (ours): bool, int, float, string, time", ""),
    ("extract(field FROM time)", "as date_part", "extract(DOW FROM DATE '2024-02-29')"),
    (
        "time + INTERVAL 1 DAY",
        "as timestampadd; also `INTERVAL '1 02:03:04' DAY TO SECOND`, `INTERVAL '1 day 2 hours'`",
        "DATE '2024-02-29' + INTERVAL 36 HOURS",
    ),
    (
        "a - b < INTERVAL 1 DAY",
        "compares a difference of times",
        "DATE '2024-02-29' - DATE '2024-02-01' < INTERVAL 30 DAYS",
    ),
    ("m['k'], m.k, element_at(m, 'k')", "the attribute `m.k`: a value of a map, a field of a struct", ""),
    ("body:a.b[0]['c d']", "as get_json_object, of an attribute that holds JSON", ""),
    (
        "exists(array, x -> condition)",
        "whether it holds for an element; NULL if for none, but unknown for one",
        "exists(array(1, 2), x -> x > 1)",
    ),
    ("forall(array, x -> condition)", "whether it holds for all", "forall(array(1, 2), x -> x > 1)"),
    ("filter(array, x -> condition)", "the elements for which it holds", "size(filter(array(1, 2), x -> x > 1))"),
    ("transform(array, x -> value)", "each element computed", "transform(array(1, 2), x -> x * 2)"),
)  # fmt: skip
_DIFFERENCES = """\
## What differs from Spark

- Integers always have 64 bits: `year(at) * 1000000000` is an overflow of Spark's 32 bits, here it is not.
- Decimals of messages are computed with exactly, but for those in arrays and in JSON, which are doubles. The
  digits of a quotient may differ where CASE or coalesce chose between them.
- `exp`, `ln`, `log`, `sin`, `cos`, `power` and the like may differ from Java's in the last digit; a double that
  is written as a string may have another last digit than before Java 19.
- In a regular expression `.` is any character but `\\n` (Spark: nor `\\r`, `\\u0085`, `\\u2028`, `\\u2029`), `$` is
  the end of the text (Spark: or before a last line break), `(?i)` folds all letters.
- `split` takes a plain text or a class of characters, `regexp_replace` nothing that matches the empty string.
- `get_json_object` reads names and places, no `*`; the text is JSON (Spark also takes single quotes).
- A date is its first instant: `CAST(to_date(at) AS STRING)` shows midnight too.
- A map is the attributes `m.k`: `size(m)`, `map_keys(m)` and `m[k]` with a computed key have no value.
- An array of JSON may mix types; elements of different types are different.

## What differs from DuckDB

There `1 / 0` is infinite and `5.0 % 0` NaN, an overflow is an error, CAST of a double to BIGINT rounds, `log`
is to 10, `sign` an integer, `concat` leaves NULLs out, `substring` has a position 0, `left(text, -1)` leaves one
out, `upper('ß')` is one letter, `dayofweek` begins with 0, `datediff` takes a unit and counts midnights,
`array[1]` is the first element, `list_contains` and `array_contains` are never NULL, `isnan(NULL)`
is NULL, and LIKE has no escape unless it is given one.
"""


def reference() -> str:
    """The page."""
    return "\n".join([_HEAD, *_forms(), *_families(), *_refused(), _DIFFERENCES])


def _forms() -> Iterator[str]:
    yield "## Forms\n\n| written | meaning | example |\n| --- | --- | --- |"
    for written, meaning, example in _FORMS:
        yield f"| {_code(written)} | {meaning} | {_shown(example)} |"
    yield ""


def _families() -> Iterator[str]:
    for family, functions in FAMILIES.items():
        yield f"## {family}\n\n| written | also called | meaning | example | runs | compared with |"
        yield "| --- | --- | --- | --- | --- | --- |"
        yield from (_line(function) for function in functions.values())
        yield ""


def _line(function: Function) -> str:
    arguments = function.arguments.replace("...", ", ...").split()
    written = function.written or f"{function.name}({', '.join(arguments)})".replace(",,", ",")
    others = [word.lower() for word in function.in_words if word != function.name.upper()]
    meaning = function.meaning.replace("|", "\\|") + ("" if function.is_of_spark else " (ours)")
    cells = (
        _code(written), ", ".join(map(_code, others)), meaning, _shown(function.example),
        "all, Spark itself" if function.name in SPARK_COMPUTES else "all", _compared(function),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _compared(function: Function) -> str:
    if function.name in ELSEWHERE:
        return _code(ELSEWHERE[function.name])
    return "Spark, DuckDB" if function.name in WITH_DUCKDB else "Spark"


def _refused() -> Iterator[str]:
    yield "## Refused, because their value does not follow from the message\n"
    for reason in dict.fromkeys(CHANGING.values()):
        names = ", ".join(f"`{name}`" for name, own in CHANGING.items() if own == reason)
        yield f"- {names}: {reason}."
    yield ""


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _shown(example: str) -> str:
    if not example:
        return ""
    return f"{_code(example)} → {_code(_literal(value(expression_of_text(example), {}, _ignored)))}"


def _ignored(_reason: str) -> None:
    pass


def _literal(found: object) -> str:
    if found is None:
        return "NULL"
    if isinstance(found, tuple):
        return f"[{', '.join(map(_literal, found))}]"
    if isinstance(found, bool):
        return str(found).upper()
    if isinstance(found, str):
        return repr(found)
    return to_string(found) if isinstance(found, int | float | datetime) else str(found)


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201
