"""Brokers whose disk is full for some seconds: each has a small file system of its own (tmpfs).

A file that takes all the room that is left fills it, and is deleted again. A broker that is killed
meanwhile has to start with the few KiB that SQLite needs to open a database, and nothing more.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from palio.net.cluster.ports import answers
from tests.net.chaos.plans import Fault
from tests.net.chaos.scene import Scene

_SIZE = "128m"
_BALLAST = "ballast"
_PIECE = bytes(1 << 20)
_TO_START = 256 << 10
_START_S_MAX = 60.0


def why_no_small_disk() -> str | None:
    if sys.platform != "linux" or shutil.which("mount") is None:
        return "there is no tmpfs here: a full disk needs Linux and mount"
    if os.geteuid() != 0:
        return "only root may mount a small tmpfs that can be full"
    return None


class DiskScene(Scene):
    def prepare(self, stack: AsyncExitStack) -> None:
        for name in self.names:
            folder = self.folder / name
            folder.mkdir(parents=True, exist_ok=True)
            words = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE},mode=700", "palio-chaos", folder]
            subprocess.run(words, check=True, capture_output=True)
            stack.callback(subprocess.run, ["umount", "-l", folder], check=False)

    async def hit(self, fault: Fault) -> None:
        if not fault.kind.startswith("disk full"):
            return await super().hit(fault)
        name = fault.target
        ballast = self.folder / name / _BALLAST
        taken = await asyncio.to_thread(_fill, ballast)
        self.note(f"the disk of {name} is full: {taken >> 10:,} KiB were left")
        try:
            if fault.kind.endswith("kill"):
                await asyncio.sleep(fault.lasts_s / 3)
                self.kill(name)
                await asyncio.sleep(fault.lasts_s / 3)
                os.truncate(ballast, max(0, ballast.stat().st_size - _TO_START))
                self.cluster.start(name)
                async with asyncio.timeout(_START_S_MAX):
                    while not await asyncio.to_thread(answers, self._port(name)):
                        await asyncio.sleep(0.1)
            # Readers free journal segments, which gives room again: it is taken as well.
            until = asyncio.get_running_loop().time() + fault.lasts_s
            while asyncio.get_running_loop().time() < until:
                await asyncio.sleep(0.2)
                await asyncio.to_thread(_fill, ballast)
        finally:
            ballast.unlink()
            self.note(f"the disk of {name} has room again")

    def _port(self, name: str) -> int:
        return int(self.cluster.url(name).rpartition(":")[2])

    def after(self) -> str:
        return f"the disks were in memory and are gone; logs: {self.folder}"


def _fill(path: Path) -> int:
    """Write until nothing more fits; gives the bytes."""
    before = path.stat().st_size if path.exists() else 0
    size = len(_PIECE)
    with path.open("ab", buffering=0) as file:
        while size:
            try:
                file.write(_PIECE[:size])
            except OSError:
                size //= 2
        with suppress(OSError):
            return file.tell() - before
    return 0
