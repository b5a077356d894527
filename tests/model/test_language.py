"""The language: what is read, what is refused and where the caret points."""

from __future__ import annotations

import contextlib
import pickle
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import palio
from palio import LimitExceeded, PalioError, ParseError, parse
from palio.lab.bench.model import rule_texts
from palio.model import language
from palio.model.literals import lift
from tests.strategies import messages


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("NOT (x = 5 AND y IN (1, -2))", "x != 5 OR y != -2 AND y != 1"),
        ("NOT x BETWEEN 1 AND 2", "x < 1 OR x > 2"),
        ("x NOT IN (1, NULL)", "FALSE"),
        ("x IN (1, NULL)", "x = 1"),
        ("x = NULL OR y = 1", "y = 1"),
        ("NOT (x = NULL AND y = 1)", "y != 1"),
        ("NOT x IS NULL", "x IS NOT NULL"),
        ("x <=> 5", "x = 5"),
        ("NOT x <=> 5", "x != 5 OR x IS NULL"),
        ("x IS DISTINCT FROM NULL", "x IS NOT NULL"),
        ("x IS NOT TRUE", "x = FALSE OR x IS NULL"),
        ("NOT delayed AND cancelled", "delayed = FALSE AND cancelled = TRUE"),
        ("5 < x AND 'a' = y", "x > 5 AND y = 'a'"),
        ("1 = 1 AND x = 2 OR 1 > 2", "x = 2"),
        ("TRUE OR x = 1", "TRUE"),
        ("NOT TRUE", "FALSE"),
        ("x LIKE 'a' OR x LIKE 'a%' OR x LIKE '%a' OR x LIKE '%a%'",
         "x = 'a' OR x LIKE 'a%' OR x LIKE '%a' OR x LIKE '%a%'"),
        ("x NOT LIKE '%a%' AND NOT startswith(y, 'b')", "x NOT LIKE '%a%' AND y NOT LIKE 'b%'"),
        (r"x LIKE '10\\%'", "x = '10%'"),
        (r"x LIKE '10\%'", "x = '10%'"),
        ("x LIKE '10!%%' ESCAPE '!'", "startswith(x, '10%')"),
        ("x LIKE '%'", "contains(x, '')"),
        ("a.b.c = 1 AND `d e` = 2", "`a.b.c` = 1 AND `d e` = 2"),
        ("ts > TIMESTAMP '2013-01-31 10:00:00'", "ts > TIMESTAMP '2013-01-31T10:00:00Z'"),
        ("ts > DATE '2013-01-31'", "ts > TIMESTAMP '2013-01-31T00:00:00Z'"),
        ("x = 5L AND y = 1e3 AND z = .5", "x = 5 AND y = 1000.0 AND z = 0.5"),
        ("x = - 9223372036854775808", "x = -9223372036854775808"),
        ("x = 'it''s' AND y = \"it's\"", r"x = 'it\'s' AND y = 'it\'s'"),
        (r"x = 'a\tb\u00e9\\'", "x = 'a\\tb\u00e9\\\\'"),
        (r"x = r'a\tb'", r"x = 'a\\tb'"),
        ("x = 1 -- and y = 2\n AND z /* = 3 */ = 4", "x = 1 AND z = 4"),
        ("(a = 1 OR b = 2) AND c = 3", "a = 1 AND c = 3 OR b = 2 AND c = 3"),
        ("NOT (a = 1 OR NOT (b = 2 AND c = 3))", "a != 1 AND b = 2 AND c = 3"),
        ("typeof(x) = 'string'", "typeof(x) = 'string'"),
        ("show = 1 AND explain = 2", "`show` = 1 AND `explain` = 2"),
        ("x = CAST('-Infinity' AS DOUBLE)", "x = CAST('-Infinity' AS DOUBLE)"),
    ],
)  # fmt: skip
def test_normal_form(text: str, normal: str) -> None:
    assert str(parse(text)) == normal
    assert parse(normal) == parse(text)


