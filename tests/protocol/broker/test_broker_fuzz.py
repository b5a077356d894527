"""Random and mutated frames to a broker of this process: it lives, and closes with a reason."""

from __future__ import annotations

import os
import sys
import time
from random import Random

import pytest

from palio.routing import interest_table
from tests.protocol.broker.noise import BATCHES, ROLES, Listening, search


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_mutated_frames(seed: int) -> None:
    closed = search(5_000, seed)
    assert all(closed[role] > 20 for role in ROLES)


def test_mutated_frames_to_compiled_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a broker of many subscriptions: batches are matched by kernels."""
    monkeypatch.setattr(interest_table, "EVALUATIONS_MAX", 2_000)
    closed = search(2_000, 3)
    assert all(closed[role] > 5 for role in ROLES)


@pytest.mark.parametrize("at", [0, 1, 20, 140])
@pytest.mark.parametrize("role", BATCHES)
def test_what_comes_before_a_broken_frame_counts(role: str, at: int) -> None:
    """In batches that Python reads, and that kernels read; the connection closes with the reason."""
    frames = BATCHES[role][0]
    broken = bytearray(frames[at])
    broken[13] = 0xC1  # its header is no msgpack
    listening = Listening(Random(1), routing="forwarding")
    listening.connect(role)
    assert not listening.hear(b"".join([*frames[:at], bytes(broken), *frames[at + 1 :]]))
    snapshot = listening.broker.snapshot()
    assert snapshot.live.published + snapshot.live.received == at
    assert snapshot.links == 0


@pytest.mark.fuzz
def test_ten_million_mutated_frames() -> None:
    """FUZZ_FRAMES=1000000 for fewer."""
    count = int(os.environ.get("FUZZ_FRAMES", 10_000_000))
    seed = time.time_ns() % 1_000_000
    began = time.monotonic()
    print(f"seed {seed}", file=sys.stderr)
    sizes: list[int] = []

    def progress(said: int, closed: int) -> None:
        sizes.append(resident_bytes())
        if len(sizes) % 10 == 0:
            print(
                f"{time.monotonic() - began:8.0f} s {said:>12,} frames, {closed:,} connections "
                f"closed, {sizes[-1] >> 20} MiB",
                file=sys.stderr,
                flush=True,
            )

    search(count, seed, progress)
    tenth = len(sizes) // 10
    before, after = max(sizes[tenth : 2 * tenth]), max(sizes[-tenth:])
    assert after - before < 30 << 20, f"from {before >> 20} to {after >> 20} MiB"


def resident_bytes(process: int | str = "self") -> int:
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
