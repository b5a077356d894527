"""What a client's session tells its host: words of the broker, messages, and the connection's end."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from palio.protocol.frames import Deliver, Letter
from palio.protocol.words import Word


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """A message for one subscription."""

    id: int
    letter: Letter

    @property
    def header(self) -> Deliver:
        return self.letter.header  # type: ignore[return-value]


class Closing(msgspec.Struct, frozen=True):
    """The connection is of no more use: write what `take` gives, and close it."""

    reason: str
    refused: bool = False
    """The broker does not want this client, or speaks another language."""


Happening: TypeAlias = Word | Arrival | Closing
