import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import InvalidValue
from palio.matching.encode import json_kernels, json_word_kernels
from palio.matching.encode.json_messages import _JsonReader, encode_json
from palio.matching.encode.messages import encode_messages
from palio.matching.encode.names import NameIndex
from palio.model.message import Message
from tests.matching.encode.batches import assert_same, decoded
from tests.matching.encode.json_texts import ODD_TEXTS, PLAIN_TEXTS
from tests.strategies import messages as message_strategy
from tests.strategies import names as name_strategy

NAMES = {
    **{name: i for i, name in enumerate(["a", "b", "c", "a.b", "a.b.c", "price", "é", "😀", "t"])},
    "$time": 20,
    "a.$time": 21,
    "a.": 22,
    ".": 23,
    "x\ny": 24,
    "a.$float": 25,
}


def check(texts: list[Any], kind: Any = None, names: dict[str, int] = NAMES) -> None:
    """Both read the rows alike, or both refuse the first bad one."""
    column = pa.array(texts, kind or pa.string())
    messages, wrong = read(texts)
    if wrong is None:
        assert_same(encode_json(names, column), names, messages)
        return
    with pytest.raises(InvalidValue) as caught:
        encode_json(names, column)
    assert str(caught.value) == wrong


def read(texts: list[Any]) -> tuple[list[Message], str | None]:
    """The messages up to the first bad row, and what is wrong with it."""
    messages: list[Message] = []
    for row, text in enumerate(texts):
        try:
            messages.append(Message() if text is None else Message.from_json(text))
        except InvalidValue as error:
            return messages, str(error.at(row=row))
    return messages, None


def is_plain(text: str) -> bool:
    """Does the kernel read it without Python?"""
    reader = _JsonReader(NameIndex.of(NAMES), 1, len(text))
    reader.read(pa.array([text]))
    return not reader.odd[0]


@pytest.mark.parametrize("text", PLAIN_TEXTS)
def test_plain_rows(text: str) -> None:
    assert is_plain(text)
    check([text])


@pytest.mark.parametrize("text", ODD_TEXTS, ids=lambda text: repr(text)[:60])
def test_odd_rows(text: str) -> None:
    assert not is_plain(text)
    check([text])
    check(['{"a": "before"}', text, '{"a": "behind", "b": 1}', text])


def test_odd_rows_stand_in_their_order() -> None:
    odd = '{"a": {"$time": "2013-01-31T10:00+01:00"}, "b": "x", "c": "new"}'
    check(['{"a": "x"}', odd, None, "{}", '{"b": {"z": 1}, "c": "y"}', odd, '{"a": "y"}'])


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": "\xff"}',
        b'{"a": "\xc0\x80"}',
        b'{"a": "\xc3"}',
        b'{"a": "\xe0\x9f\xbf"}',
        b'{"a": "\xed\xa0\x80"}',
        b'{"a": "\xf0\x8f\xbf\xbf"}',
        b'{"a": "\xf4\x90\x80\x80"}',
        b'{"a": "\xf5\x80\x80\x80"}',
        b'{"a": "\xe2\x82"}',
        b'{"a": "\x80"}',
        b'{"\xff": 1}',
        b'{"a": "\xe2\x82',
        b'\xef\xbb\xbf{"a": 1}',
        '{"a": 1}'.encode("utf-16"),
        '{"a": 1}'.encode("utf-32-be"),
        b'{"a": 1, "b": "\xe2\x82\xac"}',
        b"",
    ],
)
def test_bytes(data: bytes) -> None:
    check([data, None, b"{}"], pa.binary())
    check([data], pa.large_binary())
    check([data], pa.binary_view())


