"""How kernels are compiled, and their cache kept true.

Numba counts references to an array wherever a kernel hands it to another, with an atomic operation
each; where kernels call kernels for a few bytes this is most of the time. `_nrt=False` leaves the
counting out: right for kernels that only borrow their arrays.

An array is seven words to the one who is called, and a `Pivots` has twenty arrays: a call that gets
a few of such structures writes hundreds of words before it does anything. So kernels are compiled
into their callers: rows with little to do become three times as quick, and LLVM has less to do.

Numba keeps compiled kernels beside their source, or where NUMBA_CACHE_DIR says, or in the user's
own cache; where nothing can be written, kernels are compiled anew in each process. It takes them for
fresh as long as that one file is. Kernels are compiled into each other across files, so here one
changed file makes all stale.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])

_ALLOCATING: dict[str, Any] = {"nogil": True}
_BORROWING: dict[str, Any] = {**_ALLOCATING, "_nrt": False, "forceinline": True}


def borrowing(kernel: _Kernel) -> _Kernel:
    """Compile a kernel that allocates nothing."""
    return _compiled(kernel, _BORROWING)


def allocating(kernel: _Kernel) -> _Kernel:
    """Compile a kernel that makes arrays of its own."""
    return _compiled(kernel, _ALLOCATING)


def _compiled(kernel: _Kernel, options: dict[str, Any]) -> _Kernel:
    try:
        made: Any = njit(**options, cache=True)(kernel)
    except RuntimeError:  # numba found no folder that it may write to
        made = njit(**options)(kernel)
    folder = cache_folder(made)
    if folder is not None:
        discard_stale(folder)
    compiled: _Kernel = made
    return compiled


def cache_folder(kernel: Any) -> Path | None:
    """Where numba keeps what it made of a kernel, if it can."""
    path = kernel.stats.cache_path
    return None if path is None else Path(path)


def is_kept(kernel: Any) -> bool:
    """Has this kernel been compiled before, by this Python, from these sources?"""
    folder, made = cache_folder(kernel), kernel.py_func
    if folder is None:
        return False
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    name = f"{made.__module__.rpartition('.')[2]}.{made.__qualname__}"
    return any(folder.glob(f"{name}-*.{python}*.nbi"))


@cache  # once a process: the sources do not change under it
def newest_source() -> float:
    """When a file that kernels may be made of changed last: any of matching, in every folder, and the kernels
    of other layers."""
    matching = Path(__file__).parent
    sources = (*matching.rglob("*.py"), *matching.parent.rglob("*kernels.py"))
    return max(path.stat().st_mtime for path in sources)


@cache  # once a process and folder
def discard_stale(folder: Path) -> None:
    """Remove compiled kernels that are older than any source they may be made of."""
    changed = newest_source()
    for index in folder.glob("*kernels.*.nbi"):
        with contextlib.suppress(OSError):  # another process may be at it too
            if index.stat().st_mtime < changed:
                index.unlink()
