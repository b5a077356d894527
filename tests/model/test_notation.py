import contextlib
from datetime import UTC, datetime
from itertools import product
from math import inf, isnan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import InvalidPredicate, ParseError
from palio.model.advertisement import Advertisement
from palio.model.message import Message
from palio.model.notation import (
    parse_advertisement,
    parse_filter,
    parse_message,
    parse_predicate,
    print_filter,
    print_message,
    print_predicate,
)
from palio.model.predicate import Constraint, Filter, Predicate
from palio.model.values import Value, type_of
from tests.strategies import (
    TRICKY_NAMES,
    TRICKY_STRINGS,
    filters,
    messages,
    predicates,
    strings,
)


def one(line: str) -> Constraint:
    (constraint,) = parse_filter(line)
    return constraint


@settings(max_examples=300, deadline=None)
@given(predicates)
def test_a_predicate_comes_back(predicate: Predicate) -> None:
    text = print_predicate(predicate)
    assert parse_predicate(text) == predicate
    assert parse_predicate(text.replace("\n", " \r\n\n# or\n\t")) == predicate


@settings(max_examples=100, deadline=None)
@given(filters)
def test_a_filter_comes_back(conjunction: Filter) -> None:
    again = parse_filter(print_filter(conjunction))
    assert again == conjunction
    for got, wanted in zip(again, conjunction, strict=True):
        if isinstance(wanted.value, tuple):  # 1 equals 1.0, and yet they differ
            assert repr(got.value) == repr(wanted.value)


@settings(max_examples=200, deadline=None)
@given(messages)
def test_a_message_comes_back(message: Message) -> None:
    again = parse_message(print_message(message))
    assert again == message
    assert list(again) == list(message)


@settings(max_examples=200, deadline=None)
@given(strings)
def test_a_printed_line_shows_every_character(text: str) -> None:
    assert print_filter(Filter((Constraint("x", "=", text),))).isprintable()


@settings(max_examples=200, deadline=None)
@given(strings)
def test_any_text_is_read_or_refused_as_a_parse_error(text: str) -> None:
    for line in (text, f"string {text}", f"int x {text}", f"float x in {text}", f"time x = {text}"):
        with contextlib.suppress(ParseError):
            parse_predicate(line)


@pytest.mark.parametrize("text", TRICKY_STRINGS, ids=repr)
def test_tricky_string(text: str) -> None:
    found = Predicate.of(Constraint("x", "=", text), Constraint("x", "in", [text, "other"]))
    assert parse_predicate(print_predicate(found)) == found


@pytest.mark.parametrize("name", TRICKY_NAMES, ids=repr)
def test_tricky_name(name: str) -> None:
    found = Predicate.of(Constraint(name, "any"), Constraint(name, "prefix", name))
    assert parse_predicate(print_predicate(found)) == found


