"""Every kind of store against a dictionary, and against processes that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from palio.errors import InvalidValue
from palio.net.storage.buffered import BufferedStore
from tests.net.storage.kinds import StoreKind

pytestmark = pytest.mark.xdist_group("postgres")

# Few letters, so that keys meet; the last code points, so that prefixes have no successor.
KEYS = st.text(st.sampled_from("ab/é\ud7ff\ue000\U0010ffff"), max_size=4)


class StoreMachine(RuleBasedStateMachine):
    """`safe` is what whole commits made, `seen` what a reader must see."""

    def __init__(self, kind: StoreKind) -> None:
        super().__init__()
        self.kind = kind.another()
        self.store = self.kind.open()
        self.safe: dict[str, bytes] = {}
        self.leaving: dict[str, bytes] | None = None
        self.seen: dict[str, bytes] = {}

    @rule(key=KEYS, value=st.binary(max_size=20))
    def put(self, key: str, value: bytes) -> None:
        self.store.put(key, value)
        self.seen[key] = value

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        self.store.delete(key)
        self.seen.pop(key, None)

    @precondition(lambda self: self.leaving is None)
    @rule()
    def begin(self) -> None:
        if self.store.begin():
            self.leaving = dict(self.seen)

    @precondition(lambda self: self.leaving is not None)
    @rule()
    def commit(self) -> None:
        worker = threading.Thread(target=self.store.commit)
        worker.start()
        worker.join()
        assert self.leaving is not None
        self.safe, self.leaving = self.leaving, None
        self.store.checkpoint()

    @rule()
    def crash(self) -> None:
        self.store.close()
        self.store = self.kind.open()
        self.leaving, self.seen = None, dict(self.safe)

    @rule(key=KEYS)
    def get(self, key: str) -> None:
        assert self.store.get(key) == self.seen.get(key)

    @invariant()
    def everything_is_scanned_in_order(self) -> None:
        expected = sorted(self.seen.items(), key=lambda item: item[0].encode())
        assert list(self.store.scan("")) == expected

    @rule(prefix=KEYS)
    def scan(self, prefix: str) -> None:
        expected = sorted(key for key in self.seen if key.startswith(prefix))
        assert [key for key, _ in self.store.scan(prefix)] == expected

    def teardown(self) -> None:
        self.store.close()
        self.kind.close()


def test_a_store_is_a_dictionary_that_survives(kind: StoreKind) -> None:
    run_state_machine_as_test(
        lambda: StoreMachine(kind),
        settings=settings(max_examples=kind.examples, stateful_step_count=30, deadline=None),
    )


@pytest.fixture
def store(kind: StoreKind) -> Iterator[BufferedStore]:
    made = kind.open()
    yield made
    made.close()


def commit(store: BufferedStore) -> None:
    store.begin()
    store.commit()


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_scans_in_parts_are_whole(
    kind: StoreKind, store: BufferedStore, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(kind.module, "_SCAN_ROWS", rows)
    keys = [f"{character}/{number}" for character in "abc" for number in range(7)]
    for key in keys[::2]:
        store.put(key, b"safe")
    commit(store)
    for key in keys[1::4]:
        store.put(key, b"leaving")
    store.begin()
    for key in keys[3::4]:
        store.put(key, b"pending")
    store.delete(keys[8])
    left = [key for key in keys if key != keys[8]]
    assert [key for key, _ in store.scan("")] == left
    assert [key for key, _ in store.scan("b/")] == [key for key in left if key.startswith("b/")]


def test_a_scan_goes_on_while_a_commit_ends(
    kind: StoreKind, store: BufferedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind.module, "_SCAN_ROWS", 2)
    for number in range(6):
        store.put(f"k{number}", b"old")
    commit(store)
    for number in range(6):
        store.put(f"k{number}", b"new")
    store.begin()
    scan = store.scan("k")
    first = next(scan)
    store.commit()
    assert [first, *scan] == [(f"k{number}", b"new") for number in range(6)]
    assert store.get("k5") == b"new"


def test_large_groups_are_one_transaction(store: BufferedStore) -> None:
    for number in range(1700):
        store.put(f"{number:05}", b"x" * (number % 9))
    commit(store)
    for number in range(0, 1700, 2):
        store.delete(f"{number:05}")
    commit(store)
    assert [key for key, _ in store.scan("")] == [f"{n:05}" for n in range(1, 1700, 2)]


def test_pending_bytes_are_told_until_they_are_safe(store: BufferedStore) -> None:
    store.put("ab", b"12345678")
    assert store.pending_bytes == 10
    store.begin()
    assert store.pending_bytes == 10
    store.commit()
    assert store.pending_bytes == 0


WRITER = """
import sys

{open}
number = 0
while True:
    for part in range(10):
        store.put(f"group/{{part}}", str(number).encode())
        store.put(f"log/{{number:08}}/{{part}}", b"x" * 500)
    store.begin()
    store.commit()
    print(number, flush=True)
    number += 1
"""


@pytest.mark.parametrize("groups", [30])
def test_what_was_committed_survives_a_kill(kind: StoreKind, groups: int) -> None:
    program = WRITER.format(open=kind.opening)
    writer = subprocess.Popen(
        [sys.executable, "-c", program, kind.place], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    for _ in range(groups):
        writer.stdout.readline()
    os.kill(writer.pid, signal.SIGKILL)
    told = [int(line) for line in writer.stdout.read().splitlines()]
    writer.wait()
    last = max(told, default=groups - 1)
    store = kind.open()  # the lock went with the process
    group = {value for _, value in store.scan("group/")}
    assert len(group) == 1, "a commit is whole or not there"
    (number,) = map(int, group)
    assert number in (last, last + 1)
    assert len(list(store.scan("log/"))) == 10 * (number + 1)
    store.close()


def test_single_reads_see_what_commits_change(store: BufferedStore) -> None:
    """Whatever a store remembers of the table, buffers and commits count."""
    for number in range(10):
        store.put(f"k/{number}", b"first")
    commit(store)
    assert [store.get(f"k/{number}") for number in (3, 4, 5)] == [b"first"] * 3
    store.put("k/4", b"second")
    store.put("k/45", b"new")
    store.delete("k/5")
    assert [store.get(f"k/{number}") for number in (3, 4, 45, 5)] == [
        b"first",
        b"second",
        b"new",
        None,
    ]
    store.begin()
    store.put("k/3", b"third")
    assert [store.get(f"k/{number}") for number in (3, 4, 45, 5)] == [
        b"third",
        b"second",
        b"new",
        None,
    ]
    store.commit()
    assert [store.get(f"k/{number}") for number in (3, 4, 45, 5)] == [
        b"third",
        b"second",
        b"new",
        None,
    ]
    commit(store)
    assert store.get("k/3") == b"third"
    assert store.get("k/missing") is None


def test_values_of_all_sizes(store: BufferedStore) -> None:
    values = {f"v/{size:08}": bytes(size) for size in (0, 1, 8000, 300_000, 3_000_000)}
    for key, value in values.items():
        store.put(key, value)
    commit(store)
    assert dict(store.scan("v/")) == values
    assert {key: store.get(key) for key in values} == values


def test_keys_that_are_no_text(store: BufferedStore) -> None:
    with pytest.raises(InvalidValue, match="not valid Unicode"):
        store.put("\ud800", b"")
