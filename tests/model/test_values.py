"""Values and messages: what is admitted, what is refused, and with which sentence."""

from __future__ import annotations

import json
import math
import pickle
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given

from palio import InvalidValue, Message
from palio.model.message import DEPTH_MAX, Attribute
from palio.model.values import INT_MAX, INT_MIN, Type, format_instant, parse_instant
from tests.strategies import messages


def test_python_and_numpy_values() -> None:
    message = Message(
        {
            "a": True,
            "b": np.int32(5),
            "c": np.float32(0.5),
            "d": np.str_("x"),
            "e": np.bool_(False),
            "f": datetime(2013, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))),
            "g": date(2013, 1, 2),
            "h": None,
        }
    )
    assert {a.name: a.type for a in message.attributes} == {
        "a": Type.BOOL,
        "b": Type.INT,
        "c": Type.FLOAT,
        "d": Type.STRING,
        "e": Type.BOOL,
        "f": Type.TIME,
        "g": Type.TIME,
    }
    assert message["f"] == datetime(2013, 1, 1, 10, tzinfo=UTC)
    assert message["g"] == datetime(2013, 1, 2, tzinfo=UTC)
    assert "h" not in message


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (2**63, "does not fit in 64 bits"),
        (-(2**63) - 1, "does not fit in 64 bits"),
        pytest.param(10**10_000, "does not fit in 64 bits", id="10^10000"),
        (np.uint64(2**64 - 1), "does not fit in 64 bits"),
        (datetime(2013, 1, 1), "has no time zone"),  # noqa: DTZ001
        (np.datetime64("2013-01-01"), "has no time zone"),
        ({1, 2}, "of type set"),
        (1 + 2j, "of type complex"),
        ("\ud800", "lone surrogate"),
        (datetime.max.replace(tzinfo=timezone(-timedelta(hours=5))), "outside the years"),
    ],
)
def test_refused_values_name_the_attribute(value: object, says: str) -> None:
    with pytest.raises(InvalidValue, match=says) as caught:
        Message({"price": value})
    assert "'price'" in str(caught.value)


def test_limits_are_admitted() -> None:
    assert Message({"x": INT_MIN, "y": INT_MAX, "z": math.inf})["y"] == INT_MAX


def test_duplicates_and_names() -> None:
    with pytest.raises(InvalidValue, match="twice"):
        Message([Attribute("x", 1), Attribute("x", 2)])
    with pytest.raises(InvalidValue, match="twice"):
        Message.from_json('{"x": 1, "x": 2}')
    with pytest.raises(InvalidValue, match="twice"):
        Message.from_json('{"a": {"b": 1}, "a.b": 2}')
    with pytest.raises(InvalidValue, match="empty"):
        Message({"": 1})
    with pytest.raises(InvalidValue, match="string"):
        Message({5: 1})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"x": [1}', "not JSON"),
        ('{"x": 1e999}', "does not fit"),
        ('{"x": NaN}', "not JSON"),
        ('{"x": 99999999999999999999}', "64 bits"),
        ('{"x": {"$time": "soon"}}', "not an instant"),
        ('{"x": {"$float": "1"}}', "one of"),
        ("{" + '"x": {' * 100_000, "not JSON|nested"),
    ],
)
def test_bad_json_messages(text: str, says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        Message.from_json(text)


def _nested(depth: int) -> str:
    return '{"a": ' * depth + "1" + "}" * depth


def _from_json_below(frames: int, text: str) -> Message:
    return Message.from_json(text) if not frames else _from_json_below(frames - 1, text)


def test_the_depth_of_a_message_does_not_depend_on_the_caller() -> None:
    """Brokers read a message in several places: it must not be a message in some of them only."""
    for frames in (0, 400):
        assert len(_from_json_below(frames, _nested(DEPTH_MAX))) == 1
        for depth in (DEPTH_MAX + 1, 300, 900, 5_000):
            with pytest.raises(InvalidValue, match="at most 64 levels"):
                _from_json_below(frames, _nested(depth))


def test_a_short_text_does_not_stand_for_very_long_names() -> None:
    def text(outer: int, inner: int) -> str:
        return json.dumps({"x" * outer: {str(i): 1 for i in range(inner)}})

    assert len(Message.from_json(text(1024, 1024))) == 1024
    assert len(Message.from_json(text(100_000, 10))) == 10
    with pytest.raises(InvalidValue, match="repeat more than 1048576 characters"):
        Message.from_json(text(1024, 1025))
    deep = '{"' + "x" * 600 + '": ' + '{"y": ' * 40 + text(1, 50) + "}" * 41
    assert len(Message.from_json(deep)) == 50


@given(messages)
def test_json_round_trip(message: Message) -> None:
    assert Message.from_json(message.to_json()) == message


@given(messages)
def test_messages_are_values(message: Message) -> None:
    assert pickle.loads(pickle.dumps(message)) == message
    assert hash(Message(dict(message))) == hash(message)
    with pytest.raises(AttributeError):
        message.extra = 1  # type: ignore[attr-defined]


def test_equality_knows_types() -> None:
    assert Message({"x": 1}) != Message({"x": 1.0})
    assert Message({"x": True}) != Message({"x": 1})
    assert Message({"x": math.nan}) == Message({"x": math.nan})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2013-01-31", "2013-01-31T00:00:00Z"),
        ("2013-1-3 4:05", "2013-01-03T04:05:00Z"),
        ("2013-01-31 10:00:00.5", "2013-01-31T10:00:00.500000Z"),
        ("2013-01-31T10:00:00+01:30", "2013-01-31T08:30:00Z"),
        ("2013-01-31T10:00:00.1234560Z", "2013-01-31T10:00:00.123456Z"),
    ],
)
def test_instants(text: str, expected: str) -> None:
    assert format_instant(parse_instant(text)) == expected


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2013-13-01", "2013-01-32", "2013-01-01T25:00", "2013-01-01T00:00:00.1234567",
     "0001-01-01T00:00+01:00", "2013-01-01T00:00+99:00", "2013-01-01T00:00 Europe/Rome"],
)  # fmt: skip
def test_bad_instants(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_instant(text)
