"""What a client's session tells its host: words of the broker, messages, and the connection's end."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from palio.errors import PalioError
from palio.model.language import parse
from palio.model.predicate import Predicate
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


def parse_wanted(text: str | None) -> Predicate | None:
    """What cannot be read is not known: then everything is sent."""
    try:
        return None if text is None else parse(text)
    except PalioError:
        return None
