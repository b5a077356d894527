"""How kernels are compiled, and their cache kept true.

Numba counts references to an array wherever a kernel hands it to another, with an atomic operation
each; where kernels call kernels for a few bytes this is most of the time. `_nrt=False` leaves the
counting out: right for kernels that only borrow their arrays.

Numba keeps compiled kernels beside their source, and takes them for fresh as long as that one file
is. Kernels are compiled into each other across files, so here one changed file makes all stale.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])

_ALLOCATING: dict[str, Any] = {"cache": True, "nogil": True}
_BORROWING: dict[str, Any] = {**_ALLOCATING, "_nrt": False}


def borrowing(kernel: _Kernel) -> _Kernel:
    """Compile a kernel that allocates nothing."""
    compiled: _Kernel = njit(**_BORROWING)(kernel)
    return compiled


def inlined(kernel: _Kernel) -> _Kernel:
    """Compile such a kernel into each of its callers."""
    compiled: _Kernel = njit(**_BORROWING, inline="always")(kernel)
    return compiled


def allocating(kernel: _Kernel) -> _Kernel:
    """Compile a kernel that makes arrays of its own."""
    compiled: _Kernel = njit(**_ALLOCATING)(kernel)
    return compiled


def discard_stale(folder: Path) -> None:
    """Remove compiled kernels that are older than any source they may be made of."""
    changed = max(path.stat().st_mtime for path in folder.glob("*.py"))
    for index in (folder / "__pycache__").glob("*kernels.*.nbi"):
        with contextlib.suppress(OSError):  # another process may be at it too
            if index.stat().st_mtime < changed:
                index.unlink()


discard_stale(Path(__file__).parent)
