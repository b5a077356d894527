"""Brokers whose clocks jump, forwards and backwards by seconds, minutes and an hour.

Only the time of day jumps. The monotonic clock stays the kernel's, as it does when an administrator or
NTP sets a clock, or when a machine wakes up. That is why this does not use libfaketime: told to leave
the monotonic clock alone, version 0.9.10 lets the sleeps and the locks of Python fail (clock_nanosleep
and pthread_cond_timedwait with absolute times). shifted_clock.c, which is compiled here, does less.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from tests.net.chaos.plans import Fault
from tests.net.chaos.scene import Scene

_SOURCE = Path(__file__).with_name("shifted_clock.c")
_OFFSET_S_MAX = 2 * 3600.0


def why_no_shifted_clock() -> str | None:
    if sys.platform != "linux" or shutil.which("cc") is None:
        return "clocks are shifted by a preloaded library, which needs Linux and a C compiler (cc)"
    return None


class ClockScene(Scene):
    has_true_clocks = False

    def prepare(self, stack: AsyncExitStack) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        library = self.folder / "shifted_clock.so"
        words = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE)]
        subprocess.run(words, check=True)
        self._offsets = dict.fromkeys(self.names, 0.0)
        for name in self.names:
            self._set(name, 0.0)
            file = str(self._file(name))
            self.cluster.variables[name] = {"LD_PRELOAD": str(library), "CHAOS_CLOCK": file}

    def settings(self) -> dict[str, Mapping[str, object]]:
        """A clock that runs two hours ahead does not end the retention that replays need."""
        found = super().settings()
        return {**found, "log": {**found["log"], "keep": "1 d"}}

    async def hit(self, fault: Fault) -> None:
        name = fault.target
        match fault.kind.split():
            case ["clock", "kill"]:  # it finds another time when it starts
                self.kill(name)
                await asyncio.sleep(fault.lasts_s / 2)
                self._set(name, (2 * fault.detail - 1) * 3600)
                self.cluster.start(name)
            case ["clock", "0"]:
                self._set(name, 0.0)
                await asyncio.sleep(fault.lasts_s)
            case ["clock", seconds]:
                self._set(name, self._offsets[name] + float(seconds))
                await asyncio.sleep(fault.lasts_s)
            case _:
                await super().hit(fault)

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.clock"

    def _set(self, name: str, offset_s: float) -> None:
        """Set a broker's clock off by so much, against that of the machine."""
        offset_s = max(-_OFFSET_S_MAX, min(_OFFSET_S_MAX, offset_s))
        before, self._offsets[name] = self._offsets[name], offset_s
        file = self._file(name)
        file.touch()
        with file.open("r+b") as opened:  # brokers have mapped it: it is changed, not replaced
            opened.write(int(1e9 * offset_s).to_bytes(8, sys.byteorder, signed=True))
        if before != offset_s:
            self.note(f"the clock of {name} goes from {before:+.0f} s to {offset_s:+.0f} s")
