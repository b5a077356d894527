"""A small core for the tests of the host: it echoes, stores, and keeps a record of what it was told."""

from __future__ import annotations

from collections.abc import Iterable

from palio.net.config import Config
from palio.net.core import Measure
from palio.protocol.access import Access
from palio.protocol.effects import Effects, Output
from palio.protocol.frames import BrokenFrame, Deliver, Frames, Letter, Publish, letter_frame
from palio.protocol.store import Store
from palio.protocol.words import Bye, Credit, Hello, Ping, Pong, Published, Welcome

SECOND = 1_000_000


class StandIn:
    """Ping is answered; a message comes back, a durable one as Published after its commit.

    Credit(0, n) asks for n bytes of messages at once. A dialled neighbour is greeted, and linked when
    it says Hello.
    """

    def __init__(self, config: Config, store: Store, now_us: int) -> None:
        self.config, self._store = config, store
        self._output = Output()
        self._frames: dict[int, Frames] = {}
        self._ticket = 0
        self._stored: list[tuple[int, int]] = []
        self._is_committing = False
        self.calls: list[tuple[object, ...]] = []
        self.commits: list[list[tuple[int, int]]] = []
        self.neighbours: dict[int, str] = {}
        self.deadline_us = now_us + SECOND
        self.fault: Exception | None = None

    def open(
        self, link: int, now_us: int, *, certificate: str = "", dials: str | None = None
    ) -> None:
        self.calls.append(("open", link, certificate, dials))
        self._frames[link] = Frames(self.config.settings.limits)
        if dials is not None:
            self.neighbours[link] = dials
            self._output.say(link, Hello(1, "broker", self.config.name))

    def receive(self, link: int, data: bytes, now_us: int) -> None:
        self.calls.append(("receive", link, len(data)))
        if self.fault is not None:
            raise self.fault
        if link not in self._frames:
            return
        try:
            for item in self._frames[link].feed(data):
                self._take(link, item)
        except BrokenFrame as error:
            del self._frames[link]
            self._output.close(link, str(error))

    def _take(self, link: int, item: object) -> None:
        if isinstance(item, Ping):
            self._output.say(link, Pong(item.number))
        elif isinstance(item, Hello):
            self.neighbours[link] = item.name
            self._output.say(link, Welcome(1, self.config.name))
        elif isinstance(item, Credit):
            for _ in range(item.count // 1000):
                frame = letter_frame(Deliver((1,), 0, "x", 1, 0), b"{}", bytes(1000))
                self._output.write(link, frame)
        elif isinstance(item, Letter) and isinstance(item.header, Publish):
            number = item.header.number
            if item.header.durable:
                self._store.put(f"message/{number:012}", item.body)
                self._stored.append((link, number))
            else:
                header = Deliver((1,), 0, "x", number, item.header.time)
                self._output.write(link, letter_frame(header, item.attributes, item.body))

    def close(self, link: int, now_us: int) -> None:
        self.calls.append(("close", link))
        self._output.drop(link)
        self._frames.pop(link, None)
        self.neighbours.pop(link, None)

    def press(self, link: int, pressed: bool, now_us: int) -> None:
        self.calls.append(("press", link, pressed))

    def wake(self, now_us: int) -> None:
        assert now_us >= self.deadline_us
        self.calls.append(("wake",))
        self.deadline_us = now_us + SECOND

    def take(self) -> Effects:
        self.calls.append(("take",))
        if self._stored and not self._is_committing:
            self._is_committing = True
            self._ticket += 1
            self.commits.append(self._stored)
            self._stored = []
            return self._output.take(self._ticket)
        return self._output.take(None)

    def committed(self, ticket: int, now_us: int) -> None:
        assert ticket == len(self.commits)
        self._is_committing = False
        self.calls.append(("committed", ticket))
        for link, number in self.commits[-1]:
            if link in self._frames:
                self._output.say(link, Published(number))

    def say_bye(self, link: int, reason: str) -> None:
        self._output.say(link, Bye(reason))

    def is_linked(self, neighbour: str) -> bool:
        return neighbour in self.neighbours.values()

    def measures(self) -> Iterable[Measure]:
        text = "Messages that wait"
        yield "queue_messages", "gauge", text, {"subscription": "ann/desk"}, 7
        yield "queue_messages", "gauge", text, {"subscription": 'bob/"x"'}, 2

    def grant(self, access: Access, now_us: int) -> None:
        self.calls.append(
            ("grant", tuple(sorted(identity.name for identity in access.identities())))
        )
