"""The 2000 paper, sections 2.4.1 (patterns) and 3.6 (matching patterns), claim by claim.

The network is a line of servers 1 - 2 - 3. The sources of a and b are at 3, that of c at 2; ann is a
client of 1.
"""

from __future__ import annotations

import pytest

import palio
from palio import Advertisement, Constraint, Message
from palio.routing import (
    Advertise,
    Event,
    Joined,
    Publish,
    Received,
    Restate,
    Role,
    Router,
    Subscribe,
    Unadvertise,
)
from palio.routing.patterns import Assembled, Monitor, Sieved, Task, Unwatch, Watch, parse


def offer(symbol: str) -> Advertisement:
    return Advertisement((Constraint("t", "=", symbol),))


class Servers:
    """A line of routers, and every packet between them in its order."""

    def __init__(self, *, advertisements: bool = True) -> None:
        self.routers = {n: Router(n, advertisements=advertisements) for n in "123"}
        self.said: list[tuple[str, str, object]] = []
        self.got: list[object] = []
        self.number = 0
        for a, b in (("1", "2"), ("2", "1"), ("2", "3"), ("3", "2")):
            self.routers[a].step(Joined(b, Role.NEIGHBOUR))
        for a, b in (("1", "2"), ("2", "1"), ("2", "3"), ("3", "2")):
            self.step(b, Received(a, Restate()))
        for router, client in (("1", "ann"), ("2", "cy"), ("3", "bob")):
            self.step(router, Joined(client))
        for symbol in "ab":
            self.step("3", Received("bob", Advertise(offer(symbol))))
        self.step("2", Received("cy", Advertise(offer("c"))))
        self.said.clear()

    def step(self, router: str, event: Event) -> None:
        queue = [(router, event)]
        for name, happened in queue:  # which grows
            for send in self.routers[name].step(happened):
                if send.peer not in self.routers:
                    self.got.append(send.packet)
                    continue
                self.said.append((name, send.peer, send.packet))
                queue.append((send.peer, Received(name, send.packet)))

    def watch(self, text: str, id: int = 1, at: str = "1", client: str = "ann") -> None:
        self.step(at, Received(client, Watch(id, parse(text))))

    def unwatch(self, id: int, at: str = "1", client: str = "ann") -> None:
        self.step(at, Received(client, Unwatch(id)))

    def publish(self, symbols: str) -> None:
        for symbol in symbols:
            router, client = ("2", "cy") if symbol == "c" else ("3", "bob")
            self.number += 1
            message = Publish(Message({"t": symbol}), client, self.number, self.number)
            self.step(router, Received(client, message))

    def crossed(self) -> list[tuple[str, str]]:
        """Which links messages, alone or assembled, have crossed."""
        kinds = Publish | Assembled | Sieved
        return [(a, b) for a, b, packet in self.said if isinstance(packet, kinds)]

    def watches(self) -> list[tuple[str, str, Task, str]]:
        return [
            (a, b, packet.task, str(packet.pattern))
            for a, b, packet in self.said
            if isinstance(packet, Watch)
        ]


A_B = "[t = 'a'] then [t = 'b']"
A_B_C = f"{A_B} then [t = 'c']"


# ---- 2.4.1


def matches(text: str, *steps: str) -> list[list[int]]:
    """The times of the messages of each match. A step is the symbols of one message: "ab" is both an a
    and a b."""
    monitor = Monitor(text)
    found = []
    for time, symbols in enumerate(steps):
        message = dict.fromkeys(symbols, True)
        found += monitor.feed((message, time))
    return [[m.time for m in compound.messages] for compound in found]


def test_or_matches_any_single_notification_of_either() -> None:
    """2.4.1: "matches any single n such that n is in the union of both sets"."""
    assert matches("[a] or [b]", "a", "b", "c", "ab") == [[0], [1], [3]]


def test_then_needs_a_later_time() -> None:
    """2.4.1: a pair of notifications with t1 < t2; one notification is no pair."""
    assert matches("[a] then [b]", "a", "b") == [[0, 1]]
    assert matches("[a] then [b]", "b", "a") == []
    assert matches("[a] then [b]", "ab") == []
    monitor = Monitor("[a] then [b]")
    assert monitor.feed(({"a": True}, 5)) == monitor.feed(({"b": True}, 5)) == []


def test_and_where_one_notification_may_match_both_sides() -> None:
    """2.4.1, "under one interpretation, it may be allowed that n1 = n2 and t1 = t2": `with`."""
    assert matches("[a] with [b]", "ab") == [[0]]
    assert matches("[a] with [b]", "b", "a") == [[0, 1]]
    assert matches("[a] with [a]", "a", "a") == [[0], [1]]


