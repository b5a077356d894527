"""The manifest of a directory of results: which version, seed and scale made them, where, how long.

Results of another version or seed do not mix: what is opened for a run must agree with the manifest
that is there. Every run adds an entry, with the seconds its jobs took.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import palio
from palio.errors import InvalidFile, InvalidValue

NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What holds for all results of a directory, and the runs that made them."""

    seed: int
    scale: float
    version: str = palio.__version__
    machine: Mapping[str, Any] = field(default_factory=lambda: machine())
    runs: tuple[Mapping[str, Any], ...] = ()

    def with_run(
        self, master: str, ids: list[str], points: int, finished_before: int, seconds: float
    ) -> Manifest:
        """The same with one run more."""
        entry = {
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "master": master,
            "experiments": ids,
            "points": points,
            "finished_before": finished_before,
            "seconds": round(seconds, 3),
        }
        return Manifest(self.seed, self.scale, self.version, self.machine, (*self.runs, entry))


def machine() -> dict[str, Any]:
    """What the times depend on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def _processor() -> str:
    """Its model, where Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())


def read(folder: Path) -> Manifest:
    """The manifest of a directory of results."""
    path = folder / NAME
    if not path.is_file():
        raise InvalidFile(
            f"{folder} holds no {NAME}, so it is no directory of results; "
            f"`palio lab run --all --out {folder}` makes one"
        )
    try:
        fields = json.loads(path.read_text("utf-8"))
        return Manifest(
            int(fields["seed"]),
            float(fields["scale"]),
            str(fields["version"]),
            dict(fields["machine"]),
            tuple(fields["runs"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidFile(f"{path} is damaged ({error}); name another directory") from None


def write(folder: Path, manifest: Manifest) -> None:
    """Write it in one step."""
    unfinished = folder / f".{NAME}"
    unfinished.write_text(json.dumps(asdict(manifest), indent=1) + "\n", "utf-8")
    unfinished.replace(folder / NAME)


def opened(folder: Path, *, seed: int, scale: float) -> Manifest:
    """The manifest for a run in this directory, which is made if it is not there."""
    if folder.exists() and not folder.is_dir():
        raise InvalidValue(f"{folder} is a file; name a directory with --out")
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / NAME).exists():
        if any(folder.iterdir()):
            raise InvalidValue(
                f"{folder} is not empty and has no {NAME}; name a new directory with --out"
            )
        write(folder, Manifest(seed, scale))
    manifest = read(folder)
    for word, there, asked in (
        ("version", manifest.version, palio.__version__),
        ("seed", manifest.seed, seed),
        ("scale", manifest.scale, scale),
    ):
        if there != asked:
            raise InvalidValue(
                f"{folder} holds results of {word} {there}, and this run has {word} {asked}; "
                "results do not mix: name another directory with --out"
            )
    return manifest
