"""Claims of "Content-Based Addressing and Routing" (CU-CS-902-00), sections 2 and 3."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from palio import Filter, Message, covers, parse
from palio.errors import ParseError
from palio.model import notation

ALARM = "string what = alarm\ntime date = 02:40:03"
TABLE_2 = [
    ("string what = alarm", ALARM, True),
    ("string what = alarm\ninteger level > 3", ALARM, False),
    (
        "string what = alarm\ninteger level > 3\ninteger level < 7",
        "string what = alarm\ninteger level = 10",
        False,
    ),
    (
        "string what = alarm\ninteger level > 3\ninteger level < 7",
        "string what = alarm\ninteger level = 5",
        True,
    ),
]
ADVERTISED = "string what = alarm\nstring what = login\nstring user any"
TABLE_3 = [
    ("string what = alarm", True),
    (ALARM, False),
    ("string what = login\nstring user = ingmar", True),
    ("string what = logout\nstring user = ingmar", False),
]


@pytest.mark.parametrize(("subscription", "notification", "covered"), TABLE_2)
def test_table_2_subscriptions(subscription: str, notification: str, covered: bool) -> None:
    """Section 3.1, table 2: constraints on one attribute are a conjunction."""
    filter = notation.parse_filter(subscription)
    assert filter.matches(notation.parse_message(notification)) is covered


@pytest.mark.parametrize(("notification", "covered"), TABLE_3)
def test_table_3_advertisements(notification: str, covered: bool) -> None:
    """Section 3.2, table 3: every attribute allowed, constraints on one are a disjunction."""
    advertisement = notation.parse_advertisement(ADVERTISED)
    assert advertisement.matches(notation.parse_message(notification)) is covered


OPERATORS = [
    ("string s = abc", "abc", "abd"),
    ("string s != abc", "abd", "abc"),
    ("string s < abc", "abb", "abc"),
    ("string s > abc", "abca", "abc"),
    ("string s * bc", "abcd", "acb"),
    ("string s >* bc", "bcd", "abc"),
    ("string s *< bc", "abc", "bcd"),
    ("integer n != 3", "4", "3"),
    ("integer n >= 3", "3", "2"),
    ("float x <= 1.5", "1.5", "1.6"),
    ("boolean b = true", "true", "false"),
    ("time t > 02:40:03", "02:40:04", "02:40:03"),
]


@pytest.mark.parametrize(("constraint", "yes", "no"), OPERATORS)
def test_operators(constraint: str, yes: str, no: str) -> None:
    """Section 3.1: equality and order for each type; substring, prefix and suffix for strings; and any,
    which matches every value. An attribute of another name never matches."""
    filter = notation.parse_filter(constraint)
    type, name, *_ = constraint.split()
    assert filter.matches(notation.parse_message(f"{type} {name} = {yes}"))
    assert not filter.matches(notation.parse_message(f"{type} {name} = {no}"))
    assert not filter.matches(notation.parse_message(f"{type} other = {yes}"))
    for value in (yes, no):
        message = notation.parse_message(f"{type} {name} = {value}")
        assert notation.parse_filter(f"{type} {name} any").matches(message)


def test_figure_1_filter() -> None:
    """Section 3.1, figure 1: price decreases of DIS on NYSE."""
    filter = notation.parse_filter(
        "string class >* finance/exchanges/\n"
        "string exchange = NYSE\n"
        "string symbol = DIS\n"
        "float change < 0"
    )
    tick = {"class": "finance/exchanges/stock", "exchange": "NYSE", "symbol": "DIS", "change": -1.5}
    assert filter.matches(tick)
    assert not filter.matches({**tick, "change": 0.0})
    assert not filter.matches({**tick, "class": "finance"})


def test_figure_1_as_it_is_printed_is_refused() -> None:
    """Section 3.1: the figure prints `> *` for the prefix operator, which the text gives as `>*`."""
    with pytest.raises(ParseError, match=r"is this >\*") as caught:
        notation.parse_filter("string class > * finance/exchanges/\nstring exchange = NYSE")
    assert caught.value.position == len("string class > ")


def test_attributes_beyond_the_filter_do_not_matter() -> None:
    """Section 3.1: a notification may contain attributes without a correspondent."""
    assert parse("what = 'alarm'").matches({"what": "alarm", "more": 1, "yet": "x"})


def test_subnets_are_subsets() -> None:
    """Section 2.1: s1 covers s2 when its notifications include those of s2."""
    assert covers(parse("airline IS NOT NULL"), parse("airline = 'UA' AND dest = 'ARN'"))
    assert not covers(parse("airline = 'UA' AND dest = 'ARN'"), parse("airline IS NOT NULL"))


def test_advertisement_covering() -> None:
    """Section 3.3: a1 covers a2 when it allows all that a2 allows."""
    wide = notation.parse_advertisement(ADVERTISED)
    narrow = notation.parse_advertisement("string what = login")
    assert covers(wide, narrow)
    assert not covers(narrow, wide)


def test_the_empty_subscription_covers_everything() -> None:
    """Section 3.1: with no constraint, no constraint is violated."""
    assert Filter(()).matches(Message({}))
    assert covers(parse("TRUE"), parse("x = 1"))


def test_traditional_addressing_is_an_instance_of_the_model() -> None:
    """Section 1 and 2.1: unicast, multicast, channels and subjects, in the example that we ship."""
    example = Path(__file__).parents[2] / "examples" / "addressing.py"
    shown = runpy.run_path(str(example))["deliveries"]()
    assert shown == {
        "unicast": ["host-7"],
        "multicast": ["ann", "bob"],
        "channel": ["trader"],
        "subject": ["desk", "archive"],
    }
