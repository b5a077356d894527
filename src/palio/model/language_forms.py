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
    ("list", "dest IN ('MXP', 'LIN')"),
    ("list with computed members and NULL", "x IN (1 + 1, NULL)"),
    ("list with attributes", "x IN (y, 5)"),
    ("tuples, where NULL equals NULL", "(a, b) IN ((1, 2), (3, NULL))"),
    ("range", "price BETWEEN 100 AND 2 * 250"),
    ("pattern", "name LIKE 'a%b_c'"),
    ("pattern with an escape", "name LIKE '50!%%' ESCAPE '!'"),
    ("pattern, any case", "name ILIKE '%Ann%'"),
    ("some of several patterns", "name LIKE ANY ('a%', '%b')"),
    ("regular expression", "name RLIKE '^a[0-9]+$'"),
    ("presence", "gate IS NOT NULL"),
    ("truth", "(x > 5) IS NOT TRUE"),
    ("boolean attribute", "NOT cancelled"),
    ("two attributes", "arrival < departure"),
    ("arithmetic", "price * qty - 5 > 100"),
    ("quotient and remainder", "n % 10 = 3 AND n DIV 10 > 2"),
    ("text function", "lower(name) = 'ann'"),
    ("distance", "abs(lat - 45.3) < 0.1 AND abs(lon - 9.1) < 0.1"),
    ("time function", "year(scheduled) = 2026"),
    ("interval", "arrival > departure + INTERVAL 2 HOURS"),
    ("difference of times", "arrival - departure > INTERVAL 2 HOURS"),
    ("alternative for NULL", "coalesce(discount, 0) > 3"),
    ("CASE", "CASE WHEN x > 1 THEN y ELSE z END = 3"),
    ("IF", "if(vip, price, price * 2) < 500"),
    ("CAST", "CAST(code AS INT) > 5"),
    ("cast with ::", "code::int > 5"),
    ("element of an array", "array_contains(tags, 'x')"),
    ("one of several elements", "arrays_overlap(tags, array('x', 'y'))"),
    ("any element", "exists(prices, p -> p > 5)"),
    ("all elements", "forall(prices, p -> p > 5)"),
    ("element by position", "tags[0] = 'x'"),
    ("size", "size(tags) > 2"),
    ("key of a map", "m['k'] = 5"),
    ("nested field", "flight.dest = 'MXP'"),
    ("path in a JSON text", "get_json_object(body, '$.a.b') = '5'"),
    ("type of a value", "typeof(x) = 'string'"),
    ("exclusive or", "a = 1 XOR b = 2"),
    ("semicolon", "price < 500;"),
    ("comment", "price < 500 -- euros"),
    ("aggregate", "sum(x) > 3"),
    ("subquery", "x IN (SELECT 1)"),
    ("format of a time", "to_timestamp(x, 'dd/MM/yyyy') > y"),
    ("collation", "name COLLATE UTF8_LCASE = 'ANN'"),
    ("time of day now", "at > now()"),
    ("chance", "rand() < 0.5"),
    ("unknown function", "lowr(name) = 'ann'"),
    ("function that only Spark computes", "levenshtein(a, b) < 3"),
    ("array as a literal", "tags = array('a')"),
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