@pytest.mark.parametrize(
    ("line", "constraint"),
    [
        ("string carrier = UA", Constraint("carrier", "=", "UA")),
        ("number level > 3", Constraint("level", ">", 3)),
        ("string class >* finance/exchanges/", Constraint("class", "prefix", "finance/exchanges/")),
        ("string file *< .txt", Constraint("file", "suffix", ".txt")),
        ("string title * new york", Constraint("title", "contains", "new york")),
        ("string class !>* a", Constraint("class", "not prefix", "a")),
        ("string class !*< a", Constraint("class", "not suffix", "a")),
        ("string class !* a", Constraint("class", "not contains", "a")),
        ("string user any", Constraint("user", "any", type="string")),
        ("* user any", Constraint("user", "any")),
        ("* gate absent", Constraint("gate", "absent")),
        ("boolean late != true", Constraint("late", "!=", True)),
        ("number x = 3.0", Constraint("x", "=", 3.0)),
        ("number x >= -inf", Constraint("x", ">=", -inf)),
        ("number x in [2, 1.5]", Constraint("x", "in", [2, 1.5])),
        ('number x in ["inf", 1]', Constraint("x", "in", [inf, 1])),
        ('string x in ["a", "b\\n"]', Constraint("x", "in", ["a", "b\n"])),
        ("bool x in [true]", Constraint("x", "=", True)),
        ('string "two words" = "  a"', Constraint("two words", "=", "  a")),
        ("  string \t x  =   a b  ", Constraint("x", "=", "a b")),
        ('string x = a "b"', Constraint("x", "=", 'a "b"')),
        ("string x = 5", Constraint("x", "=", "5")),
        ("string or = or", Constraint("or", "=", "or")),
        ("string any any", Constraint("any", "any", type="string")),
        ("string x = # a", Constraint("x", "=", "# a")),
        ('string x > "*a"', Constraint("x", ">", "*a")),
        ('string x > "=a"', Constraint("x", ">", "=a")),
        ('string x * "<a"', Constraint("x", "contains", "<a")),
        ("string x = *a", Constraint("x", "=", "*a")),
    ],
)
def test_line(line: str, constraint: Constraint) -> None:
    got = one(line)
    assert got == constraint
    assert type(got.value) is type(constraint.value)
    assert one(print_filter(Filter((constraint,)))) == constraint


@pytest.mark.parametrize(
    ("line", "type", "constraint"),
    [
        ("integer level > 3", "int", Constraint("level", ">", 3)),
        ("float x = 3", "float", Constraint("x", "=", 3.0)),
        ("double x >= -inf", "float", Constraint("x", ">=", -inf)),
        ("int x <= -9223372036854775808", "int", Constraint("x", "<=", -(2**63))),
        ("int x in [3, 1, 3]", "int", Constraint("x", "in", [1, 3])),
        ("float x in [1, 2]", "float", Constraint("x", "in", [1.0, 2.0])),
        ("float x in [9007199254740993, 0.5]", "float", Constraint("x", "in", [2**53 + 1, 0.5])),
        ('float x in ["inf", 1.5]', "float", Constraint("x", "in", [inf, 1.5])),
    ],
)
def test_line_of_a_strict_type(line: str, type: str, constraint: Constraint) -> None:
    """2000, 3.1: an attribute matches a constraint of its own type only."""
    found = parse_filter(line)
    assert found.constraints == (Constraint(constraint.name, "any", type=type), constraint)
    assert repr(found.constraints[1].value) == repr(constraint.value)
    assert parse_filter(print_filter(found)) == found
    assert len(print_filter(found).splitlines()) == 1


numeric_lines = st.builds(
    " ".join,
    st.tuples(
        st.sampled_from(["int", "float", "number"]),
        st.sampled_from("xy"),
        st.sampled_from(["= 3", "> 3", "!= 4", "any", "in [1, 3]"]),
    ),
).filter(lambda line: not line.startswith("number") or not line.endswith("any"))


@given(st.lists(numeric_lines, min_size=1, max_size=6))
def test_types_come_back(lines: list[str]) -> None:
    found = parse_filter("\n".join(lines))
    assert parse_filter(print_filter(found)) == found
    assert len(print_filter(found).splitlines()) <= len(lines)
    for x, y in product((3, 3.0, 4, 3.5, None), repeat=2):
        message = {"x": x, "y": y}
        assert found.matches(message) == all(parse_filter(line).matches(message) for line in lines)


@given(filters)
def test_constraints_of_one_type_come_back(conjunction: Filter) -> None:
    """Where a constraint follows on its own type, one line says both."""
    typed = [
        part
        for c in conjunction
        for part in ([Constraint(c.name, "any", type=c.type)] if c.type else []) + [c]
    ]
    assert parse_filter(print_filter(Filter(tuple(typed)))) == Filter(tuple(typed))


def test_advertisement_compares_numbers_by_value() -> None:
    offered = parse_advertisement("integer level > 3\nstring what = alarm")
    assert offered == Advertisement((Constraint("level", ">", 3), Constraint("what", "=", "alarm")))
    assert parse_advertisement("") == Advertisement(())


