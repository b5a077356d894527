"""A command: within this process, which is quick, or in one of its own, as a user runs it."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path

import pytest

from palio.cli import main

Done = subprocess.CompletedProcess[str]


def palio(*arguments: str | Path) -> Done:
    """The function that the script calls, in this process; what nobody foresaw is raised."""
    words = ["palio", *map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", words)
        patch.setattr(sys, "stdin", io.StringIO())
        patch.setattr(sys, "excepthook", sys.excepthook)  # typer sets its own
        code = _exit_code()
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def _exit_code() -> int:
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def process(*arguments: str | Path) -> Done:
    """A Python of its own, which imports everything and loads the kernels."""
    words = [sys.executable, "-m", "palio.cli", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
