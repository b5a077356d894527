"""The buffer of changes that wait for their commit."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from palio.net.storage.buffer import WriteBuffer, after_all

KEYS = st.text(st.sampled_from("ab/\ud7ff\ue000\U0010ffff"), max_size=4)


@given(st.dictionaries(KEYS, st.none() | st.binary(max_size=3)), KEYS, st.text("ab", max_size=1))
def test_a_scan_gives_changes_in_order(
    changes: dict[str, bytes | None], after: str, prefix: str
) -> None:
    buffer = WriteBuffer()
    for key, value in changes.items():
        buffer.delete(key) if value is None else buffer.put(key, value)
    after = prefix + after
    keys = [key for key in sorted(changes) if key.startswith(prefix) and (key > after or not after)]
    assert list(buffer.scan(after, prefix)) == [(key, changes[key]) for key in keys]


@given(KEYS, KEYS)
def test_the_least_text_after_all_with_a_prefix(prefix: str, rest: str) -> None:
    high = after_all(prefix)
    assert high is None or prefix + rest < high
