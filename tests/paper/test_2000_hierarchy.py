"""2000, 3.5 where servers are not peers: master and slaves, Siena's other architecture.

The paper states formula (1) for peer-to-peer servers (so the captions of figures 4 and 5). A server below
a master is its client: it forwards its subscriptions there, and is told of none. The servers are those of
figures 3 to 5, with a master above server 1; the filters are theirs too.
"""

from __future__ import annotations

import palio
from palio import Message
from palio.routing import Joined, Publish, Received, Role, Router, Send, Subscribe

(AIRLINE,) = palio.parse("airline IS NOT NULL")
(UA_TO_ARN,) = palio.parse("airline = 'UA' AND dest = 'ARN'")
EVERYTHING = palio.parse("TRUE").filters[0]


def server(*peers: tuple[str, Role]) -> Router:
    made = Router("1")
    for name, role in peers:
        made.step(Joined(name, role))
    return made


def test_subscriptions_go_up_only() -> None:
    """From a client and a slave to the master; from one slave never to another."""
    one = server(("master", Role.MASTER), ("2", Role.SLAVE), ("3", Role.SLAVE), ("a", Role.CLIENT))
    assert one.step(Received("3", Subscribe(AIRLINE))) == [Send("master", Subscribe(AIRLINE))]
    assert one.step(Received("2", Subscribe(UA_TO_ARN))) == []  # covered, as in figure 4
    assert one.step(Received("a", Subscribe(AIRLINE))) == []
    assert one.forwards(AIRLINE) == {"master"}


def test_notifications_always_go_up() -> None:
    """Whether or not anybody above wants them; down they go where they match."""
    one = server(("master", Role.MASTER), ("2", Role.SLAVE), ("3", Role.SLAVE))
    one.step(Received("3", Subscribe(AIRLINE)))
    for message, source, receivers in (
        ({"airline": "UA"}, "2", ["master", "3"]),
        ({"dest": "ARN"}, "2", ["master"]),
        ({"airline": "UA"}, "master", ["3"]),
        ({"dest": "ARN"}, "master", []),
    ):
        sends = one.step(Received(source, Publish(Message(message), "p", 1)))
        assert [send.peer for send in sends] == receivers


def test_formula_1_with_a_master() -> None:
    """A server that is both a slave and a peer forwards for its master, too: everything. That covers the
    subscriptions of the others, so by the last term of (1) its peers get nothing else."""
    one = server(("master", Role.MASTER), ("2", Role.NEIGHBOUR), ("4", Role.NEIGHBOUR))
    one.step(Received("2", Subscribe(UA_TO_ARN)))
    assert one.subscribers(EVERYTHING) == {"master"}
    assert one.forwards(EVERYTHING) == {"2", "4"}
    assert one.forwards(UA_TO_ARN) == {"master"}