def test_and_where_two_occurrences_must_be_matched() -> None:
    """2.4.1, "under another interpretation ... two different, temporally-separated occurrences": `and`,
    also where their content is the same."""
    assert matches("[a] and [b]", "ab") == []
    assert matches("[a] and [b]", "ab", "ab") == [[0, 1]]
    assert matches("[a] and [b]", "b", "a") == [[0, 1]]
    assert matches("[a] and [a]", "a", "a") == [[0, 1]]


def test_the_two_readings_agree_where_nothing_is_in_common() -> None:
    """2.4.1: they differ only where the intersection of both sets is not empty."""
    steps = ["a", "b", "b", "c", "a", "a", "b"]
    assert matches("[a] and [b]", *steps) == matches("[a] with [b]", *steps) != []


@pytest.mark.parametrize("word", ["then", "and", "with", "or"])
def test_a_compound_subscription_may_be_the_union_of_its_parts(word: str) -> None:
    """2.4.1: "irrespective of the operator", its parts are subscribed to, and "final matching of the
    specified pattern must be performed locally"."""
    servers = Servers(advertisements=False)
    servers.watch(f"[t = 'a'] {word} [t = 'b']")
    subscribed = [(a, b, str(p.filter)) for a, b, p in servers.said if isinstance(p, Subscribe)]
    parts = ("t = 'a'", "t = 'b'")
    assert sorted(subscribed) == [(a, b, p) for a, b in (("1", "2"), ("2", "3")) for p in parts]
    assert len(servers.routers["1"].watches) == 1
    assert len(servers.routers["3"].watches) == 0


# ---- 3.6


def test_patterns_are_assembled_as_close_as_possible_to_their_sources() -> None:
    """3.6: a and b come from server 3, so it assembles them; nothing else leaves it."""
    servers = Servers()
    servers.watch(A_B)
    servers.publish("abbab")
    assert [str(one.plan.residual) for one in servers.routers["3"].watches] == [A_B]
    assert servers.crossed() == [("3", "2"), ("2", "1")] * 2
    assert len(servers.got) == 2


def test_servers_assemble_from_smaller_sub_sequences_or_single_notifications() -> None:
    """3.6: server 2 has `a then b` from 3, and c from its own client."""
    servers = Servers()
    servers.watch(A_B_C)
    (one,) = servers.routers["2"].watches
    assert str(one.plan.residual) == "<0> then [t = 'c']"
    servers.publish("abc")
    (found,) = servers.got
    assert isinstance(found, Assembled)
    assert [m.message["t"] for m in found.compound.messages] == ["a", "b", "c"]


def test_the_paths_are_determined_by_advertisements() -> None:
    """3.6: "which is why this technique requires publishers to advertise": without, it is not
    used, and the pattern is matched at the server of who subscribed."""
    servers = Servers(advertisements=False)
    servers.watch(A_B_C)
    assert servers.watches() == []
    (one,) = servers.routers["1"].watches
    assert str(one.plan.residual) == A_B_C
    servers.publish("abc")
    assert len(servers.got) == 1


def test_paths_follow_when_advertisements_change() -> None:
    """3.6 with 3.5: the table of advertisements says where parts come from, now."""
    servers = Servers()
    servers.watch(A_B)
    servers.step("1", Received("ann", Advertise(offer("b"))))  # no longer from 2 alone
    assert len(servers.routers["2"].watches) == 0
    servers.step("1", Received("ann", Unadvertise(offer("b"))))
    assert [len(servers.routers[n].watches) for n in "123"] == [1, 1, 1]
    servers.publish("ab")
    assert len(servers.got) == 1


def test_necessary_subscriptions_are_sent_out_and_a_monitor_is_set_up() -> None:
    """3.6: what is not delegated is subscribed to, and a monitor notifies the whole pattern."""
    servers = Servers()
    servers.watch("[t = 'a'] then [t = 'c'] then [t = 'b']")  # nothing contiguous below server 2
    subscribed = [(a, b, str(p.filter)) for a, b, p in servers.said if isinstance(p, Subscribe)]
    assert subscribed == [("2", "3", "t = 'a'"), ("2", "3", "t = 'b'")]
    delegated = ("1", "2", Task.ASSEMBLE, "[t = 'a'] then [t = 'c'] then [t = 'b']")
    assert servers.watches() == [delegated]
    servers.publish("acb")
    assert len(servers.got) == 1


