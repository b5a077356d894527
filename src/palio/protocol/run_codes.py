"""The numbers that runs and their kernels share. They are apart so that numba, which takes long to
load, is loaded when the first run comes and not when a broker starts."""

from __future__ import annotations

from typing import Final

PUBLISH: Final = 1
DELIVER: Final = 2
FORWARD: Final = 3
PREFIX: Final = 13  # bytes of a frame before its header

# columns of a run's rows
NUMBER: Final = 0
TIME: Final = 1
TEXT: Final = 2
BODY: Final = 3
END: Final = 4
NAME: Final = 5
NAME_END: Final = 6
TRAIL: Final = 7
COLUMNS: Final = 8

# columns of an interface's line
LINK: Final = 0
ID: Final = 1
CREDIT: Final = 2

# instead of a connection
NONE: Final = -1
NOBODY: Final = -2
UNKNOWN: Final = -3  # nobody asked yet

# in msgpack
NO: Final = 0xC2
YES: Final = 0xC3
