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
from tests.sim.routers.conftest import ROUTINGS

SCRIPT = """
import hashlib, sys
from palio.sim.kernel.scenarios import trace_of
from palio.sim.routers.drawing import FAULTS, RouterSettings, draw
from palio.sim.routers.runs import ROUTERS
for seed in range(4):
    for routing in sys.argv[1:]:
        settings = RouterSettings(routers=8, operations=60, faults=FAULTS, routing=routing,
                                  advertisements=seed % 2 == 1)
        plan = draw(settings, seed)
        text = str(plan) + trace_of(ROUTERS, plan)
        print(seed, routing, hashlib.sha256(text.encode()).hexdigest())
"""


def digests(hash_seed: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *ROUTINGS],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_trace_does_not_depend_on_hashes() -> None:
    first = digests("0")
    assert len({line.split()[-1] for line in first}) == 4 * len(ROUTINGS)
    assert digests("271828") == first


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
