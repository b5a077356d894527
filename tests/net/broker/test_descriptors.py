"""A process that may open few files."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from palio.net.broker import descriptors
from palio.net.config.values import HostLimits


def limits(connections: int) -> HostLimits:
    return HostLimits(connections, 1, 2, 3)


@pytest.fixture
def nofile() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_soft_limit_is_raised(nofile: tuple[int, int]) -> None:
    _, hard = nofile
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    assert descriptors.bounded(limits(10_000)).connections == 512 - descriptors.RESERVED
    assert descriptors.bounded(limits(100)) == limits(100)
    descriptors.raise_soft_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)


def test_a_hard_limit_that_is_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (200, 1000))
    assert list(descriptors.warnings(limits(800))) == []
    (warning,) = descriptors.warnings(limits(10_000))
    assert "may open 1,000 files" in warning
    assert "10,000 connections" in warning
    assert "need 10,128" in warning
    assert "it takes 872 connections" in warning
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10, resource.RLIM_INFINITY))
    assert list(descriptors.warnings(limits(10_000))) == []
    assert descriptors.bounded(limits(10_000)).connections == 1
