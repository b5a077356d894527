"""All readers of frames agree, however a stream is cut: some streams here, millions in `make fuzz-night`."""

from __future__ import annotations

import os
import time
from random import Random

import pytest

from palio.protocol.wire import kernels
from palio.protocol.wire.frames import FrameKind, Limits, message_frame
from palio.protocol.wire.headers import PublishHeader
from tests.fuzz import frame_readers
from tests.fuzz.findings import Finding
from tests.fuzz.frame_grammar import GOOD, FrameStreams
from tests.fuzz.targets import Frames

FRAMES = [
    message_frame(PublishHeader(number, 2, number > 3), b'{"x":1}', b"body") for number in range(6)
]


@pytest.mark.parametrize("frame", GOOD, ids=lambda frame: f"kind {frame[4]}, {len(frame)} bytes")
def test_every_cut_of_every_kind(frame: bytes) -> None:
    """One frame after another that is read as a batch; each cut into two pieces, and each limit."""
    stream = [FRAMES[0], frame, FRAMES[1]]
    size = sum(map(len, stream))
    for cut in range(0, size + 1, 1 if size < 200 else 7):
        frame_readers.check(stream, [cut], Limits(), 8192)


@pytest.mark.parametrize("near", [-1, 0, 1])
@pytest.mark.parametrize("part", ["control", "header", "attributes", "body"])
def test_limits_at_their_edges(part: str, near: int) -> None:
    header = len(FRAMES[0]) - 13 - 7 - 4
    sizes = {"control": 0, "header": header, "attributes": 7, "body": 4}
    limits = Limits(**{part: max(0, sizes[part] + near)})
    for batch_max in (2, 8192):
        frame_readers.check([*FRAMES, *GOOD[:3], *FRAMES], [3, 50], limits, batch_max)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_streams(seed: int) -> None:
    random = Random(seed)
    grammar = FrameStreams(random)
    understood = 0
    for _ in range(400):
        stream = grammar.stream()
        cuts, limits = grammar.cuts(sum(map(len, stream))), grammar.limits(stream)
        understood += frame_readers.check(stream, cuts, limits, random.choice((3, 8192)))
    assert understood > 500


def test_kernels_that_read_otherwise_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    scan = kernels.scan_publish

    def careless(data: object, at: int, limits: object, rows: object) -> int:
        count: int = scan(data, at, limits, rows)
        rows[:count, 1] += 1  # type: ignore[index]
        return count

    monkeypatch.setattr(kernels, "scan_publish", careless)
    with pytest.raises(Finding, match="kernels, cut at"):
        frame_readers.check(FRAMES, [], Limits(), 8192)
    assert {frame[4] for frame in GOOD} == {int(kind) for kind in FrameKind}


@pytest.mark.fuzz
def test_random_streams_for_longer() -> None:
    """FUZZ_STREAM_FRAMES=10000000 for more; FUZZ_SEED for other frames."""
    count = int(os.environ.get("FUZZ_STREAM_FRAMES", 200_000))
    seed = int(os.environ.get("FUZZ_SEED", time.time_ns() % 1_000_000))
    target, done = Frames(), 0
    while done < count:
        print(f"seed {seed}", flush=True)
        done += target.run(seed)
        seed += 1
