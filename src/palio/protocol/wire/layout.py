"""The numbers that message batches and their kernels share.

They are apart from the kernels, so that numba, which takes long to load, is loaded when the first
large batch comes and not when a broker starts.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

PUBLISH: Final = 1
DELIVER: Final = 2
FORWARD: Final = 3
PREFIX: Final = 13  # bytes of a message frame before its header

# columns of a batch's rows
NUMBER: Final = 0
TIME: Final = 1
TEXT: Final = 2  # attributes are data[TEXT:PAYLOAD]
PAYLOAD: Final = 3  # headers and body are data[PAYLOAD:END]
END: Final = 4
ROUTE: Final = 5  # the routing header is names[ROUTE:NAME], empty for a new message
NAME: Final = 6  # the publisher, in msgpack, is names[NAME:NAME_END]
NAME_END: Final = 7
COLUMNS: Final = 8

# columns of a destination: where the messages of an interface go
LINK: Final = 0
ID: Final = 1
CREDIT: Final = 2

# in place of a link
NONE: Final = -1  # not for kernels
NOBODY: Final = -2  # gets nothing

# in msgpack
NO: Final = 0xC2
YES: Final = 0xC3


class BatchArrays(NamedTuple):
    """A batch as kernels take it."""

    data: Any  # uint8
    names: Any  # uint8
    rows: Any  # int64, (messages, COLUMNS)


class MatchArrays(NamedTuple):
    """Which interfaces messages match: those of row r are found[ends[r]:ends[r + 1]]."""

    ends: Any
    found: Any
