"""name=value on a command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import palio
from palio.cli.assignments import message_of
from palio.model.message import Message
from palio.net.cluster import Cluster, local_cluster

pytestmark = pytest.mark.xdist_group("network-commands")


@pytest.fixture(scope="module")
def line() -> Iterator[Cluster]:
    """b1 ─── b2"""
    with local_cluster(2, "line") as cluster:
        yield cluster


# ---- publish and subscribe


# ---- the map


# ---- a cluster


# ---- mistakes


@pytest.mark.parametrize(
    ("word", "literal"),
    [
        ("x=450", "450"), ("x=-3", "-3"), ("x=4.5", "CAST(4.5 AS DOUBLE)"), ("x=1e3", "1e3"),
        ("x=true", "TRUE"), ("x=FALSE", "FALSE"), ("x=MXP", "'MXP'"), ("x='450'", "'450'"),
        ("x='it''s'", "'it''s'"), ("x=a=b", "'a=b'"), ("x=", "''"), ("x=1.2.3", "'1.2.3'"),
        ("x=TIMESTAMP '2026-01-31 10:00:00'", "TIMESTAMP '2026-01-31 10:00:00'"),
    ],
)  # fmt: skip
def test_values_are_typed_as_sql_types_them(word: str, literal: str) -> None:
    message = message_of([word])
    assert isinstance(message, Message)
    assert palio.parse(f"x = {literal}").matches(message)