def test_strings_that_are_not_utf8() -> None:
    offsets, data = np.array([0, 2, 11], np.int32), b'{}{"a":"\xff"}'
    column = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    with pytest.raises(InvalidValue, match=r"^row 1: the message is not UTF-8: "):
        encode_json(NAMES, column)


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
    ],
    ids=str,
)
def test_kinds_of_columns(kind: Any) -> None:
    texts = ['{"a": 1}', None, '{"b": "x"}', '{"a": 1}', '{"a": {"$time": "2013-1-1"}}'] * 3
    messages = [Message() if text is None else Message.from_json(text) for text in texts]
    column = pa.array(texts, kind)
    assert_same(encode_json(NAMES, column), NAMES, messages)
    assert_same(encode_json(NAMES, column[2:7]), NAMES, messages[2:7])
    chunked = pa.chunked_array([column[:4], column[:0], column[4:]])
    assert_same(encode_json(NAMES, chunked), NAMES, messages)
    assert_same(encode_json(NameIndex.of(NAMES), chunked[3:]), NAMES, messages[3:])


def test_nothing() -> None:
    assert_same(encode_json(NAMES, pa.array([], pa.string())), NAMES, [])
    assert_same(encode_json(NAMES, pa.chunked_array([], pa.string())), NAMES, [])
    assert_same(encode_json(NAMES, pa.nulls(3)), NAMES, [{}, {}, {}])
    assert_same(encode_json({}, pa.array(['{"a": 1}'])), {}, [{}])


def test_a_bad_row_is_named_across_chunks() -> None:
    column = pa.chunked_array([["{}", "{}"], ["{}", "{"]])
    with pytest.raises(InvalidValue, match=r"^row 3: the message is not JSON: "):
        encode_json(NAMES, column)


def test_columns_that_hold_no_json() -> None:
    with pytest.raises(InvalidValue, match="holds strings, not int64"):
        encode_json(NAMES, pa.array([1]))


def test_room_grows() -> None:
    names = {f"n{i}": i for i in range(3000)}
    messages = [
        {f"n{(row + i) % 3000}": f"text {row} {i}" for i in range(row % 40)} for row in range(600)
    ]
    messages.append({f"n{i}": i + 1e-17 if i % 2 else f"é{i}" * 9 for i in range(3000)})
    messages += messages[:50]
    check([json.dumps(message) for message in messages], names=names)


def test_many_hard_doubles() -> None:
    values = np.random.default_rng(1).random((4000, 6)).tolist()
    check([json.dumps(dict(zip("abcxyz", row, strict=True))) for row in values])


def test_a_very_long_row() -> None:
    long = json.dumps({"a": "x" * (json_kernels.LONG + 1), "b": 1})
    check(['{"a": 1}', long, '{"b": 2}'])


def test_numbers_of_names_are_the_callers() -> None:
    batch = encode_json({"b": 7, "a": 3}, pa.array(['{"a": true, "b": false}']))
    assert {(name, floor) for name, _, floor, *_ in decoded(batch)[0]} == {(3, 1), (7, 0)}


# ---- hostile texts


def of_one_slot(count: int, slots: int) -> list[str]:
    """Texts that want the same slot of a table of this size."""
    base, fold = json_word_kernels.BASE, json_word_kernels.FOLD
    found: dict[str, None] = {}
    rng = np.random.default_rng(1)
    while len(found) < count:
        drawn = rng.integers(97, 123, (1 << 18, 8))
        hashes = np.zeros(len(drawn), np.uint64)
        for column in drawn.T:
            hashes = hashes * base + column.astype(np.uint64) + np.uint64(1)
        hits = (hashes ^ (hashes >> fold)) % np.uint64(slots) == 7
        found.update(dict.fromkeys("".join(map(chr, row)) for row in drawn[hits].tolist()))
    return list(found)[:count]


def test_names_that_want_one_slot() -> None:
    """Of a row's table of names, and of the names that the predicates have."""
    names = of_one_slot(2 * json_word_kernels.PROBES_MAX, 4096)
    row = json.dumps({name: i for i, name in enumerate(names)})
    assert not is_plain(row)
    check([row, "{}", row])
    check([row, json.dumps({**dict.fromkeys(names[:250], 1), "a": "x"})])
    for known in (names, names[250:], names[:250]):
        index = {name: i for i, name in enumerate(known)}
        texts = [json.dumps({name: 1, "b": name}) for name in names]
        check([row, *texts, '{"a": 1}'], names=index)


