"""Attributes as bytes and back."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

import palio
from palio.net.client.attributes import from_bytes, to_bytes


@pytest.mark.parametrize(
    "attributes",
    [
        {"s": 'ü\x00"', "i": -(2**63), "f": 1.5e300, "b": True, "z": -0.0},
        {"at": datetime(2013, 1, 31, tzinfo=UTC), "x": 1},
        {"nan": float("nan"), "inf": float("-inf")},
        {"none": None, "x": 1},
        {"a.b": 1, "$time": "x"},
        {},
        {"tags": ["a", "b"], "x": 1},
        {"tags": (("a", None), {"k": [1.5, float("nan")]}), "blob": b"\0\xff", "empty": []},
        {"flight": {"carrier": "UA", "legs": [{"from": "MXP"}]}, "price": Decimal("1.50")},
    ],
)
def test_attributes_come_back(attributes: dict[str, object]) -> None:
    message = palio.Message(attributes)
    for given in (attributes, message):
        data = to_bytes(given)
        assert from_bytes(data) == message
        assert palio.Message.from_json(data) == message


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": 1, "a": 2}',
        b'{"a": 1, "\\u0061": 2}',
        b'{"a": "x", "b": 1, "a": "x"}',
        b'{"a": "\\"", "a": ""}',
        '{"a": "\ud800"}',
        b'{"a": ' * 3_000 + b"1" + b"}" * 3_000,
        b"[" * 3_000,
        b'{"a": "\xed\xa0\x80"}',
    ],
)
def test_what_the_model_refuses_is_refused(data: bytes | str) -> None:
    with pytest.raises(palio.InvalidValue):
        palio.Message.from_json(data)
    with pytest.raises(palio.InvalidValue):
        from_bytes(data)
