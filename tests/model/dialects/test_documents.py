"""Documents of JSON: places of errors, bounds, and whatever else is sent."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from typing import Any

import pytest

from palio.errors import InvalidPredicate, LimitExceeded, ParseError
from palio.model.dialects import jsonlogic, mongo
from palio.model.dialects.documents import (
    DEPTH_MAX,
    OBJECTS_MAX,
    TEXT_MAX,
    VALUES_MAX,
    RefusedRule,
    document_of,
    located,
    within,
)


@pytest.mark.parametrize(
    ("path", "begins"),
    [
        ([], "{"),
        (["a"], '[1, {"b'),
        (["a", 0], "1"),
        (["a", 1], '{"b"'),
        (["a", 1, "b"], '"x\\"}'),
        (["c"], "2"),
        (["a", 7], '[1, {"b'),
        (["nowhere"], "{"),
        (["c", "d"], "2"),
    ],
)
def test_an_error_points_at_its_place(path: list[Any], begins: str) -> None:
    text = ' { "a" : [1, {"b": "x\\"}]"}, []] , "c":2}'
    with pytest.raises(RefusedRule) as raised, within(*path):
        raise RefusedRule("no")
    error = located(raised.value, text)
    assert text[error.position :].startswith(begins)
    assert error.reason == "no"


def test_an_error_without_a_text_names_the_way() -> None:
    with pytest.raises(RefusedRule) as raised, within("$and", 1), within("a"):
        raise RefusedRule("no", is_limit=True)
    error = located(raised.value, "")
    assert isinstance(error, LimitExceeded)
    assert error.reason == "no, at $and[1].a"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": }', "not JSON: Expecting value"),
        ('{"a": 1, "a": 2}', "the key 'a' is there twice"),
        ("NaN", "NaN is no number"),
        ("[" * 100_000, "nested more than"),
        ("[" * (DEPTH_MAX + 2) + "1" + "]" * (DEPTH_MAX + 2), "nested more than"),
        ("1" * 5000, "not JSON"),
        (" " * (TEXT_MAX + 1), "characters"),
        ("[" + "1," * VALUES_MAX + "1]", "values"),
        ("[" + "{}," * OBJECTS_MAX + "{}]", "objects"),
    ],
    ids=lambda text: text[:20],
)
def test_texts_that_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        document_of(text, "rule")


def test_objects_that_are_refused() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    with pytest.raises(LimitExceeded, match="nested"):
        document_of(cyclic, "rule")
    with pytest.raises(InvalidPredicate, match="keys"):
        document_of({None: 1}, "rule")


WORDS: list[Any] = [
    None, True, False, 0, 1, -1, 2.5, 1e300, "", "a", "a.b", "a.0", "$a", "x" * 40, "(", "\ud800",
    10**30, "5", "each", "`", "'", "\0",
]  # fmt: skip
KEYS = (
    "a a.b a..b $ $and $or $nor $not $eq $ne $gt $lt $in $nin $all $size $mod $regex $options $type $exists "
    "$elemMatch $expr $add $cond $literal $date $oid $comment var == === != < <= > and or ! !! if in cat "
    "substr min + - * / % missing missing_some some all none filter map reduce merge log nothing"
).split()


def _drawn(draw: random.Random, depth: int) -> Any:
    kind = draw.random()
    if depth == 0 or kind < 0.3:
        return draw.choice(WORDS)
    if kind < 0.55:
        return [_drawn(draw, depth - 1) for _ in range(draw.randint(0, 3))]
    count = draw.choice([1, 1, 1, 2])
    return {draw.choice(KEYS): _drawn(draw, depth - 1) for _ in range(count)}


@pytest.mark.parametrize("reader", [jsonlogic, mongo], ids=["jsonlogic", "mongo"])
def test_any_document_is_read_or_refused(reader: Any) -> None:
    draw = random.Random(17)
    message = {"a": [1, "a", {"b": 2}], "b": "x", "a.b": 3}
    read = 0
    for _ in range(3000):
        document = _drawn(draw, 4)
        for rule in (document, json.dumps(document)):
            with suppress(InvalidPredicate):
                reader.read(rule).matches(message)
                read += 1
    assert read > 500
