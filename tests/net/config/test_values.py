"""Configurations as values: warnings, and what a reload cannot change."""

from __future__ import annotations

from pathlib import Path

import pytest

from palio.net import config as configuration
from tests.net.config.test_reading import IDENTITY, LOCAL, from_text


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("", []),
        ('listen = "0.0.0.0:1"', ["without TLS", "nobody can connect"]),
        ('listen = "0.0.0.0:1"\n[access]\nanonymous = true', ["without TLS", "lets anybody in"]),
        ('listen = "0.0.0.0:1"\n' + IDENTITY, ["without TLS"]),
        ("[access]\nanonymous = false", ["nobody can connect"]),
        ('[metrics]\nlisten = "0.0.0.0:2"', ["metrics are shown to anybody"]),
    ],
)
def test_what_is_hardly_meant_is_told(tmp_path: Path, text: str, warned: list[str]) -> None:
    found = list(from_text(tmp_path, LOCAL + text).warnings())
    assert len(found) == len(warned)
    assert all(part in sentence for part, sentence in zip(warned, found, strict=True))


def test_what_a_reload_cannot_change(tmp_path: Path) -> None:
    before = from_text(tmp_path, LOCAL)
    assert configuration.changes_that_wait(before, from_text(tmp_path, LOCAL + IDENTITY)) == []
    after = from_text(tmp_path, LOCAL + 'routing = "DRP"\n[limits]\nbody = 3')
    assert configuration.changes_that_wait(before, after) == ["routing", "limits"]
