"""A soak of some seconds: it runs, nothing is lost, and everything is sampled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from palio.lab.soak.drawing import picture
from palio.lab.soak.running import soak

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("brokers")]


def test_a_short_soak(tmp_path: Path) -> None:
    """Too short for a verdict about growth; that is what `make soak` is for."""
    done = soak(20.0, tmp_path)
    for one in done.trends:
        print(one)
    assert done.faults == {"lost": 0, "doubled": 0}
    lines = (tmp_path / "samples.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == done.samples
    last = done.samples[-1]
    assert last["visits"] > 0
    assert last["received"] > 0
    assert last["live"]["messages"] > 0
    assert last["durable"]["messages"] > 0
    assert all(values["rss_bytes"] > 1 << 20 for values in last["brokers"].values())
    assert {one.unit for one in done.trends} == {"MiB", "ms", "messages"}
    assert picture(done.samples).startswith(b"\x89PNG")
