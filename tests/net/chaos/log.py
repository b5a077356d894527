"""What happened when in a run of chaos: printed as it goes, and kept for the report."""

from __future__ import annotations

import sys
import time


class Log:
    def __init__(self) -> None:
        self.began = time.monotonic()
        self._lines: list[str] = []

    def say(self, text: str) -> None:
        line = f"{time.monotonic() - self.began:7.1f} s  {text}"
        self._lines.append(line)
        print(line, file=sys.stderr, flush=True)

    def __str__(self) -> str:
        return "\n".join(self._lines)