@pytest.mark.parametrize(
    ("text", "caret", "says"),
    [
        ("", 0, "empty"),
        ("price < ", 7, "ends too early"),
        ("dest = 'MXP' AND price << 5", 17, "cannot stand"),
        ("a = 1 AND b = 'x", 14, "not closed"),
        ("(a = 1", 0, "not closed"),
        ("a = 1) OR (b = 2", 5, "closes nothing"),
        ("aa = 1 AND b = 9223372036854775808", 15, "64 bits"),
        ("a = 1 AND b < TRUE", 0, "order booleans"),
        ("a IN ('x', 1)", 6, "mixes"),
        ("a = TIMESTAMP 'soon'", 14, "not an instant"),
        ("a = CAST('' AS BIGINT)", 9, "not an integer"),
        ("a = CAST('1.5' AS BIGINT)", 9, "not an integer"),
        ("a = CAST('1e999' AS DOUBLE)", 9, "does not fit"),
        ("a = CAST('NaN' AS DOUBLE)", 9, "NaN"),
        ("a = 1; DROP TABLE t", 5, "no meaning"),
        ("a IN (SELECT 1)", 0, "cannot stand"),
        ("f(a) = 2", 0, "the function f is not supported"),
        ("a RLIKE '('", 8, "RE2 does not read"),
        ("2a = 3", 0, "backticks"),
        ("from = 'a' AND to = 'b'", 0, "from is a reserved word; .*: `from`"),
        ("x = 1 AND select > 5", 10, "backticks: `select`"),
        ("x = 'from' AND Like LIKE 'a%'", 15, "backticks: `Like`"),
        ("case = 1 OR where < 3", 0, "backticks: `case`"),
        ("CASE WHEN when = 1 THEN 2 ELSE 3 END = 2", 10, "backticks: `when`"),
        ("x MOD 3 = 1", 2, "MOD is of other languages"),
        ("x = 5 && y = 3", 6, "write AND"),
        ("x = 5 AND", 9, "ends too early"),
        ("startswith(a, 5)", 14, "takes a string"),
        ("x = 1e999", 4, "does not fit"),
        ("x = 1.2.3", 4, "cannot be read"),
        ("x = 500\u248c", 4, "backticks"),
        ("x = 5\u0665", 4, "backticks"),
        ("x BETWEEN 1\u1022.5 AND 2", 10, "cannot be read"),
    ],
)
def test_errors_point_at_the_character(text: str, caret: int, says: str) -> None:
    with pytest.raises(ParseError, match=says) as caught:
        parse(text)
    if says != "order booleans":  # TRUE is no literal with a place of its own
        assert caught.value.position == caret, str(caught.value)
    if text:
        *_, line, pointer = str(caught.value).split("\n")
        assert pointer.strip() == "^"
        place = len(pointer) - 1
        assert line[place : place + 1] == text[caught.value.position : caught.value.position + 1]
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_an_explosion_says_which_part_explodes() -> None:
    text = "x = 1 AND (" + " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(13)) + ")"
    with pytest.raises(LimitExceeded, match="8,192 filters, and the limit is 4,096"):
        parse(text)
    assert len(parse(text, limit=10_000).filters) == 8192
    with pytest.raises(LimitExceeded):
        parse("a = 1 OR a = 2 OR a = 3", limit=2)
    assert len(parse("a = 1 OR a = 2 OR a = 3").filters) == 3


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + "x = 1" + ")" * 10_000,
        "NOT " * 10_000 + "x = 1",
        "- " * 10_000 + "x = 1",
        "CASE " * 10_000,
        "ARRAY<" * 100_000,
        "x IN (" + ", ".join(map(str, range(1_000_000))) + ")",
        " OR ".join(f"x = {i}" for i in range(7_000)),
        " AND ".join(f"x != {i}" for i in range(7_000)),
        "x = '" + "a" * 1_000_000 + "'",
        "a" * 1_000_000,
        "a." * 100_000 + "b = 1",
        "'" * 999_999,
        "/*" * 500_000,
        "x = " + "1" * 1_000_000,
        "(" + " AND ".join(f"(a = {i} OR b = {i})" for i in range(4_000)) + ")",
    ],
    ids=lambda text: text[:12],
)
def test_huge_texts_end_in_an_answer_or_an_error(text: str) -> None:
    started = time.monotonic()
    with contextlib.suppress(PalioError):
        assert parse(text).size > 0
    assert time.monotonic() - started < 60  # bounded; here it is a few seconds at most


