"""Filters of the CloudEvents Subscriptions API: their meaning by brute force, and the errors."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import palio
from palio.errors import LimitExceeded, ParseError
from palio.model.dialects.cesql import evaluate
from palio.model.dialects.cloudevents_filters import read
from palio.model.expressions.cesql_functions import cesql_string
from palio.model.message import Message

TEXTS = ["a", "ab", "A", "5", "true", "a%", "a_b", "\\"]
NAMES = ["type", "subject", "ext", "other"]


def holds(given: Any, event: dict[str, Any]) -> bool:
    """What the specification says, in its words."""
    ((dialect, content),) = given.items()
    if dialect == "all":
        return all(holds(one, event) for one in content)
    if dialect == "any":
        return any(holds(one, event) for one in content)
    if dialect == "not":
        return not holds(content, event)
    if dialect == "sql":
        found = evaluate(content, event)
        return found.value is True and found.error is None
    compare: Any = {"exact": str.__eq__, "prefix": str.startswith, "suffix": str.endswith}[dialect]
    return all(
        name in event and compare(cesql_string(event[name]), text) for name, text in content.items()
    )


def draw(rng: random.Random, depth: int = 3) -> dict[str, Any]:
    kind = rng.random()
    if depth and kind < 0.3:
        word = rng.choice(["all", "any"])
        return {word: [draw(rng, depth - 1) for _ in range(rng.randint(1, 3))]}
    if depth and kind < 0.5:
        return {"not": draw(rng, depth - 1)}
    if kind < 0.6:
        return {
            "sql": rng.choice(["ext = 5", "EXISTS other", "ext LIKE 'a%' OR type = 'a'", "ext"])
        }
    names = rng.sample(NAMES, rng.randint(1, 2))
    return {rng.choice(["exact", "prefix", "suffix"]): {one: rng.choice(TEXTS) for one in names}}


def draw_event(rng: random.Random) -> dict[str, Any]:
    event: dict[str, Any] = {"type": rng.choice(TEXTS)}
    if rng.random() < 0.6:
        event["subject"] = rng.choice(TEXTS)
    for name in ("ext", "other"):
        if rng.random() < 0.7:
            event[name] = rng.choice([*TEXTS, "", 5, True, False, -5])
    return event


@pytest.mark.parametrize("seed", range(6))
def test_random_filters(seed: int) -> None:
    rng = random.Random(seed)
    selected = 0
    for _ in range(80):
        given = draw(rng)
        predicate = read(json.dumps(given) if rng.random() < 0.5 else given)
        for _ in range(15):
            event = draw_event(rng)
            wanted = holds(given, event)
            assert predicate.matches(Message(event)) == wanted, (given, event)
            selected += wanted
    assert selected > 200


def test_a_list_must_hold_wholly_and_an_empty_one_does() -> None:
    given = [{"prefix": {"type": "com."}}, {"suffix": {"subject": ".jpg"}}]
    assert read(given) == palio.parse("type LIKE 'com.%' AND subject LIKE '%.jpg'")
    assert read([]) == palio.parse("TRUE")
    assert read("[]").matches({"x": 1})


def test_case_counts() -> None:
    assert read({"exact": {"type": "Abc"}}).matches({"type": "Abc"})
    assert not read({"exact": {"type": "Abc"}}).matches({"type": "abc"})
    assert not read({"prefix": {"type": "ab"}}).matches({"type": "Abc"})


@pytest.mark.parametrize(
    ("given", "place", "reason"),
    [
        (5, "", "a filter is an object"),
        ({}, "", "a filter has one member"),
        ({"exact": {"type": "a"}, "not": {}}, "", "not 2"),
        ({"regex": {"type": "a"}}, "regex", "there is no filter dialect 'regex'"),
        ({"exact": {}}, "exact", "of attributes and strings"),
        ({"exact": []}, "exact", "of attributes and strings"),
        ({"exact": {"type": ""}}, "exact.type", "an empty string"),
        ({"exact": {"": "a"}}, "exact.", "small letters and digits"),
        ({"exact": {"Type": "a"}}, "exact.Type", "small letters and digits"),
        ({"prefix": {"n": 5}}, "prefix.n", "compared with a string, not 5"),
        ({"all": []}, "all", "at least one filter"),
        ({"any": {"exact": {"a": "b"}}}, "any", "at least one filter"),
        (
            [{"all": [{"exact": {"a": "b"}}, {"not": []}]}],
            "[0].all[1].not",
            "a filter is an object",
        ),
        ({"sql": "id = "}, "sql", "an attribute, a literal or ( is expected here, at character 6"),
        ({"sql": "1 + 2"}, "sql", "a filter is a Boolean"),
        ({"sql": 5}, "sql", "is a string, not 5"),
    ],
)
def test_errors_name_the_place(given: Any, place: str, reason: str) -> None:
    with pytest.raises(ParseError) as caught:
        read(given)
    assert reason in str(caught.value)
    assert not place or f"at {place}" in str(caught.value)


def test_errors_point_at_the_character() -> None:
    text = '[{"all": [{"exact": {"type": ""}}]}]'
    with pytest.raises(ParseError) as caught:
        read(text)
    assert caught.value.position == text.index('""')


def test_size_is_bounded() -> None:
    given: Any = {"exact": {"type": "a"}}
    for _ in range(60):
        given = {"not": given}
    with pytest.raises(LimitExceeded):
        read(given)
    pairs = [{"exact": {f"a{at}": "x", f"b{at}": "y"}} for at in range(20)]
    read({"all": pairs})
    with pytest.raises(LimitExceeded):
        read({"not": {"any": pairs}})
