"""A state machine of whole networks: random trees, anything in any order, packets in between.

All the time: formula (1) at every router, nothing to the uninterested, nothing twice. When quiet:
both ends of each link agree, and of what was published since it was quiet before, everybody who
wanted it all the time got it. In between, packets of different links overtake each other.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from palio import Advertisement, Constraint, Filter, Message, covers, parse
from palio.routing import (
    Advertise,
    Publish,
    Restate,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from tests.routing.network import (
    Client,
    Network,
    check_clients,
    check_destinations,
    check_ends,
    check_forwards,
)
from tests.seeds import sizes

TEXTS = ["", "a", "b", "ab", "ba", "aba", "abb"]
NUMBERS = st.builds(
    Constraint,
    st.sampled_from(["x", "y"]),
    st.sampled_from(["<", ">", "=", "!="]),
    st.integers(0, 4),
)
STRINGS = st.builds(
    Constraint,
    st.just("s"),
    st.sampled_from(["prefix", "suffix", "contains", "=", "<", ">", "!=", "not contains"]),
    st.sampled_from(TEXTS),
)
ANY = st.builds(Constraint, st.sampled_from(["x", "y", "s"]), st.sampled_from(["any", "absent"]))
CONSTRAINTS = st.one_of(NUMBERS, NUMBERS, STRINGS, STRINGS, ANY)
# Covering is not complete on these: each line covers the next, and is not seen to cover the last.
CHAINS = [
    *("s > 'a'", "s LIKE 'a%' AND s != 'a'", "s LIKE 'a%' AND s LIKE '%ab%'"),
    *("s > 'ab'", "s NOT LIKE 'a%' AND s > 'a'", "s NOT LIKE '%a%' AND s >= 'ab'"),
    "s NOT LIKE 'a%' AND s >= 'abb'",
    "s > 'a' AND s NOT LIKE 'a%' AND s NOT LIKE '%aba'",
    "s NOT LIKE '%a%' AND s >= 'ab'",
]
CHAINED = [filter for text in CHAINS for filter in parse(text)]
TURNED = [Filter(filter.constraints[::-1]) for filter in CHAINED]
FILTERS = st.one_of(
    st.lists(CONSTRAINTS, max_size=3).map(lambda found: Filter(tuple(found))),
    st.sampled_from(CHAINED + TURNED),
)
ADVERTISEMENTS = st.lists(st.one_of(CONSTRAINTS, ANY), min_size=1, max_size=5).map(
    lambda found: Advertisement(tuple(found))
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={"x": st.integers(0, 4), "y": st.integers(0, 4), "s": st.sampled_from(TEXTS)},
).map(Message)


def test_chains_are_not_seen_through() -> None:
    """Or the machine below would not try what it is to try."""
    for wide, middle, narrow in zip(CHAINED[::3], CHAINED[1::3], CHAINED[2::3], strict=True):
        assert covers(wide, middle)
        assert covers(middle, narrow)
        assert not covers(wide, narrow)


class Networks(RuleBasedStateMachine):
    """What clients and links may do."""

    @initialize(
        parents=st.lists(st.integers(0, 6), min_size=1, max_size=7),
        places=st.lists(st.integers(0, 7), min_size=2, max_size=6),
        advertisements=st.booleans(),
        below=st.integers(0, 127) | st.sampled_from([0, 127]),
    )
    def start(
        self, parents: list[int], places: list[int], advertisements: bool, below: int
    ) -> None:
        names = [f"r{n}" for n in range(len(parents) + 1)]
        edges = [(names[p % (n + 1)], names[n + 1]) for n, p in enumerate(parents)]
        if advertisements:  # then routers below a master have no neighbours
            below = 127 * (below % 2)
        slaves = [name for n, name in enumerate(names[1:]) if below >> n & 1]
        self.network = Network(names, edges, advertisements=advertisements, slaves=slaves)
        self.known: list[Filter] = [Filter(())]  # to be used again
        self.offers: list[Advertisement] = []
        self.number = 0
        self.names = names
        for place in places:
            self.network.join(f"c{len(self.network.clients)}", names[place % len(names)])
        self.joined = len(places)
        self.network.run()
        self.forget()

    def forget(self) -> None:
        """It is quiet: a new period begins."""
        self.published: list[tuple[Client, Publish, frozenset[str]]] = []
        self.restless: set[str] = set()  # clients that changed what they want in this period
        self.unsettled: set[str] = set()  # clients that changed what they advertise
        self.dropped: list[Publish] = []

    def client(self, number: int) -> Client | None:
        clients = list(self.network.clients.values())
        return clients[number % len(clients)] if clients else None

    # ---- what clients do

    @rule(number=st.integers(0, 9), filter=FILTERS)
    def subscribe(self, number: int, filter: Filter) -> None:
        self.known = [*self.known[-20:], filter]
        self.want(number, Subscribe(filter))

    @rule(number=st.integers(0, 9), again=st.integers(0, 20))
    def subscribe_as_others(self, number: int, again: int) -> None:
        self.want(number, Subscribe(self.known[again % len(self.known)]))

    @rule(number=st.integers(0, 9), again=st.integers(0, 20))
    def unsubscribe(self, number: int, again: int) -> None:
        self.want(number, Unsubscribe(self.known[again % len(self.known)]))

    @rule(number=st.integers(0, 9), again=st.integers(0, 9))
    def unsubscribe_own(self, number: int, again: int) -> None:
        client = self.client(number)
        if client and client.wanted:
            self.want(number, Unsubscribe(client.wanted[again % len(client.wanted)]))

    @rule(number=st.integers(0, 9), filters=st.lists(FILTERS, max_size=3))
    def restate(self, number: int, filters: list[Filter]) -> None:
        client = self.client(number)
        if client:
            self.want(number, Restate(tuple(filters), tuple(client.advertised)))

    def want(self, number: int, packet: Subscribe | Unsubscribe | Restate) -> None:
        client = self.client(number)
        if client:
            self.restless.add(client.name)
            self.network.tell(client, packet)

    @rule(number=st.integers(0, 9), advertisement=ADVERTISEMENTS)
    def advertise(self, number: int, advertisement: Advertisement) -> None:
        self.offers = [*self.offers[-9:], advertisement]
        self.offer(number, Advertise(advertisement))

    @rule(number=st.integers(0, 9))
    def advertise_everything(self, number: int) -> None:
        everything = Advertisement(tuple(Constraint(name, "any") for name in "xys"))
        self.offer(number, Advertise(everything))

    @rule(number=st.integers(0, 9), again=st.integers(0, 9))
    def unadvertise(self, number: int, again: int) -> None:
        if self.offers:
            self.offer(number, Unadvertise(self.offers[again % len(self.offers)]))

    def offer(self, number: int, packet: Advertise | Unadvertise) -> None:
        client = self.client(number)
        if client:
            self.unsettled.add(client.name)
            self.network.tell(client, packet)

    @rule(number=st.integers(0, 9))
    def leave(self, number: int) -> None:
        client = self.client(number)
        if client and len(self.network.clients) > 1:
            self.restless.add(client.name)
            self.unsettled.add(client.name)
            self.network.leave(client)

    @rule(place=st.integers(0, 7))
    def arrive(self, place: int) -> None:
        name = f"c{self.joined}"
        self.joined += 1
        self.restless.add(name)
        self.unsettled.add(name)
        self.network.join(name, self.names[place % len(self.names)])

    @rule(number=st.integers(0, 9), message=MESSAGES)
    def publish(self, number: int, message: Message) -> None:
        for router in self.network.routers.values():
            check_destinations(router, message)
        client = self.client(number)
        if client and (not self.network.advertisements or client.may_send(message)):
            self.number += 1
            packet = Publish(message, client.name, self.number)
            wanting = frozenset(
                c.name
                for c in self.network.clients.values()
                if c is not client and c.wants(message)
            )
            self.published.append((client, packet, wanting))
            self.network.tell(client, packet)

    # ---- what links do

    @precondition(lambda self: self.network.waiting())
    @rule(choices=st.lists(st.integers(0, 99), min_size=1, max_size=8))
    def advance(self, choices: list[int]) -> None:
        for choice in choices:
            waiting = self.network.waiting()
            if waiting:
                self.network.advance(waiting[choice % len(waiting)])

    @rule(choice=st.integers(0, 9))
    def join_again(self, choice: int) -> None:
        parent, child = self.network.edges[choice % len(self.network.edges)]
        for link in ((parent, child), (child, parent)):
            self.dropped += [p for p in self.network.queues[link] if isinstance(p, Publish)]
        self.network.connect(parent, child)

    @rule()
    def quiet(self) -> None:
        self.network.run()
        check_ends(self.network)
        got = self.network.got
        for publisher, packet, wanting in self.published:
            if packet in self.dropped or publisher.name in self.unsettled:
                continue
            reached = {name for name, what in got if what == packet}
            assert wanting - self.restless <= reached, (wanting - reached, packet)
        self.network.got = []
        self.forget()

    @invariant()
    def routers_are_right(self) -> None:
        for router in self.network.routers.values():
            check_forwards(router, self.network.advertisements)
        check_clients(self.network)

    def teardown(self) -> None:
        if hasattr(self, "network"):
            self.quiet()


class ChainedNetworks(Networks):
    """The same with few filters, most of them in chains, so that they meet more often."""

    @initialize()
    def take_chains(self) -> None:
        self.known = [
            *CHAINED[:6],
            *TURNED[1:3],
            *parse("x < 3"),
            *parse("y < 3 OR x < 3 AND y < 3"),
        ]

    @rule(number=st.integers(0, 9), filter=st.sampled_from(CHAINED[:6] + TURNED[:6]))
    def subscribe_in_chains(self, number: int, filter: Filter) -> None:
        self.want(number, Subscribe(filter))

    def subscribe(self, number: int, filter: Filter) -> None:
        """Only those that are known."""


class QuietNetworks(Networks):
    """The same, and every step waits until the network is quiet."""

    @invariant()
    def wait(self) -> None:
        self.quiet()


@sizes(20, 120)
@pytest.mark.parametrize("machine", [Networks, ChainedNetworks, QuietNetworks])
def test_networks_deliver_to_exactly_the_interested(machine: type[Networks], size: int) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=size, stateful_step_count=40, deadline=None)
    )


PROBES = [
    Message({"x": x, "y": y, "s": text}) for x, y, text in [(0, 0, "ab"), (4, 0, "bb"), (2, 4, "a")]
]


@settings(max_examples=60, deadline=None)
@given(
    watched=st.lists(FILTERS, min_size=1, max_size=3),
    steps=st.lists(st.tuples(st.integers(0, 2), FILTERS, st.booleans()), min_size=2, max_size=12),
    advertisements=st.booleans(),
)
def test_who_changes_nothing_misses_nothing(
    watched: list[Filter], steps: list[tuple[int, Filter, bool]], advertisements: bool
) -> None:
    """r0 - r1 - r2: others come and go at r0 and r1, and r2 publishes after every single packet.

    This is what `instead` is for: a filter and what it had hidden change places in one instant.
    """
    names = ["r0", "r1", "r2"]
    network = Network(names, pairwise(names), advertisements=advertisements)
    publisher = network.join("publisher", "r2")
    everything = Advertisement(tuple(Constraint(name, "any") for name in "xys"))
    network.tell(publisher, Advertise(everything))
    watcher = network.join("watcher", "r0")
    network.run()
    for item in watched:
        network.tell(watcher, Subscribe(item))
    network.run()
    others = [network.join(f"c{n}", names[n % 2]) for n in range(3)]
    number = 0

    def probe() -> None:
        nonlocal number
        for message in filter(watcher.wants, PROBES):
            number += 1
            packet = Publish(message, "publisher", number)
            network.tell(publisher, packet)
            for link in (("r2", "r1"), ("r1", "r0")):  # which hold nothing but messages
                while network.queues[link]:
                    network.advance(link)
            assert ("watcher", packet) in network.got

    for who, item, is_said in steps:
        other = others[who]
        known = other.wanted[0] if other.wanted else item
        network.tell(other, Subscribe(item) if is_said else Unsubscribe(known))
        probe()
        for link in (("r0", "r1"), ("r1", "r2")):
            while network.queues[link]:
                network.advance(link)
                probe()
