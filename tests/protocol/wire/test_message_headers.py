"""Message headers: packed, read back, and what is done about those that cannot be read."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.errors import InvalidValue
from palio.protocol.broker.admission import unreadable
from palio.protocol.wire.batch import (
    KERNEL_MIN,
    Entry,
    MessageBatch,
    delays,
    expiries,
    header_blocks,
    rows_with_headers,
)
from palio.protocol.wire.frames import Limits
from palio.protocol.wire.message_headers import (
    CORRELATION,
    EXPIRES_US,
    NO_HEADERS,
    NOT_BEFORE_US,
    STANDARD,
    body_of,
    expiry,
    headers_of,
    not_before,
    packed,
)

LIMITS = Limits(headers=100, body=50)
VALUES = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.lists(st.lists(st.text(max_size=3), min_size=2, max_size=2), max_size=3),
)
HEADERS = st.dictionaries(st.text("abc", max_size=3), VALUES, max_size=4)


def block(data: bytes) -> bytes:
    return len(data).to_bytes(2, "little") + data


HOSTILE = {
    "one byte": b"\x00",
    "nothing": b"",
    "longer than the payload": b"\x09\x00\x80",
    "not msgpack": block(b"\xc1"),
    "no map": block(b"\x01"),
    "more behind the map": block(b"\x80\x80"),
    "names that are no texts": block(b"\x81\x01\x01"),
    "not UTF-8": block(b"\x81\xa1\xff\x01"),
    "nil": block(b"\x81\xa1a\xc0"),
    "a map in it": block(b"\x81\xa1a\x80"),
    "a list of texts": block(b"\x81\xa1a\x91\xa1b"),
    "nested deeply": block(b"\x81\xa1a" + b"\x91" * 60_000),
    "a list of four billion": block(b"\x81\xa1a\xdd\xff\xff\xff\xff"),
    "a map of four billion": block(b"\xdf\xff\xff\xff\xff\xa1a\x01"),
    "an instant": block(b"\x81\xa1a\xd6\xff\0\0\0\0"),
    "an extension": block(b"\x81\xa1a\xc7\x01\x05a"),
    "a standard name with another type": block(msgspec.msgpack.encode({EXPIRES_US: "soon"})),
    "a bool is no int": block(msgspec.msgpack.encode({EXPIRES_US: True})),
    "too large": block(msgspec.msgpack.encode({"a": "b" * 200})),
}


def batch_of(*payloads: bytes) -> MessageBatch:
    return MessageBatch.of([Entry("p", i, 0, b"{}", one) for i, one in enumerate(payloads)])


@given(HEADERS, st.binary(max_size=9))
def test_what_is_packed_is_read_back(headers: dict[str, object], body: bytes) -> None:
    payload = packed(headers, 10_000) + body  # type: ignore[arg-type]
    assert dict(headers_of(payload)) == headers
    assert body_of(payload) == body
    assert not unreadable(batch_of(payload), Limits())


@pytest.mark.parametrize(
    "wrong",
    [{"a": None}, {"a": {"b": 1}}, {"a": ["b"]}, {1: 2}, {CORRELATION: "text"}, {"a": 2**70}],
)
def test_headers_of_other_types_are_not_packed(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidValue, match="headers"):
        packed(wrong, 100)  # type: ignore[arg-type]


def test_too_many_bytes_are_not_packed() -> None:
    with pytest.raises(InvalidValue, match="the most are 100"):
        packed({"a": "b" * 100}, 100)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("others", [0, 2 * KERNEL_MIN])
def test_hostile_headers_are_found_and_read_as_empty(name: str, others: int) -> None:
    good = [NO_HEADERS + b"body", packed({"a": [["b", "c"]]}, 100) + b"body"] * (others // 2)
    batch = batch_of(*good, HOSTILE[name], *good)
    assert list(unreadable(batch, LIMITS)) == [others]
    if name != "too large":
        assert not headers_of(HOSTILE[name])
        assert isinstance(batch.body(others), bytes)
    last = batch_of(*good, HOSTILE[name])  # nothing follows
    assert list(unreadable(last, LIMITS)) == [others]


@pytest.mark.parametrize("count", [1, 2 * KERNEL_MIN])
def test_a_body_beyond_the_limit(count: int) -> None:
    batch = batch_of(*[NO_HEADERS + bytes(50)] * count, NO_HEADERS + bytes(51))
    assert list(unreadable(batch, LIMITS)) == [count]


@pytest.mark.parametrize("count", [1, 2 * KERNEL_MIN])
def test_only_messages_with_headers_cost_more(count: int) -> None:
    assert rows_with_headers(batch_of(*[NO_HEADERS + b"\xff\xff"] * count)) == []
    assert rows_with_headers(batch_of(*[NO_HEADERS] * count, packed({"a": 1}, 9))) == [count]


_PAYLOADS = (
    NO_HEADERS, packed({"mqtt.qos": 1}, 99), packed({EXPIRES_US: 5}, 99), packed({NOT_BEFORE_US: 9}, 99), b"\x09\0\x80",
    packed({"a": "b" * 90}, 999),
)  # fmt: skip


@given(
    st.lists(st.sampled_from(_PAYLOADS), max_size=5), st.sampled_from(_PAYLOADS), st.integers(0, 40)
)
def test_headers_are_read_once_for_all_messages_that_have_them(
    odd: list[bytes], usual: bytes, count: int
) -> None:
    payloads = [usual + b"body"] * count + [one + b"body" * (one[:1] != b"\t") for one in odd]
    payloads = payloads or [NO_HEADERS]
    batch = batch_of(*payloads)
    blocks = header_blocks(batch)
    assert sorted(row for rows in blocks.values() for row in rows) == rows_with_headers(batch)
    for block, rows in blocks.items():
        assert all(payloads[row].startswith(block) for row in rows)
        assert len({headers_of(payloads[row]) == headers_of(block) for row in rows} - {True}) == 0
    assert expiries(batch) == {row: at for row, one in enumerate(payloads) if (at := expiry(one))}
    late = {row: at for row, one in enumerate(payloads) if (at := not_before(one)) > 7}
    assert (delays(batch, 7), list(delays(batch, 7))) == (late, list(late))


@given(st.binary(max_size=40))
def test_any_bytes_are_a_payload(payload: bytes) -> None:
    batch = batch_of(payload)
    assert isinstance(headers_of(payload), dict | type(headers_of(b"")))
    assert payload.endswith(body_of(payload))
    if not unreadable(batch, LIMITS):
        assert packed(headers_of(payload), 100)[:2] == payload[:2] or payload[:2] != NO_HEADERS


def test_headers_of_the_reference_are_those_of_the_code() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "values.md"
    section = page.read_text("utf-8").partition("## Message headers")[2]
    rows = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", section, re.MULTILINE))
    words = {str: "text", bytes: "bytes", int: "int", bool: "bool"}
    assert rows == {name: words[kind] for name, kind in STANDARD.items()}