@pytest.mark.parametrize(
    ("text", "delegated"),
    [
        (A_B_C, [(Task.ASSEMBLE, A_B)]),
        ("[t = 'c'] then [t = 'a'] then [t = 'b']", [(Task.SIEVE, A_B)]),
        ("[t = 'a'] then [t = 'c'] then [t = 'b']", []),
    ],
)
def test_only_contiguous_sub_patterns_from_a_single_source_are_delegated(
    text: str, delegated: list[tuple[Task, str]]
) -> None:
    """3.6: "only contiguous sub-patterns available from a single source can be grouped and
    delegated to that source"."""
    servers = Servers()
    servers.watch(text)
    assert [(t, p) for a, b, t, p in servers.watches() if (a, b) == ("2", "3")] == delegated


def test_not_from_two_sources() -> None:
    servers = Servers()
    servers.step("2", Received("cy", Advertise(offer("b"))))
    servers.watch(A_B_C)
    assert [link[:2] for link in servers.watches()] == [("1", "2")]


def test_all_that_belongs_to_a_pattern_is_a_subscription_like_others() -> None:
    """3.5 for 3.6: a part that is covered by a subscription is not sent out again."""
    servers = Servers()
    servers.step("2", Received("cy", Subscribe(palio.parse("t IS NOT NULL").filters[0])))
    servers.said.clear()
    servers.watch("[t = 'a'] then [t = 'c'] then [t = 'b']")
    assert not any(isinstance(packet, Subscribe) for _, _, packet in servers.said)
    servers.publish("acb")
    assert sum(isinstance(packet, Assembled) for packet in servers.got) == 1


def test_a_table_has_available_patterns_and_their_providers() -> None:
    """3.6: "each element p has an associated set providers(p)"."""
    servers = Servers()
    servers.watch(A_B_C)
    tables = {name: router.watches.available for name, router in servers.routers.items()}
    assert tables["1"].providers(parse(A_B_C)) == ("2",)
    assert tables["2"].providers(parse(A_B)) == ("3",)
    assert tables["2"].providers(parse(A_B_C)) == ()  # it is matched here
    assert len(tables["3"]) == 0
    servers.unwatch(1)
    assert [len(table) for table in tables.values()] == [0, 0, 0]


def test_monitors_that_are_set_up_provide_sub_sequences() -> None:
    """3.6: "the providers of sub-sequences of notifications are other monitors that the server has
    already set up for previous compound subscriptions": c is all that is asked for in addition."""
    servers = Servers()
    servers.watch(A_B, 1)
    assert [link[:2] for link in servers.watches()] == [("1", "2"), ("2", "3")]
    servers.said.clear()
    servers.watch(A_B_C, 2)
    assert servers.watches() == [("1", "2", Task.ASSEMBLE, A_B_C)]  # nothing from 2 to 3
    servers.watch(f"{A_B_C} within 1 hour", 2, "2", "cy")
    assert len(servers.watches()) == 1
    servers.said.clear()
    servers.publish("abc")
    assert servers.crossed().count(("3", "2")) == 1  # one compound of a and b for three patterns
    assert [len(found.compound.messages) for found in servers.got] == [2, 3, 3]
    # It stays as long as one of them needs it.
    servers.unwatch(1)
    servers.unwatch(2)
    assert len(servers.routers["3"].watches) == 1
    servers.unwatch(2, "2", "cy")
    assert [len(router.watches) for router in servers.routers.values()] == [0, 0, 0]


@pytest.mark.parametrize("count", [1, 2, 10])
def test_equal_watches_cause_one_delegation(count: int) -> None:
    """3.6: what is available is used; neither delegations nor messages on links grow with the number
    of those who watch the same."""
    servers = Servers()
    for id in range(count):
        servers.watch(A_B, id)
    assert [link[:2] for link in servers.watches()] == [("1", "2"), ("2", "3")]
    servers.publish("abbab")
    assert servers.crossed() == [("3", "2"), ("2", "1")] * 2
    assert len(servers.got) == 2 * count
    for id in range(count):
        assert len(servers.routers["3"].watches) == 1
        servers.unwatch(id)
    assert [len(router.watches) for router in servers.routers.values()] == [0, 0, 0]


def test_assembling_near_the_sources_saves_packets() -> None:
    """3.6 with 2.4.1: the same messages, matched at the server of who subscribed (the union of the
    parts), and assembled near the sources; the compounds are the same."""
    symbols = "aaabcbbabacaabbbabcbabaccbaab"
    crossed, found = [], []
    for advertisements in (False, True):
        servers = Servers(advertisements=advertisements)
        for id, text in enumerate((A_B_C, A_B, A_B_C, A_B)):
            servers.watch(text, id)
        servers.publish(symbols)
        crossed.append(len(servers.crossed()))
        found.append(sorted(str(packet) for packet in servers.got))
    assert found[0] == found[1] != []
    assert crossed[1] < 0.75 * crossed[0], crossed
