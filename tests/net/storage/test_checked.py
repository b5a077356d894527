"""The checksum of stored values."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from palio.net.storage.checked import with_checksum, without_checksum
from palio.net.storage.store import StoreDamaged


@given(st.text(max_size=20).filter(lambda key: key.isprintable()), st.binary(max_size=200))
def test_values_come_back(key: str, value: bytes) -> None:
    assert without_checksum(key, with_checksum(key, value), "file") == value


@given(st.binary(min_size=1, max_size=60), st.data())
def test_every_flipped_bit_is_noticed(value: bytes, data: st.DataObject) -> None:
    stored = bytearray(with_checksum("a", value))
    at = data.draw(st.integers(0, 8 * len(stored) - 1))
    stored[at // 8] ^= 1 << at % 8
    with pytest.raises(StoreDamaged, match="file: the value of 'a' is damaged"):
        without_checksum("a", bytes(stored), "file")


@pytest.mark.parametrize("stored", [None, 7, "text", b"", b"abc", with_checksum("b", b"value")])
def test_what_is_no_value_of_this_key(stored: object) -> None:
    with pytest.raises(StoreDamaged) as caught:
        without_checksum("a", stored, "file")
    assert caught.value.key == "a"


@given(st.binary(min_size=5, max_size=60), st.integers(1, 4))
def test_cut_values_are_noticed(value: bytes, cut: int) -> None:
    with pytest.raises(StoreDamaged):
        without_checksum("a", with_checksum("a", value)[:-cut], "file")
