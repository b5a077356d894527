"""A disk keeps whole commits, in their order."""

from __future__ import annotations

import pytest

from palio.sim.kernel.disk import SimulatedDisk


@pytest.mark.parametrize("is_done", [False, True])
def test_a_disk_keeps_whole_commits(is_done: bool) -> None:
    disk: SimulatedDisk[bytes] = SimulatedDisk()
    disk.put("a/1", b"1")
    disk.begin()
    disk.end()
    disk.put("a/1", b"2")
    disk.put("a/2", b"2")
    disk.begin()
    disk.put("a/3", b"3")
    disk.delete("a/1")
    assert [key for key, _ in disk.scan("a/")] == ["a/2", "a/3"]
    disk.crash(is_done)
    kept = {"a/1": b"2", "a/2": b"2"} if is_done else {"a/1": b"1"}
    assert dict(disk.scan("a/")) == kept
    assert disk.get("a/3") is None


def test_commits_end_in_the_order_in_which_they_began() -> None:
    disk: SimulatedDisk[str] = SimulatedDisk()
    disk.put("1", "a")
    disk.begin()
    disk.put("2", "b")
    disk.begin()
    disk.put("3", "c")
    disk.end()
    assert disk.is_committing
    assert [value for _, value in disk.scan("")] == ["a", "b", "c"]
    disk.crash()
    assert [value for _, value in disk.scan("")] == ["a"]
    assert not disk.is_committing
