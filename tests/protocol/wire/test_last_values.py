"""Keys of last values: which messages have the same one."""

from __future__ import annotations

import pytest

from palio.errors import InvalidValue
from palio.model.message import Message
from palio.protocol.wire.last_values import (
    forgetting,
    key_of,
    marked,
    retaining,
    stamp_of,
    stamped,
    unstamped,
    without_retain,
)
from palio.protocol.wire.message_headers import (
    NO_HEADERS,
    RETAINED,
    SIZE_MAX,
    body_of,
    headers_of,
    packed,
)


def key(names: str, text: bytes) -> bytes:
    return key_of(retaining(names.split())["retain"], Message.from_json(text))  # type: ignore[arg-type]


def test_equal_values_are_one_key_and_others_are_not() -> None:
    same = [
        (b'{"a": 1, "b": "x"}', b'{"b": "x", "a": 1.0, "c": 2}'),
        (b'{"a": 0, "b": 1}', b'{"a": -0.0, "b": 1}'),
    ]
    for one, other in same:
        assert key("a b", one) == key("b a", other)
    texts = [
        b'{"a": 1}',
        b'{"a": "1"}',
        b'{"a": true}',
        b'{"a": 1.5}',
        b'{"a": {"$float": "NaN"}}',
        b'{"a": "nan"}',
        b'{"a": {"$time": "2026-01-01T00:00:00Z"}}',
        b'{"a": [1]}',
        b'{"a": 9007199254740993}',
        b'{"a": 9007199254740992}',
    ]
    assert len({key("a", text) for text in texts}) == len(texts)
    assert key("a", b'{"a": 1}') != key("b", b'{"b": 1}')


def test_what_only_brokers_set() -> None:
    headers = stamped({**retaining("a"), RETAINED: True, "mine": 1}, 7, b"k" * 16)
    assert stamp_of(headers) == (b"k" * 16, 7)
    assert RETAINED not in headers
    assert dict(unstamped(headers)) == {"retain": '["a"]', "mine": 1}
    payload = packed(headers, 1000) + b"body"
    assert dict(headers_of(without_retain(payload))) == {"mine": 1}
    assert body_of(without_retain(payload)) == body_of(marked(payload)) == b"body"
    assert headers_of(marked(payload))[RETAINED] is True
    assert without_retain(NO_HEADERS + b"retain") == NO_HEADERS + b"retain"
    full = packed({**headers, "long": "a" * (SIZE_MAX - 200)}, SIZE_MAX)
    room = SIZE_MAX - (len(full) - 2)
    fuller = packed({**headers, "long": "a" * (SIZE_MAX - 200 + room)}, SIZE_MAX)
    assert marked(fuller) == fuller, "there is no room for the mark"
    assert stamp_of(headers_of(forgetting(9, b"k" * 16))) == (b"k" * 16, 9)


@pytest.mark.parametrize("wrong", [b"short", 1])
def test_stamps_that_are_none(wrong: object) -> None:
    assert stamp_of({"retain": "", "retained_us": 1, "retained_key": wrong}) is None  # type: ignore[dict-item]


def test_names_that_are_none() -> None:
    for names in ([], ["a", "a"], list(map(str, range(17)))):
        with pytest.raises(InvalidValue):
            retaining(names)