def test_lines_of_the_papers_table() -> None:
    """2000, table 2 and figure 1: a time of day is one of the first day of 1970."""
    message = parse_message(
        """
        string class = finance/exchanges/stock
        time date = 02:40:03
        string exchange = NYSE
        float prior = 105.25
        float change = -4
        """
    )
    assert message["date"] == datetime(1970, 1, 1, 2, 40, 3, tzinfo=UTC)
    assert message["change"] == -4.0
    assert isinstance(message["change"], float)
    assert parse_filter("string class >* finance/exchanges/\nfloat change < 0").matches(message)


@pytest.mark.parametrize(
    ("text", "hour", "micro"), [("2:40", 2, 0), ("02:40:03.5", 2, 500_000), ("23:59:59", 23, 0)]
)
def test_time_of_day(text: str, hour: int, micro: int) -> None:
    value = one(f"time t = {text}").value
    assert isinstance(value, datetime)
    assert (value.year, value.hour, value.microsecond) == (1970, hour, micro)
    assert one(f'time t in ["{text}", "{text}"]') == Constraint("t", "=", value)


def test_constants() -> None:
    assert print_predicate(Predicate(())) == "false"
    assert print_predicate(Predicate((Filter(()),))) == "true"
    assert print_filter(Filter(())) == "true"
    assert parse_predicate("false\nor\nnumber x = 1") == Predicate.of(Constraint("x", "=", 1))
    assert parse_predicate("# all\n\ntrue\n") == Predicate((Filter(()),))
    assert parse_message("") == Message()
    assert print_message(Message()) == ""


def test_printed_form() -> None:
    found = Predicate(
        (
            Filter((Constraint("x", "=", 1), Constraint("b c", "prefix", "u/"))),
            Filter((Constraint("t", "<", datetime(2013, 1, 31, tzinfo=UTC)),)),
            Filter((Constraint("f", "in", [inf, 2.0, 1]), Constraint("g", "absent"))),
        )
    )
    assert print_predicate(found).splitlines() == [
        "number x = 1",
        'string "b c" >* u/',
        "or",
        "time t < 2013-01-31T00:00:00Z",
        "or",
        'number f in [1, 2.0, "inf"]',
        "* g absent",
    ]


@pytest.mark.parametrize("value", [True, 1, 1.0, -0.0, inf, "true", datetime(1, 1, 1, tzinfo=UTC)])
def test_message_keeps_the_type(value: Value) -> None:
    again = parse_message(print_message(Message({"x": value})))["x"]
    assert type_of(again) is type_of(value)
    assert repr(again) == repr(value)


def test_message_may_hold_nan() -> None:
    value = parse_message(print_message(Message({"x": float("nan")})))["x"]
    assert isinstance(value, float)
    assert isnan(value)


