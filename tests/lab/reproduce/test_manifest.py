"""Directories of results: what mixes and what does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from palio.errors import InvalidFile, InvalidValue
from palio.lab.reproduce import manifest


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 2}, "results of seed 2, and this run has seed 1"),
        ({"scale": 0.5}, "results of scale 0.5"),
        ({"version": "0.0.9"}, "results of version 0.0.9"),
    ],
)
def test_results_of_another_run_do_not_mix(
    tmp_path: Path, change: Mapping[str, Any], words: str
) -> None:
    values: dict[str, Any] = {"seed": 1, "scale": 0.1} | dict(change)
    manifest.write(tmp_path, manifest.Manifest(**values))
    with pytest.raises(InvalidValue, match=words):
        manifest.opened(tmp_path, seed=1, scale=0.1)


def test_a_manifest_reads_back_and_foreign_directories_are_refused(tmp_path: Path) -> None:
    made = manifest.opened(tmp_path / "new", seed=3, scale=0.1)
    longer = made.with_run("local[2]", ["traffic"], 6, 1, 2.5)
    manifest.write(tmp_path / "new", longer)
    assert manifest.read(tmp_path / "new") == longer
    assert longer.runs[0]["seconds"] == 2.5
    with pytest.raises(InvalidValue, match="is not empty and has no manifest"):
        manifest.opened(tmp_path, seed=1, scale=0.1)
    with pytest.raises(InvalidFile, match="is no directory of results"):
        manifest.read(tmp_path)
    (tmp_path / "new" / manifest.NAME).write_text("{")
    with pytest.raises(InvalidFile, match="is damaged"):
        manifest.read(tmp_path / "new")
