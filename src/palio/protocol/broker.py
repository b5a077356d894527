"""The broker: everything but sockets, disks and clocks, which its host has.

    open, receive, close, wake, committed ──▶ Broker ──▶ take() ──▶ Effects(writes, closes, commit)

    link ──▶ frames ──▶ words ──▶ clients.py, neighbours.py
                   └──▶ messages, gathered until `take` or until a word changes who gets them
                          live     ──▶ live.py here, routes.py to other brokers     FORWARD
                          durable  ──▶ deposit.py: stored; after the commit
                                         to live subscriptions as above
                                         to durable ones: streams to their brokers  CARRY
                                                          queues of this one        DELIVER

What always holds: nothing that depends on the store leaves before the commit that holds it; what
leaves depends only on the calls, their arguments and the store, so the simulator can repeat it.
"""

from __future__ import annotations

from collections.abc import Callable

from palio.errors import PalioError
from palio.protocol.access import Identity
from palio.protocol.clients import Clients
from palio.protocol.durability.deposit import Deposit
from palio.protocol.effects import Effects, Output
from palio.protocol.frames import BEFORE_HELLO, BrokenFrame, Frames, Kind, Letter
from palio.protocol.handshake import NONCE_BYTES, Answering, Dialling, answer, dial
from palio.protocol.live import NETWORK, Live
from palio.protocol.neighbours import Neighbours
from palio.protocol.overlay.landscape import Landscape
from palio.protocol.overlay.routes import Routes
from palio.protocol.runs import Forwarded, Run, scan, scan_forwards
from palio.protocol.settings import Settings
from palio.protocol.store import Store
from palio.protocol.traffic import Traffic
from palio.protocol.words import VERSION, Bye, Confirm, Hello, Ping, Pong, Welcome, Word
from palio.routing.packets import Joined, Role
from palio.routing.router import Router

_EPOCH = "broker/epoch"
_NAME = "broker/name"


class Link:
    """A connection, and who is at the other end once that is known."""

    __slots__ = ("certificate", "credit", "dialled", "frames", "heard_us", "identity", "is_bound",
                 "is_pressed", "name", "number", "pending",
                 "pinged_us", "publisher", "received")  # fmt: skip

    def __init__(self, number: int, frames: Frames, now_us: int) -> None:
        self.number = number
        self.frames = frames
        self.heard_us = self.pinged_us = now_us
        self.dialled: str | None = None
        self.pending: Dialling | Answering | None = None
        self.name = ""
        """Of a broker, when it has proved it."""
        self.identity: Identity | None = None
        """Of a client, when it has been welcomed."""
        self.certificate = ""
        self.publisher = ""
        """Of a client."""
        self.is_bound = True
        """There are messages that the client may not publish."""
        self.credit = 0
        self.is_pressed = False
        """More waits to be sent there than should."""
        self.received = 0


