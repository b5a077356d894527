"""A network of link-state databases: FIFO links with random delays, cuts, crashes.

It does what the broker core does with them. Control messages travel encoded, as on the wire.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from typing import Any

import msgspec

from palio.protocol.policies.broker_record import DurableFact
from palio.protocol.policies.link_state import LinkStateDatabase, LinkStateSettings
from palio.protocol.policies.state_parts import StateAssembly, is_large, state_parts
from palio.protocol.wire.control import (
    ControlMessage,
    Digest,
    Durable,
    LinkState,
    LinkStates,
    Missing,
)
from palio.protocol.wire.parts import digest_parts

SETTINGS = LinkStateSettings(refresh_us=20_000, age_us=60_000)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ControlMessage).decode
_read_state = msgspec.msgpack.Decoder(LinkState).decode


class LinkStateNetwork:
    """Brokers by name; links are pairs of names, the smaller first."""

    def __init__(self, names: Iterable[str], rng: random.Random, epochs: str = "e0") -> None:
        self.rng = rng
        self.now_us = 1_000_000
        self.brokers: dict[str, LinkStateDatabase] = {}
        self.stores: dict[str, dict[str, Any]] = {}
        self.links: dict[tuple[str, str], tuple[float, float]] = {}
        self.queues: dict[tuple[str, str], deque[bytes]] = {}
        self.sent: list[ControlMessage] = []
        self.assemblies: dict[tuple[str, str], StateAssembly] = {}
        self.digests: dict[tuple[str, str], list[Any]] = {}
        for name in names:
            self.stores[name] = {"epoch": epochs, "facts": {}, "own": {}, "number": 0}
            self.start(name)

    # ---- events

    def start(self, name: str, *, clock_us: int | None = None) -> None:
        """Start a broker with the content of its store."""
        store = self.stores[name]
        number = max(store["number"], self.now_us if clock_us is None else clock_us)
        made = self.brokers[name] = LinkStateDatabase(name, store["epoch"], number, SETTINGS)
        for fact in store["facts"].values():
            made.restore(_read_state(fact))
        for text, durable in store["own"].items():
            made.set_durable(text, durable)
        self.flood_news(name)

    def lose_disk(self, name: str, epoch: str) -> None:
        self.stores[name] = {"epoch": epoch, "facts": {}, "own": {}, "number": 0}

    def crash(self, name: str) -> None:
        """Stop a broker; its neighbours see closed connections."""
        del self.brokers[name]
        for link in [link for link in self.links if name in link]:
            self.cut(*link)

    def join(self, a: str, b: str, weight: float = 1.0, back: float | None = None) -> None:
        """Establish a link; its ends may announce different weights."""
        u, v = min(a, b), max(a, b)
        self.links[u, v] = (weight, weight if back is None else back)
        for x, y in ((u, v), (v, u)):
            self.queues[x, y] = deque()
        for x, y in ((u, v), (v, u)):
            self._relink(x)
            self.flood_news(x)
            self.assemblies[x, y] = StateAssembly()
            for part in digest_parts(self.brokers[x].digest()):
                self.send(x, y, part)

    def cut(self, a: str, b: str) -> None:
        u, v = min(a, b), max(a, b)
        del self.links[u, v]
        for x, y in ((u, v), (v, u)):
            del self.queues[x, y]
            self.digests.pop((x, y), None)
            if x in self.brokers:
                self._relink(x)
                self.flood_news(x)

    def _relink(self, name: str) -> None:
        mine = {}
        for (u, v), (there, back) in self.links.items():
            if name in (u, v):
                mine[v if name == u else u] = there if name == u else back
        self.brokers[name].set_links(mine)

    def want(self, name: str, add: Iterable[str] = (), remove: Iterable[str] = ()) -> None:
        self.brokers[name].want(add, remove)

    def set_durable(self, name: str, subscription: str, durable: Durable | None) -> None:
        self.brokers[name].set_durable(subscription, durable)
        own = self.stores[name]["own"]
        own.pop(subscription, None)
        if durable is not None:
            own[subscription] = durable

    # ---- what the broker core does

    def neighbours(self, name: str) -> list[str]:
        return [v if u == name else u for u, v in self.links if name in (u, v)]

    def send(self, x: str, y: str, message: ControlMessage) -> None:
        self.sent.append(message)
        self.queues[x, y].append(_encode(message))

    def flood_news(self, name: str) -> None:
        """Flood the changes of a broker's own state."""
        state = self.brokers[name].news(self.now_us)
        if state is not None:
            self.stores[name]["number"] = state.number
            self.flood(name, state)

    def flood(self, name: str, state: LinkState, but: str = "") -> None:
        for other in self.neighbours(name):
            if other != but and is_large(state):
                self._send_whole(name, other, (state.broker,))
            elif other != but:
                self.send(name, other, LinkStates((state,)))

    def step(self) -> bool:
        """Deliver one control message; False: none is under way."""
        ready = [link for link, queue in self.queues.items() if queue]
        if not ready:
            return False
        x, y = self.rng.choice(ready)
        self.now_us += self.rng.randrange(3)
        self._receive(y, x, _decode(self.queues[x, y].popleft()))
        return True

    def _receive(self, name: str, sender: str, message: ControlMessage) -> None:
        broker = self.brokers[name]
        if isinstance(message, Digest):
            digest = self.digests.setdefault((sender, name), [])
            digest += message.known
            if not message.more:
                self._send_whole(name, sender, broker.newer_than(digest))
                digest.clear()
        elif isinstance(message, Missing):
            self._send_whole(name, sender, message.brokers)
        elif isinstance(message, LinkStates):
            for state in self._complete(sender, name, message):
                heard = broker.hear(state, self.now_us)
                if heard.is_missing:
                    self.send(name, sender, Missing((state.broker,)))
                if heard.is_new:
                    self.flood(name, state, but=sender)
                    self._keep(name, state.broker, heard.removed, heard.added)
        self.flood_news(name)

    def _send_whole(self, name: str, other: str, brokers: Iterable[str]) -> None:
        for broker in brokers:
            state = self.brokers[name].whole(broker)
            for part in () if state is None else state_parts(state):
                self.send(name, other, LinkStates((part,)))

    def _complete(self, x: str, y: str, message: LinkStates) -> list[LinkState]:
        """The states that are complete with this message."""
        assembly, found = self.assemblies[x, y], []
        for state in message.states:
            assert assembly.continues(state)
            complete = assembly.add(state, {})
            if complete is not None:
                found.append(complete[0])
        return found

    def _keep(
        self,
        name: str,
        broker: str,
        removed: tuple[DurableFact, ...],
        added: tuple[DurableFact, ...],
    ) -> None:
        if removed or added:
            facts = self.brokers[name].facts(broker)
            self.stores[name]["facts"][broker] = _encode(facts)

    def settle(self) -> None:
        """Deliver until no control message is under way."""
        while self.step():
            pass

    def quiet(self, for_us: int = 0) -> None:
        """Let time pass, and deliver all that is sent meanwhile."""
        end = self.now_us + for_us
        for name in self.brokers:
            self.flood_news(name)
        self.settle()
        while self.now_us < end:
            self.now_us = min(end, self.now_us + 5_000)
            for name, broker in self.brokers.items():
                broker.wake(self.now_us)
                if self.now_us >= broker.deadline_us:
                    self.flood_news(name)
            self.settle()

    # ---- the law

    def connected(self, name: str) -> set[str]:
        seen, waiting = {name}, [name]
        while waiting:
            for other in self.neighbours(waiting.pop()):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return seen

    def check(self) -> None:
        """Connected brokers know each other's links, filters and durable subscriptions."""
        for name, broker in self.brokers.items():
            here = self.connected(name)
            links = {
                (u, v, max(weights)) for (u, v), weights in self.links.items() if {u, v} <= here
            }
            net = broker.topology()
            assert links == set(net.edges if net is not None else ())
            facts = {fact for fact in broker.durables() if fact.broker in here}
            for other in self.brokers:
                assert broker.reachable(other) == (other in here)
                if other in here:
                    mine = set(self.brokers[other].wanted(other).filters)
                    assert set(broker.wanted(other).filters) == mine
            assert facts == {
                DurableFact(other, *entry)
                for other in here
                for entry in self.stores[other]["own"].items()
            }
