"""A process that may open few files."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from palio.net.broker import descriptors
from palio.protocol.broker.settings import ConnectionBounds
from tests.net.peers import configured


def bounds(connections: int, strangers: int = 50) -> ConnectionBounds:
    return ConnectionBounds(connections, connections, strangers)


@pytest.fixture
def nofile() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_soft_limit_is_raised(nofile: tuple[int, int], tmp_path: Path) -> None:
    _, hard = nofile
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    large = descriptors.bounded(configured(tmp_path))
    found = large.settings.connections
    assert (found.strangers_max, found.clients_max, found.identity_max) == (48, 288, 231)
    assert found.clients_max + 2 * found.strangers_max == 512 - descriptors.RESERVED
    assert large.limits.closing == 48
    small = configured(tmp_path, "[limits]\nconnections = 100\nstrangers = 10\n")
    assert descriptors.bounded(small) == small
    descriptors.raise_soft_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)


def test_a_hard_limit_that_is_too_low(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (200, 1000))
    assert list(descriptors.warnings(bounds(772))) == []
    (warning,) = descriptors.warnings(bounds(10_000, 1_000))
    assert "may open 1,000 files" in warning
    assert "10,000 connections and 1,000 strangers" in warning
    assert "need 12,128" in warning
    assert "it takes 654 connections and 109 strangers" in warning
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10, resource.RLIM_INFINITY))
    assert list(descriptors.warnings(bounds(10_000))) == []
    found = descriptors.bounded(configured(tmp_path)).settings.connections
    assert (found.clients_max, found.identity_max, found.strangers_max) == (1, 1, 1)
