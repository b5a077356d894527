"""Words: each comes back as it was, by its own tag, and fields that are added later do no harm."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.protocol.frames import BrokenFrame, Frames, word_frame
from palio.protocol.words import Credit, Hello, Ping, Subscribe, Word
from tests.protocol.word_strategies import WORDS, structs


def read(data: bytes) -> Word:
    (found,) = Frames().feed(data)
    assert not isinstance(found, tuple)
    return found


@pytest.mark.parametrize("kind", WORDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_every_word_comes_back(kind: Any, data: st.DataObject) -> None:
    word = data.draw(structs(kind))
    found = read(word_frame(word))
    assert found == word
    assert type(found) is kind


def test_tags_are_different() -> None:
    assert len({kind.__struct_config__.tag for kind in WORDS}) == len(WORDS)


def sent(*plain: object) -> bytes:
    payload = msgspec.msgpack.encode(plain)
    return (1 + len(payload)).to_bytes(4, "little") + b"\0" + payload


def test_fields_with_defaults_may_be_left_out_and_unknown_ones_may_follow() -> None:
    assert read(sent("Hello", 1, "client", "ann")) == Hello(1, "client", "ann")
    assert read(sent("Subscribe", 3, "x > 1")) == Subscribe(3, "x > 1")
    assert read(sent("Ping", 7, "of a later version", [1, 2])) == Ping(7)


@pytest.mark.parametrize(
    "plain",
    [
        ("Ping",),
        ("Ping", -1),
        ("Ping", 2**63),
        ("Ping", 1.5),
        ("Ping", None),
        ("Credit", 1),
        ("Hello", "1", "client", "ann"),
        ("Acknowledge", 1, [1, -2]),
        ("Acknowledge", 1, 2),
        ("Digest", [["b1", "e"]]),
        ("Got", "b1", "e", "b2", True),
        ("Nothing",),
        (7,),
        (),
    ],
    ids=str,
)
def test_wrong_types_are_refused(plain: tuple[object, ...]) -> None:
    with pytest.raises(BrokenFrame, match="a word that nobody here knows"):
        read(sent(*plain))


def test_words_are_values() -> None:
    with pytest.raises(AttributeError):
        Credit(1, 2).count = 3  # type: ignore[misc]
    assert Credit(1, 2) == Credit(1, 2)
