"""The kernels compiled ahead: what takes half a minute happens once, and not in a command.

`warm` uses a small table in each way that commands use one, so that numba compiles its kernels and
keeps them. `waiting` says that a command will have to compile, and why.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa

from palio.matching import jit
from palio.matching.computed.warming import warm_expressions
from palio.matching.pivot import forward_kernels
from palio.matching.table import ForwardingTable

ONCE = "compiling kernels, once: about half a minute"
EACH_TIME = (
    "compiling kernels: about half a minute each time, since they cannot be kept anywhere; "
    "let NUMBA_CACHE_DIR name a folder that can be written"
)


def waiting() -> str | None:
    """What to tell someone who is about to wait for kernels; None when they are there."""
    if jit.is_kept(forward_kernels.forward):
        return None
    return EACH_TIME if jit.cache_folder(forward_kernels.forward) is None else ONCE


def warm() -> None:
    """Compile what expressions and forwarding through the pivot engine need, or load it from the cache."""
    made = ForwardingTable.compile({"a": "x < 5 AND s LIKE 'a%' OR y > 1.5 OR b", "b": "TRUE"})
    warm_expressions()
    rows = _rows()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.palio"
        made.save(path)
        table = ForwardingTable.load(path)
        table.forward({"x": 1, "s": "abc"})
        table.forward_batch(rows)
        table.forward_batch(rows, json="json")


def _rows() -> pa.Table:
    """Made here and not with the module: pa.array imports pandas, and brokers do not need it."""
    return pa.table(
        {
            "x": pa.array([1, None]),
            "y": pa.array([2.5, None]),
            "s": pa.array(["abc", None]),
            "b": pa.array([True, None]),
            "at": pa.array([0, None], pa.timestamp("us", tz="UTC")),
            "json": pa.array(['{"x": 1, "s": "abc"}', None]),
        }
    )
