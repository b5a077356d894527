"""The landscape: what a broker knows of all brokers, by link-state flooding.

    own links, filters, durable facts ──news──▶ State ──▶ all neighbours
    State from a neighbour ──hear──▶ new: on to all other neighbours │ old: nothing │ its base is missing
    a new link: Digest ──newer_than──▶ States

A broker floods its own state under numbers that only grow; what is said later wins. Mostly it says
what changed since the number before, and who has not got that asks for the whole. What is known of
a broker is its record (`records.py`); who was not heard for `age_us` is no longer on the map.

The map has the links that both ends say, as far as they lead here. Durable facts never age: their
broker takes them back, or an operator does (`forget`).

What always holds: when all have heard a broker's last number, all know the same of it, since a
change applies to its base only, and a number is used once. Numbers are times where they can be, so
that not even the lives of a broker before and after a crash share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from palio.errors import InvalidTopology
from palio.model.predicate import Filter, Predicate
from palio.protocol.frames import BrokenFrame
from palio.protocol.overlay.records import (
    WEIGHT_MAX,
    WEIGHT_MIN,
    Fact,
    Record,
    Standing,
    checked,
    filters_of,
    toggle,
)
from palio.protocol.words import Digest, Durable, Place, State, States
from palio.routing.topology import Topology

_WORD_BYTES = 1 << 20  # of text in one word of states, if it holds several
_NUMBER_MAX = 1 << 62
_CONTEST_US = 1_000_000

Changes: TypeAlias = dict[str, dict[Filter, bool]]
"""For brokers the filters that they want now (True), or no longer."""


class LandscapeSettings(msgspec.Struct, frozen=True):
    refresh_us: int = 20_000_000
    """A broker repeats itself this often."""
    age_us: int = 60_000_000
    """Who was not heard for so long is not on the map."""


class Heard(NamedTuple):
    """What a state was to the landscape."""

    is_new: bool = False
    """It goes on to all other neighbours."""
    is_missing: bool = False
    """It is a change on something that is not here: ask for the whole."""
    removed: tuple[Fact, ...] = ()
    added: tuple[Fact, ...] = ()


class Landscape:
    """The link-state database of one broker.

    Whoever changes it, or lets it hear something, asks for `news` afterwards.

    >>> ann, bob = (Landscape(name, f"{name}'s disk", 0) for name in ("ann", "bob"))
    >>> ann.set_links({"bob": 1.0}); bob.set_links({"ann": 1.0}); bob.want(["x > 1"])
    >>> ann.hear(bob.news(1000), 1001).is_new
    True
    >>> ann.topology(), ann.wanted("bob")
    (Topology(2 nodes, 1 edges), Predicate(x > 1))
    """

    def __init__(
        self, me: str, epoch: str, number: int, settings: LandscapeSettings | None = None
    ) -> None:
        """Numbers go on after `number`: the last stored one or the time, whichever is larger."""
        self.me = me
        self.version = 0
        """Grows when the map or anybody's filters may have changed."""
        self._settings = settings or LandscapeSettings()
        self._number = number
        self._mine = Record(epoch, 0, Standing.LIVE)
        self._records = {me: self._mine}
        self._flooded_us: int | None = None
        self._whole_us: int | None = 0  # when to say everything
        self._is_linked_anew = False
        self._wanted_news: dict[str, bool] = {}  # since the last flooded number
        self._durable_news: dict[str, Durable | None] = {}
        self._ages_us: int | None = None  # nobody ages before
        self._followers: list[Changes] = []
        self._edges: dict[tuple[str, str], float] = {}
        self._topology: Topology | None = None
        self._is_map_stale = False

    # ---- what this broker says of itself

    def set_links(self, links: Mapping[str, float]) -> None:
        """These are the neighbours now, with the weights of the links."""
        for neighbour, weight in links.items():
            if neighbour == self.me or not WEIGHT_MIN <= weight <= WEIGHT_MAX:
                raise InvalidTopology(
                    f"a link from {self.me!r} to {neighbour!r} of weight {weight!r}; links lead to "
                    f"others and weigh {WEIGHT_MIN} to {WEIGHT_MAX:,.0f}"
                )
        if self._mine.links != links:
            self._mine.links = dict(links)
            self._is_linked_anew = True
            self._change_map()

    def want(self, add: Iterable[str] = (), remove: Iterable[str] = ()) -> None:
        """Filters that live subscriptions here ask for, reduced, and those that none does now."""
        mine = self._mine.wanted
        gone = [text for text in dict.fromkeys(remove) if text in mine]
        new = {text: filters_of(text) for text in add if text not in mine or text in gone}
        # what comes and goes again stays in the news: `whole` may have told it to somebody meanwhile
        self._wanted_news.update(dict.fromkeys(gone, False))
        self._wanted_news.update(dict.fromkeys(new, True))
        self._change_wanted(self.me, self._mine, gone, new)

    def set_durable(self, name: str, durable: Durable | None) -> None:
        """A durable subscription here is this now; None: it has ended."""
        mine = self._mine.durable
        if mine.get(name) == durable:
            return
        if durable is None:
            del mine[name]
        else:
            filters_of(durable.predicate)
            mine[name] = durable
        self._durable_news[name] = durable

    def news(self, now_us: int) -> State | None:
        """The state to flood: something has changed, or it is time to repeat."""
        changes = len(self._wanted_news) + len(self._durable_news)
        if not changes and not self._is_linked_anew and now_us < self._speaks_us:
            return None
        mine = self._mine
        base = mine.number
        self._number = mine.number = max(self._number + 1, now_us)
        if self._whole_us is not None or changes > len(mine.wanted) + len(mine.durable):
            state = self._state(self.me)
        else:
            news, facts = self._wanted_news, self._durable_news
            state = State(
                *(self.me, mine.epoch, mine.number, base, tuple(mine.links.items())),
                wanted=tuple(text for text, is_wanted in news.items() if is_wanted),
                unwanted=tuple(text for text, is_wanted in news.items() if not is_wanted),
                durable={name: fact for name, fact in facts.items() if fact is not None},
                undurable=tuple(name for name, fact in facts.items() if fact is None),
            )
        self._flooded_us, self._whole_us, self._is_linked_anew = now_us, None, False
        self._wanted_news, self._durable_news = {}, {}
        return state

    # ---- what others say

    def hear(self, state: State, now_us: int) -> Heard:
        """Take what came from a neighbour; `BrokenFrame` if it makes no sense."""
        if not state.broker or not 0 <= state.base < state.number <= _NUMBER_MAX:
            raise BrokenFrame(
                f"a state of the broker {state.broker!r} with number {state.number} on {state.base}"
            )
        if state.broker == self.me:
            self._hear_of_myself(state)
            return Heard()
        known = self._records.get(state.broker)
        if known is not None and not known.is_older(state):
            return Heard()
        if state.base and (known is None or not known.has_base(state)):
            return Heard(is_missing=True)
        standing = Standing.FACTS if state.is_faded else Standing.LIVE
        return self._take(state, standing, now_us)

    def restore(self, state: State) -> None:
        """Know durable facts again that were kept over a restart (`facts`)."""
        known = self._records.get(state.broker)
        if state.broker != self.me and (known is None or known.is_older(state)):
            self._take(_faded(state), Standing.FACTS, 0)

    def forget(self, broker: str, now_us: int) -> tuple[State, tuple[Fact, ...]]:
        """An operator says that a broker is gone for good: the state to flood, the facts that go.

        Should the broker come back after all, it goes on above this state.
        """
        known = self._records.get(broker)
        if known is None or self.reachable(broker):
            why = "nobody knows it" if known is None else "it is there; end its subscriptions there"
            raise InvalidTopology(f"the broker {broker!r} cannot be forgotten: {why}")
        number = max(known.number + 1, now_us)
        state = State(broker, known.epoch, number, 0, (), is_faded=True)
        return state, self._take(state, Standing.FACTS, now_us).removed

    def wake(self, now_us: int) -> None:
        """Let age what was not heard for long."""
        if self._ages_us is None or now_us < self._ages_us:
            return
        self._ages_us = None
        for broker, record in self._records.items():
            if record.standing is not Standing.LIVE or record is self._mine:
                continue
            if now_us < record.heard_us + self._settings.age_us:
                self._watch(record)
                continue
            record.standing, record.links = Standing.AGED, {}
            self._change_wanted(broker, record, tuple(record.wanted), {})
            self._change_map()

    @property
    def deadline_us(self) -> int:
        """When to `wake` it, and to ask for `news`."""
        return min(self._speaks_us, self._ages_us or self._speaks_us)

    # ---- what others are told

    def digest(self) -> Digest:
        """What is known here. Where it is facts only, the number before stands: a whole state of the
        same number is welcome."""
        return Digest(
            tuple(
                (broker, known.epoch, known.number - (known.standing is Standing.FACTS))
                for broker, known in self._records.items()
                if known.number
            )
        )

    def newer_than(self, digest: Digest) -> list[States]:
        """What the sender of a digest does not have, in words of moderate size."""
        said = {broker: (number, epoch) for broker, epoch, number in digest.known}
        return self.whole(
            broker
            for broker, known in self._records.items()
            if (known.number, known.epoch) > said.get(broker, (0, ""))
        )

    def whole(self, brokers: Iterable[str]) -> list[States]:
        """All that is known of these brokers, in words of moderate size."""
        found: list[States] = []
        states: list[State] = []
        size = 0
        for broker in brokers:
            if broker not in self._records or not self._records[broker].number:
                continue
            state = self._state(broker)
            more = _text_bytes(state)
            if states and size + more > _WORD_BYTES:
                found.append(States(tuple(states)))
                states, size = [], 0
            states.append(state)
            size += more
        return [*found, States(tuple(states))] if states else found

    def facts(self, broker: str) -> State:
        """The durable facts of a broker, to be kept in the store for `restore`."""
        return _faded(self._state(broker))

    # ---- what follows from it

    def topology(self) -> Topology | None:
        """The map: the brokers that links lead to, which both ends say; None: this one is alone.

        A link weighs what the end says that says more. It is the same object while the links are.
        """
        if self._is_map_stale:
            self._is_map_stale = False
            edges = self._reached()
            if edges != self._edges:
                self._edges = edges
                found = [(u, v, weight) for (u, v), weight in edges.items()]
                self._topology = Topology.from_edges(found) if found else None
        return self._topology

    def reachable(self, broker: str) -> bool:
        net = self.topology()
        return broker == self.me or (net is not None and broker in net)

    def wanted(self, broker: str) -> Predicate:
        """What live subscriptions at a broker ask for, as far as it is known."""
        known = self._records.get(broker)
        return Predicate(tuple(known.filters) if known else ())

    def durables(self) -> Iterator[Fact]:
        """All durable subscriptions of the network, those here included."""
        for broker, known in self._records.items():
            for name, durable in known.durable.items():
                yield Fact(broker, name, durable)

    def places(self) -> tuple[Place, ...]:
        """All brokers that are known, for people."""
        return tuple(
            Place(
                broker,
                tuple(sorted(known.links.items())),
                *(len(known.wanted), len(known.durable), self.reachable(broker)),
            )
            for broker, known in sorted(self._records.items())
        )

    def follow(self) -> Changes:
        """What others want and, from now on, every change of it. Whoever follows clears it."""
        changes = {
            broker: dict.fromkeys(known.filters, True)
            for broker, known in self._records.items()
            if known.filters and known is not self._mine
        }
        self._followers.append(changes)
        return changes

    # ---- within

    @property
    def _speaks_us(self) -> int:
        """When this broker says something even if nothing changes."""
        refresh = (self._flooded_us or 0) + self._settings.refresh_us
        return refresh if self._whole_us is None else min(self._whole_us, refresh)

    def _hear_of_myself(self, state: State) -> None:
        """Somebody remembers more than I have said in this life: go on above it.

        Not at once if I have just said something: should two brokers have one name, they contest it
        for ever, but slowly.
        """
        if (state.number, state.epoch) > (self._mine.number, self._mine.epoch):
            self._number = max(self._number, state.number)
            said_us = self._flooded_us
            self._whole_us = 0 if said_us is None else said_us + _CONTEST_US

    def _take(self, state: State, standing: Standing, now_us: int) -> Heard:
        """Make a state that is checked to be newer the known one."""
        broker, known = state.broker, self._records.get(state.broker)
        new = checked(state, known)
        if known is None:
            known = self._records[broker] = Record(state.epoch, 0, standing)
        gone = state.unwanted if state.base else [text for text in known.wanted if text not in new]
        removed, added = known.tell(state)
        self._change_wanted(broker, known, gone, new)
        links = dict(state.links)
        if links != known.links:
            known.links = links
            self._change_map()
        known.epoch, known.number, known.standing = state.epoch, state.number, standing
        known.heard_us = now_us
        if standing is Standing.LIVE:
            self._watch(known)
        return Heard(True, False, removed, added)

    def _watch(self, record: Record) -> None:
        ages = record.heard_us + self._settings.age_us
        self._ages_us = ages if self._ages_us is None else min(self._ages_us, ages)

    def _change_wanted(
        self,
        broker: str,
        record: Record,
        gone: Iterable[str],
        new: Mapping[str, tuple[Filter, ...]],
    ) -> None:
        changes = record.want(gone, new)
        if changes:
            self.version += 1
        if not changes or record is self._mine:
            return
        for follower in self._followers:
            known = follower.setdefault(broker, {})
            for found, is_wanted in changes.items():
                toggle(known, found, is_wanted)

    def _change_map(self) -> None:
        self._is_map_stale = True
        self.version += 1

    def _reached(self) -> dict[tuple[str, str], float]:
        """The links that both ends say, as far as one comes on them from here."""
        edges: dict[tuple[str, str], float] = {}
        seen, waiting = {self.me}, [self.me]
        while waiting:
            u = waiting.pop()
            for v, weight in self._records[u].links.items():
                other = self._records.get(v)
                if other is None or u not in other.links:
                    continue
                edges[min(u, v), max(u, v)] = max(weight, other.links[u])
                if v not in seen:
                    seen.add(v)
                    waiting.append(v)
        return edges

    def _state(self, broker: str) -> State:
        """All that is known of a broker, as it is said to others."""
        known = self._records[broker]
        return State(
            *(broker, known.epoch, known.number, 0, tuple(known.links.items())),
            wanted=tuple(known.wanted),
            durable=dict(known.durable),
            is_faded=known.standing is not Standing.LIVE,
        )


def _faded(state: State) -> State:
    return msgspec.structs.replace(state, links=(), wanted=(), is_faded=True)


def _text_bytes(state: State) -> int:
    """About how long a state is on the wire."""
    texts = sum(map(len, state.wanted))
    return texts + sum(len(name) + len(d.predicate) + 20 for name, d in state.durable.items())
