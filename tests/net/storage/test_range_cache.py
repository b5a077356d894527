"""Ranges that were read, under changes."""

from __future__ import annotations

from palio.net.storage.range_cache import RANGES_MAX, RangeCache

ROWS = [(f"k/{number}", b"old") for number in range(1, 6)]


def test_a_range_knows_what_is_there_and_what_is_not() -> None:
    cache = RangeCache()
    cache.add("k/0", ROWS, {})
    assert cache.get("k/3") == (True, b"old")
    assert cache.get("k/0") == (True, None)
    assert cache.get("k/35") == (True, None)
    assert cache.get("k/6") == (False, None)


def test_nothing_found_is_a_range_of_one_key() -> None:
    cache = RangeCache()
    cache.add("k/0", [], {})
    assert cache.get("k/0") == (True, None)
    assert cache.get("k/01") == (False, None)


def test_changes_before_and_after_it_was_read_count() -> None:
    cache = RangeCache()
    cache.add("k/1", ROWS, {"k/2": b"leaving", "k/3": None, "k/9": b"outside"})
    cache.change({"k/4": b"new", "k/45": b"between", "k/5": None, "j": b"outside"})
    found = {key: cache.get(key)[1] for key in ("k/1", "k/2", "k/3", "k/4", "k/45", "k/5")}
    assert found == {"k/1": b"old", "k/2": b"leaving", "k/3": None, "k/4": b"new",
                     "k/45": b"between", "k/5": None}  # fmt: skip


def test_ranges_are_few() -> None:
    cache = RangeCache()
    for number in range(RANGES_MAX):
        cache.add(f"{number:02}", [], {})
    cache.get("00")
    cache.add("new", [], {})
    assert cache.get("00")[0], "it was used"
    assert not cache.get("01")[0]
