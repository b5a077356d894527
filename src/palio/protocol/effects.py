"""What a broker or a client wants its host to do: gathered, and taken once a turn."""

from __future__ import annotations

import msgspec

from palio.protocol.frames import word_frame
from palio.protocol.words import Bye, Word


class Effects(msgspec.Struct):
    """To be done in this order."""

    writes: dict[int, list[bytes]]
    """By link; to be joined and written at once."""
    closes: list[tuple[int, str]]
    """Links to close after that is written, and why."""
    commit: int | None
    """A ticket: commit all that is pending in the store now, and call `committed` with it."""


class Output:
    def __init__(self) -> None:
        self._writes: dict[int, list[bytes]] = {}
        self._closes: dict[int, str] = {}

    def write(self, link: int, frame: bytes) -> None:
        found = self._writes.get(link)
        if found is None:
            self._writes[link] = [frame]
        else:
            found.append(frame)

    def say(self, link: int, word: Word) -> None:
        self.write(link, word_frame(word))

    def close(self, link: int, reason: str) -> None:
        """Say why, and close."""
        if link not in self._closes:
            self.say(link, Bye(reason))
            self._closes[link] = reason

    def drop(self, link: int) -> None:
        """The link is gone: nothing can be written any more."""
        self._writes.pop(link, None)
        self._closes.pop(link, None)

    def take(self, commit: int | None) -> Effects:
        writes, self._writes = self._writes, {}
        closes, self._closes = list(self._closes.items()), {}
        return Effects(writes, closes, commit)