@pytest.mark.parametrize("unit", ["\\'", "'\\", '\\"', "x /* ", "/* ' "])
def test_what_is_not_closed_is_searched_once(unit: str) -> None:
    """Else each quote in it searches to the end again: minutes for one subscription."""
    started = time.process_time()
    with pytest.raises(ParseError):
        parse(f"x = {unit * 30_000}")
    assert time.process_time() - started < 5


def test_a_million_members() -> None:
    p = parse("x IN (" + ", ".join(map(str, range(1_000_000))) + ")")
    assert p.matches({"x": 999_999})
    assert not p.matches({"x": 1_000_000})


def test_what_is_kept_of_shapes_is_bounded() -> None:
    """Strangers choose the shapes; a template takes much more than its shape."""
    for k in range(30):
        parse(" OR ".join(f"n{k}_{i} = {i}" for i in range(900)))
        assert sum(map(len, language._kept)) <= language._KEPT_MAX
    assert language._kept


def test_shapes_are_parsed_once_and_mean_the_same() -> None:
    """Lifting literals gives the same result as parsing each text on its own."""
    texts = rule_texts(2_000, 40)
    random.Random(1).shuffle(texts)
    language._kept.clear()
    quick = [parse(text) for text in texts]
    assert len(language._kept) <= 80
    for text, p in zip(texts[:300], quick, strict=False):
        language._kept.clear()
        assert parse(text) == p


def test_lifting_keeps_names_comments_and_signs_apart() -> None:
    assert lift("x1 = 5 AND `2'3` IN (-1, - 2,'a') -- 'c'") == (
        "x1 = 0 AND `2'3` IN (-1)  ",
        ["5", ["1", "-2", "'a'"]],
    )


def test_types_never_mix() -> None:
    assert not parse("x = 1").matches({"x": "1"})
    assert not parse("x = 1").matches({"x": True})
    assert not parse("x != 1").matches({"x": "a"})
    assert not parse("x != '1'").matches({"x": 2})
    assert parse("x = 1").matches({"x": 1.0})
    assert not parse("x = 9007199254740993").matches({"x": 9007199254740992.0})


def test_names_are_case_sensitive() -> None:
    assert not parse("Price = 1").matches({"price": 1})


@settings(max_examples=300)
@given(st.text(alphabet="xy=<>!'\"`()12 ,.-%_\\ANDORNTLIKE\n", max_size=40), messages)
def test_any_text_gives_a_predicate_or_our_own_error(text: str, message: palio.Message) -> None:
    try:
        p = parse(text)
    except PalioError:
        return
    assert parse(str(p)) == p
    p.matches(message)


_ARGUMENTS = ("", "*", "x", "'a'", "1", "NULL", "x, y", "x, 'a'", "'a', 1", "x, y, z", "x AS int", "DISTINCT x")  # fmt: skip


def test_whatever_function_is_called_the_answer_is_a_parse_error() -> None:
    """The parser behind ours raises all kinds of errors, and for some nested calls takes for ever."""
    from sqlglot.dialects.spark import Spark

    names = sorted({*Spark.Parser.FUNCTIONS, *Spark.Parser.FUNCTION_PARSERS, "LOWER", "MAP", "f"})
    assert len(names) > 300
    for name in names:
        for arguments in _ARGUMENTS:
            with contextlib.suppress(ParseError):
                parse(f"{name}({arguments}) = 1")
        with contextlib.suppress(ParseError):
            parse(f"{name}(" * 60 + "x" + ")" * 60 + " = 1")


@pytest.mark.parametrize("text", ["map(x)", "or(*) = 1", "and(*) = 1", "date_trunc() = 1"])
def test_calls_that_once_raised_other_errors(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


def test_an_unknown_function_is_named() -> None:
    with pytest.raises(
        ParseError, match="the function soundex is computed by Spark only"
    ) as failure:
        parse("x = 1 AND soundex(name) = 'ann'")
    assert failure.value.position == 10


def test_the_shape_of_a_predicate_may_be_bounded() -> None:
    text = " OR ".join(f"x{i} = {i}" for i in range(100))
    with pytest.raises(LimitExceeded, match="beside its literals, the limit is 500"):
        parse(text, shape_max=500)
    assert len(parse("x IN (" + ", ".join(map(str, range(1000))) + ")", shape_max=500)) == 1
