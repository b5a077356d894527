"""The other brokers: what is said to neighbours and heard from them.

    a link is there   Digest both ways; States that are newer; the router's Restate (forwarding)
    something changes States to all neighbours; those of others go on to all but the sender
    a link is gone    the landscape says so to all; routes change; streams send again

A durable subscription of another broker is learnt from its State, kept in the store, and outlives
the broker's absence: messages wait for it here (deposit.py).
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from palio.model.language import parse
from palio.protocol.frames import BrokenFrame, word_frame
from palio.protocol.homes import matching
from palio.protocol.onward import name_of, peer_of
from palio.protocol.overlay.records import Fact
from palio.protocol.packets import from_bytes, to_bytes
from palio.protocol.runs import Written
from palio.protocol.words import (
    Asked,
    Credit,
    Digest,
    Got,
    Missing,
    Said,
    State,
    States,
    Told,
    Word,
)

if TYPE_CHECKING:
    from palio.protocol.broker import Broker, Link


_KNOWN = "known/"


class Neighbours:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._links: dict[str, Link] = {}
        self._waiting: dict[str, deque[bytes]] = {}
        self._carrying: dict[str, deque[bytes]] = {}
        self._version = -1
        self._reachable: set[str] = set()
        for _, kept in broker.store.scan(_KNOWN):
            broker.landscape.restore(msgspec.msgpack.decode(kept, type=State))
        for fact in broker.landscape.durables():
            if fact.broker != broker.name:
                self._learn(fact)

    @property
    def names(self) -> list[str]:
        return list(self._links)

    # ---- links

    def join(self, link: Link, name: str) -> None:
        """A neighbour has proved who it is."""
        broker = self._broker
        known = self._links.get(name)
        if known is not None:
            if self._is_preferred(known, link, name):
                broker.hang_up(link, f"broker {broker.name!r} keeps the connection that it has")
                return
            broker.hang_up(known, f"broker {name!r} has a newer connection")
        link.name, link.pending = name, None
        link.credit = broker.settings.link_credit
        self._links[name] = link
        self._waiting[name], self._carrying[name] = deque(), deque()
        broker.output.say(link.number, broker.landscape.digest())
        self._set_links()
        if broker.settings.is_forwarding:
            broker.traffic.flush()
            broker.live.join(peer_of(name))

    def _is_preferred(self, known: Link, new: Link, name: str) -> bool:
        """Does the older connection stay? When both ends have dialled at once, both keep what the
        smaller name has dialled; else the newer one tells that the older is dead."""
        is_crossed = (known.dialled is None) != (new.dialled is None)
        mine_first = self._broker.name < name
        is_fresh = self._broker.now_us - known.heard_us < self._broker.settings.keepalive_us
        return is_crossed and is_fresh and (known.dialled is not None) is mine_first

    def leave(self, link: Link) -> None:
        if self._links.get(link.name) is not link:
            return
        del self._links[link.name], self._waiting[link.name], self._carrying[link.name]
        self._set_links()
        if self._broker.settings.is_forwarding:
            self._broker.traffic.flush()
            self._broker.live.part(peer_of(link.name))

    def hang_up(self, name: str, reason: str) -> None:
        """A neighbour has sent what cannot be."""
        link = self._links.get(name)
        if link is not None:
            self._broker.hang_up(link, reason)

    def _set_links(self) -> None:
        neighbours = self._broker.settings.neighbours
        self._broker.landscape.set_links({name: neighbours[name].weight for name in self._links})

    def send(self, name: str, frame: bytes) -> bool:
        """A message to a neighbour, now or when it has room; the oldest that wait are dropped."""
        link = self._links.get(name)
        if link is None:
            return False
        if link.credit > 0 and not link.is_pressed:
            link.credit -= 1
            self._broker.output.write(link.number, frame)
            return True
        waiting = self._waiting[name]
        waiting.append(frame)
        if len(waiting) > self._broker.settings.waiting_max:
            waiting.popleft()
            return False
        return True

    def send_run(self, name: str, frames: Written) -> int:
        """The same for many; how many are on their way or wait."""
        link, count = self._links.get(name), len(frames.ends)
        if link is not None and link.credit >= count and not link.is_pressed:
            link.credit -= count
            self._broker.output.write(link.number, frames.data)
            return count
        pairs = pairwise([0, *frames.ends])
        return sum([self.send(name, frames.data[begin:end]) for begin, end in pairs])

    def carry(self, name: str, frame: bytes) -> bool:
        """The same for a durable message. The first that wait go first, and stay: the end of a
        stream is of no use before its beginning, and all that is dropped comes again."""
        link = self._links.get(name)
        if link is None:
            return False
        if link.credit > 0 and not link.is_pressed:
            link.credit -= 1
            self._broker.output.write(link.number, frame)
            return True
        carrying = self._carrying[name]
        if len(carrying) >= self._broker.settings.waiting_max:
            return False
        carrying.append(frame)
        return True

    def press(self, link: Link, pressed: bool) -> None:
        """While a link is pressed, messages wait as they do without credit; words do not."""
        link.is_pressed = pressed
        self._pay(link, 0)

    def say(self, name: str, word: Word) -> None:
        link = self._links.get(name)
        if link is not None:
            self._broker.output.say(link.number, word)

    # ---- words

    def hear(self, link: Link, word: Word) -> None:
        broker = self._broker
        if isinstance(word, Credit):
            self._pay(link, word.count)
        elif isinstance(word, Got):
            broker.traffic.route(word)
        elif isinstance(word, States):
            self._hear_states(link, word.states)
        elif isinstance(word, Digest):
            for states in broker.landscape.newer_than(word):
                broker.output.say(link.number, states)
        elif isinstance(word, Missing):
            for states in broker.landscape.whole(word.brokers):
                broker.output.say(link.number, states)
        elif isinstance(word, Said):
            broker.traffic.flush()
            broker.live.hear(peer_of(link.name), from_bytes(word.packet))
        elif isinstance(word, Asked | Told):
            broker.clients.explaining.hear(link, word)
        else:
            raise BrokenFrame(f"{type(word).__name__} is nothing that brokers say to each other")

    def _pay(self, link: Link, count: int) -> None:
        link.credit += count
        for waiting in (self._carrying[link.name], self._waiting[link.name]):
            while link.credit > 0 and waiting and not link.is_pressed:
                link.credit -= 1
                self._broker.output.write(link.number, waiting.popleft())

    def _hear_states(self, link: Link, states: tuple[State, ...]) -> None:
        broker = self._broker
        news, missing = [], []
        for state in states:
            heard = broker.landscape.hear(state, broker.now_us)
            if heard.is_missing:
                missing.append(state.broker)
            if heard.is_new:
                news.append(state)
            for fact in heard.removed:
                self._unlearn(fact)
            for fact in heard.added:
                self._learn(fact)
            if heard.removed or heard.added:
                self._keep(state.broker)
        if missing:
            broker.output.say(link.number, Missing(tuple(missing)))
        if news:
            self._flood(States(tuple(news)), link.name)

    def _flood(self, states: States, but: str = "") -> None:
        frame = word_frame(states)
        for name, link in self._links.items():
            if name != but:
                self._broker.output.write(link.number, frame)

    # ---- durable subscriptions elsewhere

    def _learn(self, fact: Fact) -> None:
        """Messages for it are kept here from now on, and sent to its broker."""
        broker, predicate = self._broker, parse(fact.durable.predicate)
        broker.traffic.flush()
        broker.traffic.want(fact.broker, fact.name, predicate.filters, True)
        broker.deposit.learn(
            fact.broker, fact.name, fact.durable, matching(predicate), broker.now_us
        )

    def _unlearn(self, fact: Fact) -> None:
        broker, predicate = self._broker, parse(fact.durable.predicate)
        broker.traffic.flush()
        broker.traffic.want(fact.broker, fact.name, predicate.filters, False)
        broker.deposit.unlearn(fact.broker, fact.name, broker.now_us)

    def forget(self, name: str) -> None:
        """An operator says that a broker is gone for good."""
        broker = self._broker
        state, facts = broker.landscape.forget(name, broker.now_us)
        for fact in facts:
            self._unlearn(fact)
        self._keep(name)
        self._flood(States((state,)))

    def _keep(self, name: str) -> None:
        """The durable subscriptions of a broker outlive a restart of this one."""
        kept = self._broker.landscape.facts(name)
        self._broker.store.put(f"{_KNOWN}{name}", msgspec.msgpack.encode(kept))

    # ---- a turn

    def flood(self) -> None:
        """Tell the others what has changed here."""
        broker = self._broker
        if broker.live.news:
            texts = {str(found): is_wanted for found, is_wanted in broker.live.news.items()}
            broker.live.news.clear()
            new = sorted(text for text, is_wanted in texts.items() if is_wanted)
            broker.landscape.want(new, sorted(texts.keys() - set(new)))
        packets, broker.live.packets = broker.live.packets, []
        for send in packets:
            self.say(name_of(send.peer), Said(to_bytes(send.packet)))
        state = broker.landscape.news(broker.now_us)
        if state is not None:
            self._flood(States((state,)))
        if broker.landscape.version != self._version:
            self._version = broker.landscape.version
            net = broker.landscape.topology()
            reachable = set(net.nodes) if net is not None else set()
            if reachable != self._reachable:
                self._reachable = reachable
                broker.deposit.reachable(sorted(reachable), broker.now_us)
