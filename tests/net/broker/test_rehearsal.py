"""The rehearsal does what a broker does, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys

from palio.net.broker.rehearsal import rehearse

SCRIPT = """
import os, sys
from palio.net.broker import kernels
kernels.prepare()
print([name for name in ("pandas", "pyspark", "rich", "scipy.sparse") if name in sys.modules])
import numba.core.dispatcher as dispatcher
late = []
before, compile = set(sys.modules), dispatcher._DispatcherBase._compile_for_args

def noted(self, *args, **kwargs):
    late.append(self.py_func.__name__)
    return compile(self, *args, **kwargs)

dispatcher._DispatcherBase._compile_for_args = noted
from palio.net.broker.rehearsal import rehearse
rehearse(os.urandom)
print(late, sorted(set(sys.modules) - before))
"""


def test_only_what_a_broker_needs_is_loaded_and_nothing_later() -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["[]", "[] []"]


def test_all_parts_take_part() -> None:
    seen = rehearse(os.urandom)
    a, b = seen["a"], seen["b"]
    assert b.durable.arrived > 100, "messages were carried"
    assert b.live.received > 100, "and forwarded"
    assert b.live.delivered > 0
    assert a.durable.delivered > 100, "the store was read after the restart"
    assert a.neighbours == b.neighbours == 1
