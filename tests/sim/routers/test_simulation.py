"""The same seed gives the same trace, byte by byte, whatever the hashes are."""

from __future__ import annotations

import os
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from palio.sim.kernel.scenarios import trace_of
from palio.sim.routers.drawing import FAULTS, TOPOLOGIES, RouterSettings, draw
from palio.sim.routers.plans import parse_router_plan
from palio.sim.routers.runs import ROUTERS

SCRIPT = """
import hashlib, sys
from palio.sim.kernel.scenarios import trace_of
from palio.sim.routers.drawing import FAULTS, RouterSettings, draw
from palio.sim.routers.runs import ROUTERS
for seed in range(4):
    plan = draw(RouterSettings(routers=8, operations=60, faults=FAULTS, routing=sys.argv[1],
                         advertisements=seed % 2 == 1), seed)
    print(hashlib.sha256((str(plan) + trace_of(ROUTERS, plan)).encode()).hexdigest())
"""


def digests(routing: str, hash_seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, routing],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_trace_does_not_depend_on_hashes(routing: str) -> None:
    first = digests(routing, "0")
    assert len(set(first.split())) == 4
    assert digests(routing, "1") == first
    assert digests(routing, "271828") == first


@given(
    st.integers(0, 10**9), st.sampled_from(TOPOLOGIES), st.booleans(), st.sampled_from([(), FAULTS])
)
@settings(max_examples=25, deadline=None)
def test_the_text_of_a_plan_replays_it(
    seed: int, topology: str, advertisements: bool, faults: tuple[str, ...]
) -> None:
    """Printing then parsing gives the same plan, and so the same trace."""
    plan = draw(
        RouterSettings(6, topology, 25, faults, routing="plain", advertisements=advertisements),
        seed,
    )
    read_back = parse_router_plan(str(plan))
    assert read_back == plan
    assert trace_of(ROUTERS, read_back) == trace_of(ROUTERS, plan)