@pytest.mark.parametrize(
    ("text", "pointed", "reason"),
    [
        ("", "", "no constraint"),
        ("# nothing\n", "# nothing\n", "no constraint"),
        ("or", "or", "before this or"),
        ("int x = 1\nor\nor\nint y = 1", "or\nint y = 1", "before this or"),
        ("int x = 1\nor\n", "\n", "behind the last or"),
        ("true\nint x = 1", "true\nint x = 1", "true stands alone"),
        ("int x = 1\nfalse", "false", "false stands alone"),
        ("text x = 1", "text x = 1", "no type 'text'"),
        ("int", "", "name is missing"),
        ("int x", "", "operator is missing"),
        ("int x ==  3", "==  3", "no operator '=='"),
        ("string x == UA", "== UA", "no operator '=='"),
        ("int level>3", "level>3", "put white space"),
        ("int x =", "", "needs a value"),
        ("string x =", "", "needs a value"),
        ("int x = abc", "abc", "'abc' is not an int"),
        ("int x = 3.5", "3.5", "'3.5' is not an int"),
        ("string a = b\nint x = 3.5 # c", "3.5 # c", "is not an int"),
        ("int x = 9223372036854775808", "9223372036854775808", "64 bits"),
        ("int x = " + "9" * 9999, "9" * 9999, "64 bits"),
        ("int x = \u0663", "\u0663", "not an int"),
        ("float x = 1e999", "1e999", "does not fit in a double"),
        ("float x = 1_0", "1_0", "not a float"),
        ("float x = nan", "nan", "NaN is no value"),
        ("bool x = yes", "yes", "not a bool"),
        ("bool x < true", "< true", "does not order booleans"),
        ("time x = 25:00:00", "25:00:00", "is not an instant"),
        ("time x = soon", "soon", "is not an instant"),
        ("int x >* 3", ">* 3", "takes a string"),
        ("* x = 3", "* x = 3", "only any and absent"),
        ("string x absent", "string x absent", "absent has no type"),
        ("number x any", "number x any", "any takes one type"),
        ("number x >* 3", ">* 3", "takes a string"),
        ("number x = 1.5.2", "1.5.2", "not a float"),
        ("number x in [true]", "[true]", "not of type number"),
        ("string class > * finance/", "* finance/", "is this >*"),
        ("string class > *finance/", "*finance/", "is this >*"),
        ("string file * < .txt", "< .txt", "is this *<"),
        ("string file !* < .txt", "< .txt", "is this !*<"),
        ("string x > = a", "= a", "is this >="),
        ("string x < = a", "= a", "is this <="),
        ("* x any 3", "3", "any takes no value"),
        ("string x in UA", "UA", "JSON list"),
        ('string x in ["UA"', "", "not JSON"),
        ('string x in ["UA",, "AA"]', ', "AA"]', "not JSON"),
        ('string x in ["UA", 5]', '["UA", 5]', "holds 5, which is not of type string"),
        ("int x in [1, 2.5]", "[1, 2.5]", "not an int"),
        ("int x in [1, null]", "[1, null]", "holds None, which is not of type int"),
        ("int x in []", "[]", "at least one value"),
        ("float x in [NaN]", "[NaN]", "not JSON"),
        ("int x in " + "[" * 100_000, "[" * 100_000, "too deeply"),
        ('string x = "a', '"a', "not JSON"),
        ('string x = "a" b', "b", "not JSON"),
        ('string x = "\\ud800"', '"\\ud800"', "lone surrogate"),
        ('string "x = 1', '"x = 1', "quoted name"),
        ('string "x"y = 1', "y = 1", "white space is missing"),
        ('string "" = 1', '"" = 1', "name is empty"),
    ],
)
def test_error_points_at_the_character(text: str, pointed: str, reason: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_predicate(text)
    assert reason in caught.value.reason
    assert text[caught.value.position :] == pointed
    assert caught.value.text == text


def test_the_caret_stands_below_the_value() -> None:
    with pytest.raises(ParseError) as caught:
        parse_predicate("string carrier = UA\nint delay > soon")
    assert str(caught.value).splitlines() == [
        "'soon' is not an int (line 2)",
        "  int delay > soon",
        "              ^",
    ]


@pytest.mark.parametrize("text", ["int x = 1\nor\nint x = 2", "false", ""])
def test_what_is_no_filter(text: str) -> None:
    with pytest.raises(ParseError):
        parse_filter(text)


@pytest.mark.parametrize(
    ("text", "pointed"),
    [
        ("int x = 1\nint x = 2", "x = 2"),
        ("int x > 1", "> 1"),
        ("* x = 1", "* x = 1"),
        ("number x = 1", "number x = 1"),
        ("int x in [1]", "in [1]"),
        ("int x = a", "a"),
        ("true", "true"),
        ("or", "or"),
        ('string x = "\\udc00"', '"\\udc00"'),
    ],
)
def test_what_is_no_message(text: str, pointed: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_message(text)
    assert text[caught.value.position :] == pointed


def test_what_is_no_text() -> None:
    with pytest.raises(InvalidPredicate):
        parse_predicate(b"int x = 1")  # type: ignore[arg-type]
