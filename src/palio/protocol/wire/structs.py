"""What all control messages are made of: their base, and the numbers in them."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""Every number on the wire. Decoding refuses others, so no other code checks the range."""


class ControlStruct(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The tag of each control message is part of the protocol; the name of its class is not."""