class Broker:
    """`random` gives so many unpredictable bytes."""

    def __init__(
        self, settings: Settings, store: Store, now_us: int, random: Callable[[int], bytes]
    ) -> None:
        self.settings = settings
        self.name = settings.name
        self.now_us = now_us
        self._random = random
        self._links: dict[int, Link] = {}
        self.output = Output()
        self.store = store
        epoch = self._epoch(store)
        router = Router(f"b{self.name}", advertisements=settings.advertisements)
        if not settings.is_forwarding:
            router.step(Joined(NETWORK, Role.NEIGHBOUR))
        self.live = Live(router, self.output, self._end, bound=settings.waiting_max)
        self.deposit = Deposit(store, self.name, epoch, now_us, settings.bounds)
        self.landscape = Landscape(self.name, epoch, now_us)
        self.routes = Routes(
            self.name, "DRP" if settings.is_forwarding else settings.routing, self.landscape
        )
        self.traffic = Traffic(self)
        self.clients = Clients(self)
        self.neighbours = Neighbours(self)
        self._commit: int | None = None  # under way

    def _epoch(self, store: Store) -> str:
        """The name of this store's numbers, made when it is new."""
        known, owner = store.get(_EPOCH), store.get(_NAME)
        if known is None or owner is None:
            known = self._random(8).hex().encode()
            store.put(_EPOCH, known)
            store.put(_NAME, self.name.encode())
        elif owner.decode() != self.name:
            raise PalioError(
                f"the store belongs to broker {owner.decode()!r}, not to {self.name!r}; "
                "give each broker a folder of its own"
            )
        return known.decode()

    def _end(self, link: int, id: int, reason: str) -> None:
        self.clients.end(link, id, reason)

    # ---- what happens

    def open(
        self, link: int, now_us: int, *, certificate: str = "", dials: str | None = None
    ) -> None:
        """A connection is there. `certificate`: the name in it, verified; `dials`: the neighbour
        that was called."""
        self._at(now_us)
        made = self._links[link] = Link(link, Frames(BEFORE_HELLO), now_us)
        made.certificate = certificate
        if dials is not None:
            made.dialled = dials
            secret = self.settings.neighbours[dials].secret
            made.pending, hello = dial(self.name, dials, secret, self._random(NONCE_BYTES))
            self.output.say(link, hello)

    def receive(self, link: int, data: bytes, now_us: int) -> None:
        self._at(now_us)
        found = self._links.get(link)
        if found is None:
            return
        found.heard_us = now_us
        try:
            for item in found.frames.feed(data):
                if type(item) is Letter:
                    self._take_letter(found, item)
                elif isinstance(item, Run):
                    self._take_run(found, item)
                else:
                    self._take_word(found, item)  # type: ignore[arg-type]
                if link not in self._links:
                    return
        except PalioError as error:
            self.hang_up(found, str(error))

    def close(self, link: int, now_us: int) -> None:
        """A connection is gone."""
        self._at(now_us)
        self.output.drop(link)
        found = self._links.pop(link, None)
        if found is not None:
            self._forget(found)

    def press(self, link: int, pressed: bool, now_us: int) -> None:
        """Much waits at the host for this connection, or no longer: until then it gets no messages."""
        self._at(now_us)
        found = self._links.get(link)
        if found is None or found.is_pressed == pressed:
            return
        if found.name:
            self.neighbours.press(found, pressed)
        elif found.publisher:
            self.clients.press(found, pressed)

    def wake(self, now_us: int) -> None:
        """The deadline is here."""
        self._at(now_us)
        keepalive_us = self.settings.keepalive_us
        for link in list(self._links.values()):
            if now_us - link.heard_us >= 3 * keepalive_us:
                self.hang_up(link, f"nothing was heard for {3 * keepalive_us / 1e6:g} s")
            elif now_us - max(link.heard_us, link.pinged_us) >= keepalive_us:
                link.pinged_us = now_us
                self.output.say(link.number, Ping(0))
        self.live.tick(now_us)
        self.landscape.wake(now_us)
        self.deposit.wake(now_us)
        self.clients.wake(now_us)

    def committed(self, ticket: int, now_us: int) -> None:
        """All that was pending when the ticket was given is safe."""
        self._at(now_us)
        self._commit = None
        self.deposit.committed(ticket, now_us)
        self.traffic.committed(ticket)

    def take(self) -> Effects:
        """What is to be done now. To be called after any of the above, once a turn."""
        self.traffic.flush()
        self.neighbours.flood()
        self.traffic.carry()
        self.neighbours.flood()  # durable subscriptions that have just become safe
        if self._commit is None:
            self._commit = self.deposit.seal()
            if self._commit is not None:
                self.traffic.sealed(self._commit)
            return self.output.take(self._commit)
        return self.output.take(None)

    @property
    def deadline_us(self) -> int:
        """When to call `wake` at the latest."""
        keepalive_us = self.settings.keepalive_us
        silent = [max(x.heard_us, x.pinged_us) + keepalive_us for x in self._links.values()]
        others = (self.live.router.due, self.landscape.deadline_us, self.deposit.deadline_us,
                  self.clients.deadline_us)  # fmt: skip
        known = [at for at in others if at is not None]
        return min([*silent, *known], default=self.now_us + keepalive_us)

    def _at(self, now_us: int) -> None:
        """It is so late. A broker that was asleep or busy itself blames nobody for being silent."""
        missed_us = now_us - self.now_us
        self.now_us = now_us
        if missed_us > self.settings.keepalive_us:
            for link in self._links.values():
                link.heard_us += missed_us

    # ---- links

    def hang_up(self, link: Link, reason: str) -> None:
        """Close a connection from this side."""
        if self._links.pop(link.number, None) is not None:
            self._forget(link)  # first: it may answer what was said before, and Bye is last
            self.output.close(link.number, reason)

    def _forget(self, link: Link) -> None:
        if link.name:
            self.neighbours.leave(link)
        elif link.publisher:
            self.clients.leave(link)

    def _take_letter(self, link: Link, letter: Letter) -> None:
        if link.publisher:
            self.traffic.publish(link, letter)
        elif link.name:
            self.traffic.pass_on(link, letter)
        else:
            raise BrokenFrame("a message before the handshake; say Hello first")

    def _take_run(self, link: Link, run: Run) -> None:
        if isinstance(run, Forwarded):
            self.traffic.pass_on_run(link, run)
        else:
            self.traffic.publish_run(link, run)

    def _take_word(self, link: Link, word: Word) -> None:
        if isinstance(word, Ping):
            self.output.say(link.number, Pong(word.number))
        elif isinstance(word, Pong):
            pass
        elif isinstance(word, Bye):
            self.hang_up(link, f"the other end said: {word.reason}")
        elif link.publisher:
            self.clients.hear(link, word)
        elif link.name:
            self.neighbours.hear(link, word)
        else:
            self._shake_hands(link, word)

    def _shake_hands(self, link: Link, word: Word) -> None:
        if isinstance(word, Hello) and link.pending is None and word.role == "client":
            self.clients.welcome(link, word)
            link.frames.limits = self.settings.limits
            link.frames.scans = {Kind.PUBLISH: scan}
        elif isinstance(word, Hello) and link.pending is None:
            secrets = {name: n.secret for name, n in self.settings.neighbours.items()}
            nonce = self._random(NONCE_BYTES)
            link.pending, welcome = answer(self.name, word, secrets, nonce)
            self.output.say(link.number, welcome)
        elif isinstance(word, Welcome) and isinstance(link.pending, Dialling):
            self.output.say(link.number, link.pending.welcome(word))
            self._join(link, link.pending.other)
        elif isinstance(word, Confirm) and isinstance(link.pending, Answering):
            link.pending.confirm(word)
            self._join(link, link.pending.other)
        else:
            raise BrokenFrame(f"{type(word).__name__} is no part of a handshake; say Hello first")

    def _join(self, link: Link, name: str) -> None:
        link.frames.limits = self.settings.limits
        link.frames.scans = {Kind.FORWARD: scan_forwards}
        self.neighbours.join(link, name)

    def welcome(self, link: Link) -> None:
        """The answer to a client whose identity is known."""
        assert link.identity is not None
        self.output.say(
            link.number,
            Welcome(
                VERSION,
                self.name,
                link.identity.name,
                self.deposit.last_number(link.publisher),
                3 * self.settings.keepalive_us,
            ),
        )

    @property
    def links(self) -> dict[int, Link]:
        return self._links
