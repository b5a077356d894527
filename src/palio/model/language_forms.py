"""Forms of predicates, for docs/reference/language.md: `python -m palio.model.language_forms`.

Whether a form is accepted or refused, and what is said then, is what the parser does.
"""

from __future__ import annotations

from palio.errors import ParseError
from palio.model.language import parse

FORMS: tuple[tuple[str, str], ...] = (
    ("comparison with a literal", "price < 500"),
    ("literal first", "500 > price"),
    ("null-safe comparison", "gate <=> 'A1'"),
    ("distinct from", "gate IS DISTINCT FROM 'A1'"),
    ("same as", "gate IS NOT DISTINCT FROM 'A1'"),
    ("other signs for = and !=", "x == 5 OR y <> 6"),
    ("decimal number", "price = 2.50BD"),
    ("number in scientific notation", "x > 1.5e-3"),
    ("number of a type", "n = 5L AND f = 1.5F"),
    ("raw string", r"path = r'C:\new'"),
    ("instant", "at >= TIMESTAMP '2024-03-01 10:00:00'"),
    ("instant with a zone", "at >= TIMESTAMP '2024-03-01 10:00:00 Europe/Rome'"),
    ("day", "at >= DATE '2024-03-01'"),
    ("infinity", "x < CAST('Infinity' AS DOUBLE)"),
    ("list", "dest IN ('MXP', 'LIN')"),
    ("list with computed members and NULL", "x IN (1 + 1, NULL)"),
    ("list with attributes", "x IN (y, 5)"),
    ("none of a list", "dest NOT IN ('MXP', 'LIN')"),
    ("tuple, where NULL equals NULL", "(a, b) = (1, 2)"),
    ("tuples, where NULL equals NULL", "(a, b) IN ((1, 2), (3, NULL))"),
    ("range", "price BETWEEN 100 AND 2 * 250"),
    ("outside of a range", "price NOT BETWEEN 100 AND 500"),
    ("beginning", "startswith(name, 'An')"),
    ("end", "endswith(name, 'na')"),
    ("part", "contains(name, 'nn')"),
    ("pattern", "name LIKE 'a%b_c'"),
    ("pattern with an escape", "name LIKE '50!%%' ESCAPE '!'"),
    ("pattern, any case", "name ILIKE '%Ann%'"),
    ("some of several patterns", "name LIKE ANY ('a%', '%b')"),
    ("all of several patterns", "name LIKE ALL ('a%', '%b')"),
    ("not like a pattern", "name NOT LIKE 'a%'"),
    ("regular expression by its function", "regexp_like(name, '^a')"),
    ("regular expression", "name RLIKE '^a[0-9]+$'"),
    ("presence", "gate IS NOT NULL"),
    ("absence", "gate IS NULL"),
    ("presence by its function", "isnotnull(gate)"),
    ("truth", "(x > 5) IS NOT TRUE"),
    ("boolean attribute", "NOT cancelled"),
    ("two attributes", "arrival < departure"),
    ("arithmetic", "price * qty - 5 > 100"),
    ("quotient and remainder", "n % 10 = 3 AND n DIV 10 > 2"),
    ("power", "power(x, 2) < 50"),
    ("bits", "flags & 4 = 4"),
    ("joined texts", "first || ' ' || last = 'Ann Lee'"),
    ("part of a text", "substring(code FROM 1 FOR 2) = 'AB'"),
    ("without spaces", "trim(BOTH ' ' FROM code) = 'AB'"),
    ("where a text begins", "position('n' IN name) = 2"),
    ("piece between separators", "split_part(path, '/', 2) = 'log'"),
    ("text function", "lower(name) = 'ann'"),
    ("distance", "abs(lat - 45.3) < 0.1 AND abs(lon - 9.1) < 0.1"),
    ("time function", "year(scheduled) = 2026"),
    ("field of a time", "extract(HOUR FROM at) = 5"),
    ("time cut to a unit", "date_trunc('MONTH', at) = DATE '2024-03-01'"),
    ("days later", "date_add(due, 3) < at"),
    ("difference in a unit", "timestampdiff(HOUR, start, due) > 5"),
    ("interval", "arrival > departure + INTERVAL 2 HOURS"),
    ("difference of times", "arrival - departure > INTERVAL 2 HOURS"),
    ("alternative for NULL", "coalesce(discount, 0) > 3"),
    ("NULL for a value", "nullif(code, '') IS NULL"),
    ("alternative by presence", "nvl2(discount, price, 0) > 3"),
    ("greatest and least", "greatest(a, b) - least(a, b) < 5"),
    ("CASE", "CASE WHEN x > 1 THEN y ELSE z END = 3"),
    ("IF", "if(vip, price, price * 2) < 500"),
    ("CAST", "CAST(code AS INT) > 5"),
    ("cast with ::", "code::int > 5"),
    ("cast that may fail", "try_cast(code AS DOUBLE) IS NULL"),
    ("text with a length, as Spark reads it", "CAST(code AS VARCHAR(3)) = 'A1'"),
    ("element of an array", "array_contains(tags, 'x')"),
    ("one of several elements", "arrays_overlap(tags, array('x', 'y'))"),
    ("any element", "exists(prices, p -> p > 5)"),
    ("all elements", "forall(prices, p -> p > 5)"),
    ("element by position", "tags[0] = 'x'"),
    ("element counted from 1", "element_at(tags, 1) = 'x'"),
    ("array as a literal", "tags = array('a', 'b')"),
    ("some elements", "size(filter(prices, p -> p > 5)) > 2"),
    ("computed elements", "array_contains(transform(tags, t -> lower(t)), 'x')"),
    ("smallest and largest element", "array_max(prices) - array_min(prices) > 5"),
    ("size", "size(tags) > 2"),
    ("key of a map", "m['k'] = 5"),
    ("nested field", "flight.dest = 'MXP'"),
    ("path behind a colon", "body:a.b = '5'"),
    ("path in a JSON text", "get_json_object(body, '$.a.b') = '5'"),
    ("type of a value", "typeof(x) = 'string'"),
    ("exclusive or", "a = 1 XOR b = 2"),
    ("quoted name", "`departure time` > 5"),
    ("semicolon", "price < 500;"),
    ("comment", "price < 500 -- euros"),
    ("aggregate", "sum(x) > 3"),
    ("subquery", "x IN (SELECT 1)"),
    ("format of a time", "to_timestamp(x, 'dd/MM/yyyy') > y"),
    ("bytes", "b = X'FF'"),
    ("time of day", "at > TIME '10:00:00'"),
    ("collation", "name COLLATE UTF8_LCASE = 'ANN'"),
    ("time of day now", "at > now()"),
    ("chance", "rand() < 0.5"),
    ("unknown function", "lowr(name) = 'ann'"),
    ("function that only Spark computes", "levenshtein(a, b) < 3"),
    ("array in brackets", "[x] = 5"),
    ("element by IN", "'x' IN tags"),
    ("element by ANY", "'x' = ANY(tags)"),
    ("order of tuples", "(a, b) < (1, 2)"),
    ("range in either order", "x BETWEEN SYMMETRIC 5 AND 1"),
    ("pattern of another standard", "name SIMILAR TO '(a|b)%'"),
    ("method", "name.startswith('a')"),
    ("arrow", "body -> 'a' = 5"),
    ("power by an operator", "x ** 2 > 5"),
    ("remainder by a word", "x MOD 3 = 1"),
    ("hexadecimal number", "flags = 0xFF"),
    ("functions of other databases", "strpos(name, 'a') > 0"),
    ("the same of arrays", "list_contains(tags, 'a')"),
    ("regular expression beyond RE2", "name RLIKE '(?=a)'"),
    ("parameter", "x = ?"),
    ("value without a comparison", "'a' OR x = 1"),
)


def accepted() -> str:
    """The forms that are accepted, as a table."""
    rows = [f"| {what} | `{_cell(text)}` |" for what, text in FORMS if _refusal(text) is None]
    return "\n".join(["| form | example |", "| --- | --- |", *rows])


def refused() -> str:
    """Those that are refused, with what is said."""
    rows = [
        f"| {what} | `{_cell(text)}` | {_cell(reason)} |"
        for what, text in FORMS
        if (reason := _refusal(text)) is not None
    ]
    return "\n".join(["| form | example | what is said |", "| --- | --- | --- |", *rows])


def _refusal(text: str) -> str | None:
    try:
        parse(text)
    except ParseError as error:
        return str(error).splitlines()[0]
    return None


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def pages() -> str:
    """Both tables, as they stand in the page."""
    return f"{accepted()}\n\nRefused, with what is said:\n\n{refused()}\n"


if __name__ == "__main__":
    print(pages(), end="")  # noqa: T201
