"""The 2000 paper, section 3.6 (matching patterns), claim by claim.

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
from palio.routing.patterns import Assembled, Sieved, Task, Watch, parse


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

    def watch(self, text: str) -> None:
        self.step("1", Received("ann", Watch(1, parse(text))))

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