def test_texts_that_want_one_slot() -> None:
    """Each is found, though not all are kept once."""
    strings = of_one_slot(2 * json_word_kernels.PROBES_MAX, 1 << 14)
    texts = [json.dumps({"a": text, "b": strings[-1]}) for text in strings]
    assert all(map(is_plain, texts))
    messages = [Message.from_json(text) for text in texts * 2]
    found = decoded(encode_json(NAMES, pa.array(texts * 2)))
    assert found == decoded(encode_messages(NAMES, messages))


@pytest.mark.parametrize("inner", [1023, 1024, 1025, 1026])
def test_names_that_repeat_long_prefixes(inner: int) -> None:
    for outer in ("x" * 1024, "é" * 512):
        text = json.dumps({outer: {f"{i}": 1 for i in range(inner)}, "a": 1}, ensure_ascii=False)
        check([text, '{"a": 2}'])


# ---- properties

TABLE_NAMES = st.dictionaries(name_strategy, st.none(), max_size=8).map(
    lambda found: {name: i for i, name in enumerate(found)}
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(message_strategy, max_size=6),
    TABLE_NAMES,
    st.sampled_from([(", ", ": "), (",", ":"), (" ,\n", "\t: ")]),
    st.booleans(),
)
def test_messages_as_json(
    messages: list[Message], names: dict[str, int], separators: tuple[str, str], ascii: bool
) -> None:
    documents = [json.loads(message.to_json()) for message in messages]
    texts = [json.dumps(d, separators=separators, ensure_ascii=ascii) for d in documents]
    names = {**names, **{name: len(names) + i for i, name in enumerate(set().union(*messages))}}
    names = {name: i for i, name in enumerate(names)}
    assert_same(encode_json(names, pa.array(texts, pa.string())), names, messages)
    check(texts, names=dict(list(names.items())[::2]))


DOCUMENTS = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**65), 2**65),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(["2013-01-31T10:00:00Z", "NaN", "Infinity", "2013-02-30"]),
    ),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(["a", "b", "", "$time", "$float", "é"]), inner, max_size=3),
        st.lists(inner, max_size=1),
    ),
    max_leaves=8,
)


@settings(max_examples=500, deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "b", "c", "", "$time", "a.b"]), DOCUMENTS, max_size=4))
def test_any_document(document: dict[str, Any]) -> None:
    check([json.dumps(document)])


WORDS = r'{ } [ ] " : , \ \u d800 0 1 . e E+ - true null é "a" "$time" NaN "a": {} ":1,"'
PIECES = st.sampled_from([*WORDS.split(), " ", "\n", "\0", "\x7f", "9" * 18])


@settings(max_examples=800, deadline=None)
@given(
    st.one_of(
        st.sampled_from(PLAIN_TEXTS + ODD_TEXTS), message_strategy.map(lambda m: m.to_json())
    ),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 3), PIECES), max_size=4),
)
def test_mutated_texts(text: str, changes: list[tuple[int, int, str]]) -> None:
    for where, gone, piece in changes:
        where %= len(text) + 1
        text = text[:where] + piece + text[where + gone :]
    check([text])
    check([text.encode()], pa.binary())


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=12), st.binary(max_size=12))
def test_any_bytes(head: bytes, tail: bytes) -> None:
    check([b'{"a": "' + head + b'", "b": "' + tail + b'"}'], pa.binary())
    check([head + tail], pa.binary())


@settings(max_examples=500, deadline=None)
@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.from_regex(
            r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True
        ),
        st.integers(-(2**64), 2**64).map(str),
    )
)
def test_numbers(number: str) -> None:
    check([f'{{"a": {number}}}'])
    check([f'{{"unknown": {number}}}'])
