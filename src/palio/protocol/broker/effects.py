"""Effects: what the host must do for the broker core. They gather, and are taken once a turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from palio.protocol.wire.control import Bye, CloseCode, ControlMessage
from palio.protocol.wire.frames import control_frame
from palio.protocol.wire.parts import cut

T = TypeVar("T")
BUGS_MAX = 8
"""Of one turn; what causes one may cause thousands."""


class Close(NamedTuple):
    """Why a connection is closed: for programs, and for people."""

    code: CloseCode
    reason: str


class Notice(msgspec.Struct, frozen=True):
    """Something that the operator should find in the log: what happened, and to whom."""

    event: str
    fields: dict[str, object]
    is_warning: bool = False


class CommittedAct(msgspec.Struct, frozen=True, eq=False):
    """What follows the commit of something that was asked for."""

    link: int
    """Of whoever asked; 0: nobody did."""
    answer: ControlMessage | None
    notice: Notice | None
    finish: Callable[[], ControlMessage | None] | None = None
    """Does the rest; returns another answer if that is not possible any more."""


class BackgroundJob(Generic[T]):
    """A computation that nothing else depends on: any thread may `run` it."""

    __slots__ = ("_compute", "_error", "_result")

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute = compute
        self._result: Any = None
        self._error: Exception | None = None

    def run(self) -> None:
        try:
            self._result = self._compute()
        except Exception as error:  # raised where the result is asked for
            self._error = error

    def result(self) -> T:
        """What was computed; raises what went wrong."""
        if self._error is not None:
            raise self._error
        result: T = self._result
        return result


class Effects(msgspec.Struct):
    """The host does these in the order of the fields."""

    writes: dict[int, list[bytes]]
    """By link; joined into one write."""
    closes: list[tuple[int, Close]]
    """Links to close after the writes."""
    commit: int | None
    """A ticket: commit everything pending in the store, then call `committed` with it."""
    jobs: list[BackgroundJob[Any]] = []
    """Run each in another thread, then call `finished` with it."""
    reading: dict[int, bool] = {}
    """Links to stop reading (False), or to read again."""
    has_more: bool = False
    """Work waits for the next turn: call `take` again soon, whatever happens."""
    bugs: list[str] = []
    """To be logged: the broker went on, but something in it is wrong."""
    notices: list[Notice] = []
    """For the log."""
    requests: dict[str, int] = {}
    """The costly requests that were processed, and slices of them, by kind: for the log."""


class Output:
    """Gathers writes and closes, by link."""

    def __init__(self) -> None:
        self._writes: dict[int, list[bytes]] = {}
        self._closes: dict[int, Close] = {}
        self._bugs: list[str] = []
        self._notices: list[Notice] = []

    def write(self, link: int, data: bytes) -> None:
        if self._closes and link in self._closes:
            return  # Bye was last
        found = self._writes.get(link)
        if found is None:
            self._writes[link] = [data]
        else:
            found.append(data)

    def say(self, link: int, message: ControlMessage) -> None:
        self.write(link, control_frame(message))

    def log(self, notice: Notice) -> None:
        self._notices.append(notice)

    def close(self, link: int, close: Close) -> None:
        """Send Bye with the reason, and close."""
        if link not in self._closes:
            self.say(link, Bye(cut(close.reason), close.code))
            self._closes[link] = close

    def drop(self, link: int) -> None:
        """The link is lost: discard what is to be written."""
        self._writes.pop(link, None)
        self._closes.pop(link, None)

    def report(self, bug: str) -> None:
        """Have the host log it."""
        if len(self._bugs) < BUGS_MAX:
            self._bugs.append(bug)

    def take(self, commit: int | None) -> Effects:
        writes, self._writes = self._writes, {}
        closes, self._closes = list(self._closes.items()), {}
        effects = Effects(writes, closes, commit)
        if self._bugs:
            effects.bugs, self._bugs = self._bugs, []
        if self._notices:
            effects.notices, self._notices = self._notices, []
        return effects
