"""The marker beside a database."""

from __future__ import annotations

from pathlib import Path

import pytest

from palio.net.storage.marker import FILE, DamagedMarker, MarkerContents, MarkerFile, read_marker


def test_it_says_what_it_was_told(tmp_path: Path) -> None:
    assert read_marker(tmp_path) is None
    marker = MarkerFile(tmp_path, MarkerContents("ab" * 16, 2, 7))
    assert read_marker(tmp_path) == MarkerContents("ab" * 16, 2, 7)
    marker.advance(123_456_789_012)
    assert read_marker(tmp_path) == MarkerContents("ab" * 16, 2, 123_456_789_012)
    marker.close()
    marker.close()


def test_it_replaces_one_that_is_longer(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"x" * 3000)
    MarkerFile(tmp_path, MarkerContents("ab", 2, 0)).close()
    assert read_marker(tmp_path) == MarkerContents("ab", 2, 0)


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    MarkerFile(tmp_path, MarkerContents("ab" * 16, 2, 7)).close()
    data = (tmp_path / FILE).read_bytes()
    for at in range(8 * len(data)):
        changed = bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        (tmp_path / FILE).write_bytes(changed)
        assert isinstance(read_marker(tmp_path), DamagedMarker)


@pytest.mark.parametrize("data", [b"", b"palio store\n", b"\xff" * 200, b"a b\n" * 5])
def test_other_files_are_no_markers(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE).write_bytes(data)
    assert isinstance(read_marker(tmp_path), DamagedMarker)
