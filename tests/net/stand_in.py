"""A small core for the tests of the host: it echoes, stores, and keeps a record of what it was told."""

from __future__ import annotations

from palio.net.config import Config
from palio.protocol.broker.access import Access
from palio.protocol.broker.effects import Close, Effects, Output
from palio.protocol.broker.links import ANYWHERE, LinkOrigin
from palio.protocol.broker.listener_acts import ListenerActs
from palio.protocol.broker.schemas import Schemas
from palio.protocol.broker.snapshot import QueueGauges, QueuesSnapshot, Snapshot, TableGauges
from palio.protocol.durability.storage import Store
from palio.protocol.wire.control import (
    Bye,
    CloseCode,
    Credit,
    Hello,
    Ping,
    Pong,
    Published,
    Welcome,
)
from palio.protocol.wire.frames import (
    BrokenFrame,
    FrameReader,
    MessageFrame,
    message_frame,
    payload_frame,
)
from palio.protocol.wire.headers import DeliverHeader, PublishHeader

SECOND = 1_000_000

_QUEUES = QueuesSnapshot(
    3, {"ann/desk": QueueGauges(7, 700, 2_500_000, 1, True), 'bob/"x"': QueueGauges(2)}
)


class StandIn:
    """Ping is answered; a message comes back, a durable one as Published after its commit.

    Credit(0, n) asks for n bytes of messages at once. A dialled neighbour is greeted, and linked when
    it says Hello.
    """

    def __init__(self, config: Config, store: Store, now_us: int) -> None:
        self.config, self._store = config, store
        self._output = Output()
        self._frames: dict[int, FrameReader] = {}
        self._ticket = 0
        self._stored: list[tuple[int, int]] = []
        self._is_committing = False
        self.calls: list[tuple[object, ...]] = []
        self.commits: list[list[tuple[int, int]]] = []
        self.neighbours: dict[int, str] = {}
        self.deadline_us = now_us + SECOND
        self.fault: Exception | None = None

    def open(
        self, link: int, now_us: int, origin: LinkOrigin = ANYWHERE, *, dials: str | None = None
    ) -> None:
        self.calls.append(("open", link, origin.certificate, dials))
        self._frames[link] = FrameReader(self.config.settings.limits)
        if dials is not None:
            self.neighbours[link] = dials
            self._output.say(link, Hello(1, "broker", self.config.name))

    def secure(self, link: int, size: int, certificate: str, now_us: int) -> None:
        self.calls.append(("secure", link, size, certificate))

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
            self._output.close(link, Close(CloseCode.PROTOCOL, str(error)))

    def _take(self, link: int, item: object) -> None:
        if isinstance(item, Ping):
            self._output.say(link, Pong(item.number))
        elif isinstance(item, Hello):
            self.neighbours[link] = item.name
            self._output.say(link, Welcome(1, self.config.name))
        elif isinstance(item, Credit):
            for _ in range(item.count // 1000):
                frame = message_frame(DeliverHeader((1,), 0, "x", 1, 0), b"{}", bytes(1000))
                self._output.write(link, frame)
        elif isinstance(item, MessageFrame) and isinstance(item.header, PublishHeader):
            number = item.header.number
            if item.header.durable:
                self._store.put(f"message/{number:012}", item.body)
                self._stored.append((link, number))
            else:
                header = DeliverHeader((1,), 0, "x", number, item.header.time)
                self._output.write(link, payload_frame(header, item.attributes, item.payload))

    def close(self, link: int, now_us: int) -> None:
        self.calls.append(("close", link))
        self._output.drop(link)
        self._frames.pop(link, None)
        self.neighbours.pop(link, None)

    def congest(self, link: int, is_congested: bool, now_us: int) -> None:
        self.calls.append(("congest", link, is_congested))

    def pause(self, now_us: int) -> None:
        self.calls.append(("pause",))

    def resume(self, now_us: int) -> None:
        self.calls.append(("resume",))

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

    def snapshot(self) -> Snapshot:
        return Snapshot(
            queues=_QUEUES,
            misrouted={"astray": 3},
            table=TableGauges(5),
        )

    @property
    def listener_acts(self) -> ListenerActs:
        raise NotImplementedError

    def reload_access(self, access: Access, now_us: int, schemas: Schemas | None = None) -> None:
        names = tuple(sorted(identity.name for identity in access.identities()))
        self.calls.append(("reload_access", names))


class Cores:
    """Makes cores, and remembers them."""

    def __init__(self) -> None:
        self.made: list[StandIn] = []

    def __call__(self, config: Config, store: Store, now_us: int) -> StandIn:
        self.made.append(StandIn(config, store, now_us))
        return self.made[-1]

    @property
    def last(self) -> StandIn:
        return self.made[-1]


def core_calls(core: StandIn, name: str) -> list[tuple[object, ...]]:
    return [call for call in core.calls if call[0] == name]
