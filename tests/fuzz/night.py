"""A night of searching: `make fuzz-night`, or `python -m tests.fuzz.night`.

One process goes through chunks of all targets (targets.py), until each has reached its goal, over as many
runs as that takes: 90,000,000 cases of what native clients, files and configurations say, and 10,000,000 for
each of the other readers. After each chunk it stores where it is:

    build/fuzz/state.json   {"cases": {target: count}, "seeds": {target: next seed}, "running": ...}

A case that fails ends it with exit code 1, the seed and a small case. The seed is not passed over, so
the next run begins with it. So it does after a crash of the process: `running` names the chunk.

    FUZZ_CASES=1000000            at most so many cases in this run
    FUZZ_MINUTES=30               at most so long
    FUZZ_TARGETS=frames,core      only these
    FUZZ_STATE=/tmp/state.json    another file
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.fuzz.findings import Finding
from tests.fuzz.targets import Target, all_targets

STATE = Path("build/fuzz/state.json")
TOLD_S = 10
GROWTH_MIB_MAX = 200
"""After the first tenth of a run."""
SETTLED_CHUNKS = 2
"""Of each target, before its memory counts: the first loads kernels and makes brokers."""


class State:
    """What was done, in a file that is always whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        known = json.loads(path.read_text()) if path.exists() else {}
        self.cases: dict[str, int] = known.get("cases", {})
        self.seeds: dict[str, int] = known.get("seeds", {})
        self.crashed: str | None = known.get("running")

    def done_of(self, target: Target) -> int:
        """Cases of a target."""
        return self.cases.get(target.name, 0)

    def begin(self, target: str) -> int:
        """The seed of the next chunk, which is noted before it runs."""
        seed = self.seeds.get(target, 1)
        self._write(f"{target} {seed}")
        return seed

    def done(self, target: str, seed: int, count: int) -> None:
        self.seeds[target] = seed + 1
        self.cases[target] = self.cases.get(target, 0) + count
        self._write(None)

    def release(self) -> None:
        """The chunk that runs did not crash the process."""
        self._write(None)

    def _write(self, running: str | None) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"cases": self.cases, "seeds": self.seeds, "running": running}))
        new.replace(self.path)


class Memory:
    """Fails a run that grows: its memory must be flat after the first tenth."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self._chunks = dict.fromkeys([target.name for target in targets], 0)
        self._base_mib: int | None = None
        self._peak_mib = 0

    def growth_mib(self, target: str, fraction: float, rss_mib: int) -> int:
        """How much it has grown, after a chunk of a target and this fraction of the run."""
        self._chunks[target] += 1
        self._peak_mib = max(self._peak_mib, rss_mib)
        if self._base_mib is None:
            if fraction >= 0.1 and min(self._chunks.values()) >= SETTLED_CHUNKS:
                self._base_mib = self._peak_mib
            return 0
        return rss_mib - self._base_mib


def rss_mib() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def night(environment: Mapping[str, str], targets: Sequence[Target]) -> int:
    """Search; the exit code."""
    state = State(Path(environment.get("FUZZ_STATE", STATE)))
    chosen = {*filter(None, environment.get("FUZZ_TARGETS", "").split(","))}
    targets = [target for target in targets if not chosen or target.name in chosen]
    goal = sum(target.goal for target in targets)
    left = sum(max(0, target.goal - state.done_of(target)) for target in targets)
    most = min(int(environment.get("FUZZ_CASES", left)), left)
    seconds = 60 * float(environment.get("FUZZ_MINUTES", "inf"))
    if most <= 0 or not targets:
        _say(f"{goal:,} of {goal:,} cases are done: remove {state.path} to begin anew")
        return 0
    if state.crashed:
        _say(f"the last run ended within {state.crashed} (target and seed): it is repeated")
    began = told = time.monotonic()
    done, spent, counts, memory = (
        0,
        dict.fromkeys(targets, 0.0),
        dict.fromkeys(targets, 0),
        Memory(targets),
    )
    while done < most and time.monotonic() - began < seconds:
        target = min(targets, key=lambda one: state.done_of(one) / one.goal)
        seed = state.begin(target.name)
        start = time.monotonic()
        try:
            count = target.run(seed)
        except Finding as found:
            state.release()
            return _fail(target, seed, found)
        except KeyboardInterrupt:
            state.release()
            _say(f"stopped after {done:,} cases; the next run goes on")
            return 130
        except BaseException:
            state.release()
            _say(f"target {target.name}, seed {seed}:")
            raise
        now = time.monotonic()
        state.done(target.name, seed, count)
        done += count
        counts[target] += count
        spent[target] += now - start
        size = rss_mib()
        if now - told > TOLD_S:
            told = now
            rate = done / (now - began)
            _say(
                f"{now - began:7.0f} s {done:>12,} cases ({rate:,.0f} a "
                f"second), {size} MiB, {target.name} seed {seed}"
            )
        growth = memory.growth_mib(target.name, max(done / most, (now - began) / seconds), size)
        if growth > GROWTH_MIB_MAX:
            _say(
                f"the process has grown by {growth} MiB, to {size} MiB, after {target.name} {seed}"
            )
            return 1
    for target in targets:
        if counts[target]:
            rate = counts[target] / spent[target]
            part = f"{state.done_of(target):,} of {target.goal:,} in all"
            _say(f"{target.name:14} {counts[target]:>12,} cases, {rate:>10,.0f} a second, {part}")
    _say(
        f"{done:,} cases in this run, {goal - left + done:,} of {goal:,} in all, {rss_mib()} MiB: none fails"
    )
    return 0


def _fail(target: Target, seed: int, found: Finding) -> int:
    _say(f"FAILED: target {target.name}, seed {seed}: {found.what}")
    for part in found.case[:50]:
        _say(f"    {part!r}")
    if len(found.case) > 50:
        _say(f"    ... and {len(found.case) - 50} more")
    _say(f"again: FUZZ_TARGETS={target.name} make fuzz-night; the next run begins with this seed")
    return 1


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(night(os.environ, all_targets()))
