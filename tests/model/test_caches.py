"""What is cached of large keys is bounded in bytes."""

from __future__ import annotations

from palio.model.caches import SMALL_BYTES, cached, operand_bytes


def test_small_keys_are_many_and_large_ones_bounded_in_bytes() -> None:
    computed: list[str] = []

    @cached(100, len, large_bytes=10 * SMALL_BYTES)
    def upper(text: str) -> str:
        computed.append(text)
        return text.upper()

    small = [str(i) for i in range(100)]
    large = [str(i) * 2 * SMALL_BYTES for i in range(1, 10)]
    for text in [*small, *small, *large, *large[-5:]]:
        assert upper(text) == text.upper()
    assert computed == [*small, *large]  # five of 2 KiB are kept
    upper(large[0])
    assert computed[-1] == large[0]


def test_one_key_that_is_larger_than_the_cache_is_not_kept() -> None:
    @cached(1, len, large_bytes=SMALL_BYTES)
    def upper(text: str) -> str:
        return text.upper()

    assert upper("x" * 5000) == upper("x" * 5000) == "X" * 5000


def test_the_size_of_operands() -> None:
    assert operand_bytes(5) == 8
    assert operand_bytes("abc") == 3
    assert operand_bytes((1, 2, 3)) == operand_bytes(frozenset({1, 2, 3})) == 48
    assert operand_bytes(("abc", "de")) == 37
