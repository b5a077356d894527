"""A router by itself: joining, leaving, errors, hierarchies, its dump, and the order of effects."""

from __future__ import annotations

import cProfile
import os
import subprocess
import sys
from random import Random

import pytest

from palio import Advertisement, Constraint, Filter, Message, PalioError, parse
from palio.routing import (
    Advertise,
    Joined,
    Left,
    Publish,
    Received,
    Restate,
    Role,
    Router,
    Send,
    Subscribe,
    Unsubscribe,
)
from palio.routing.dump import dump
from tests.routing.network import check_forwards
from tests.routing.test_router_machine import CHAINED


def only(text: str) -> Filter:
    (filter,) = parse(text)
    return filter


LOW, MID, HIGH = only("x < 1"), only("x < 5"), only("x < 9")
XS = Advertisement((Constraint("x", "any"),))


def test_who_joins_is_told_what_is_known() -> None:
    router = Router("1")
    router.step(Joined("ann"))
    for filter in (LOW, MID, only("y = 1")):
        router.step(Received("ann", Subscribe(filter)))
    router.step(Received("ann", Advertise(XS)))
    told = Restate((MID, only("y = 1")), (XS,))
    assert router.step(Joined("2", Role.NEIGHBOUR)) == [Send("2", told)]
    assert router.step(Joined("2", Role.NEIGHBOUR)) == [Send("2", told)]
    assert router.step(Joined("bob")) == []


def test_a_peer_that_joins_again_is_served_until_it_restates() -> None:
    router = Router("1")
    router.step(Joined("2", Role.NEIGHBOUR))
    router.step(Received("2", Subscribe(MID)))
    router.step(Joined("2", Role.NEIGHBOUR))
    assert router.destinations({"x": 3}) == ["2"]
    router.step(Received("2", Restate((LOW,))))
    assert router.destinations({"x": 3}) == []
    assert router.destinations({"x": 0}) == ["2"]


def test_a_peer_may_change_its_role() -> None:
    router = Router("1")
    router.step(Joined("ann"))
    router.step(Joined("2"))
    router.step(Received("ann", Subscribe(LOW)))
    assert router.step(Joined("2", Role.NEIGHBOUR)) == [Send("2", Restate((LOW,)))]
    router.step(Joined("2"))
    assert router.step(Received("ann", Subscribe(MID))) == []


def test_a_restatement_tells_the_others_the_difference_only() -> None:
    router = Router("1")
    for peer in ("2", "3"):
        router.step(Joined(peer, Role.NEIGHBOUR))
    same, gone, new = only("a = 1"), only("b = 1"), only("c = 1")
    router.step(Received("2", Restate((same, gone, HIGH))))
    sends = router.step(Received("2", Restate((same, new, MID))))
    assert sends == [
        Send("3", Subscribe(new)),
        Send("3", Unsubscribe(gone)),
        Send("3", Unsubscribe(HIGH, (MID,))),
    ]


def test_new_below_several_old_goes_with_the_last() -> None:
    """Earlier it would have no effect: the peer still has one that covers it."""
    first, second, both = only("x < 5"), only("y < 5"), only("x < 5 AND y < 5")
    router, there = Router("1"), Router("2")
    for peer in ("2", "3", "4"):
        router.step(Joined(peer, Role.NEIGHBOUR))
    there.step(Joined("1", Role.NEIGHBOUR))
    events = [
        Received("3", Subscribe(first)),
        Received("3", Subscribe(second)),
        Received("4", Subscribe(both)),
        Left("3"),
    ]
    for event in events:
        for send in router.step(event):
            if send.peer == "2":
                there.step(Received("1", send.packet))
                assert there.destinations({"x": 1, "y": 1}) == ["1"] or event is events[0]
    assert there.subscriptions.said("1") == router.subscriptions.forwarded("2") == [both]


def test_where_covering_is_not_transitive_nothing_is_lost() -> None:
    """Wide covers middle, middle covers narrow, and nobody sees that wide covers narrow."""
    wide, middle, narrow = CHAINED[:3]
    router = Router("1")
    router.step(Joined("2", Role.NEIGHBOUR))
    for peer, filter in (("ann", wide), ("bob", middle), ("cy", narrow)):
        router.step(Joined(peer))
        router.step(Received(peer, Subscribe(filter)))
    assert router.subscriptions.forwarded("2") == [wide]
    router.step(Left("bob"))  # what had hidden narrow is gone, and was itself hidden
    check_forwards(router, advertisements=False)
    router.step(Left("ann"))
    assert router.subscriptions.forwarded("2") == [narrow]


def test_strangers_are_named() -> None:
    router = Router("1")
    router.step(Joined("ann"))
    with pytest.raises(PalioError, match=r"router 1: 'bob' sent Subscribe .* ann"):
        router.step(Received("bob", Subscribe(LOW)))
    with pytest.raises(PalioError, match="'bob' left but has not joined"):
        router.step(Left("bob"))
    router.step(Left("ann"))
    with pytest.raises(PalioError, match="nobody"):
        router.step(Received("ann", Publish(Message({}), "ann", 1)))


def test_one_master_only() -> None:
    router = Router("1")
    router.step(Joined("top", Role.MASTER))
    with pytest.raises(PalioError, match="'top'"):
        router.step(Joined("other", Role.MASTER))
    assert list(router.peers) == ["top"]


def test_a_hierarchy() -> None:
    """Subscriptions and all messages go up; down and aside by match only."""
    router = Router("1", advertisements=True)
    router.step(Joined("top", Role.MASTER))
    router.step(Joined("low", Role.SLAVE))
    router.step(Joined("ann"))
    assert router.step(Received("ann", Subscribe(MID))) == [Send("top", Subscribe(MID))]
    assert router.step(Received("low", Subscribe(LOW))) == []
    assert router.destinations({"x": 0}, "low") == ["top", "ann"]
    assert router.destinations({"x": 7}, "low") == ["top"]
    assert router.destinations({"x": 0}, "top") == ["low", "ann"]
    assert router.destinations({"x": 7}, "top") == []
    check_forwards(router, advertisements=True)


def test_a_message_does_not_go_back() -> None:
    router = Router("1")
    router.step(Joined("ann"))
    router.step(Received("ann", Subscribe(HIGH)))
    assert router.step(Received("ann", Publish(Message({"x": 1}), "ann", 1))) == []


DUMP = """\
router 1
peers
  2 neighbour
  3 neighbour
  top master
  low slave
  ann client
subscriptions
  TRUE ->top <-2 <-3
    x < 5 ->ann <-top
      x < 5 AND y < 5 ->3
        x < 1 AND y < 1 ->low
    y < 5 ->2 <-top
      x < 5 AND y < 5  ^
advertisements
  x IS NOT NULL; y < 9 ->ann <-2 <-3 <-top
"""


def test_dump() -> None:
    router = Router("1")
    assert dump(router) == "router 1\npeers\n  none\nsubscriptions\n  none\n"
    for peer in ("2", "3"):
        router.step(Joined(peer, Role.NEIGHBOUR))
    router.step(Joined("top", Role.MASTER))
    router.step(Joined("low", Role.SLAVE))
    router.step(Joined("ann"))
    texts = {
        "x < 5": "ann",
        "x < 5 AND y < 5": "3",
        "y < 5": "2",
        "x < 1 AND y < 1": "low",
    }
    for text, peer in texts.items():
        router.step(Received(peer, Subscribe(only(text))))
    router.step(Received("ann", Advertise(Advertisement((*XS, Constraint("y", "<", 9))))))
    assert dump(router) == DUMP


SCRIPT = """
from palio import parse
from palio.routing import *
from palio.routing.dump import dump
router = Router("1")
for peer in "abcd":
    router.step(Joined(peer, Role.NEIGHBOUR))
said = []
for n in range(40):
    (filter,) = parse(f"n{n % 7} < {n} AND m{n % 3} > {n % 5}")
    said += router.step(Received("abcd"[n % 4], Subscribe(filter)))
(wide,) = parse("TRUE")
said += router.step(Received("a", Subscribe(wide)))
said += router.step(Received("a", Unsubscribe(wide)))
said += router.step(Left("b"))
said += router.step(Joined("e", Role.NEIGHBOUR))
print(said)
print(dump(router))
"""


def test_effects_do_not_depend_on_hashes() -> None:
    """The same events give the same effects in the same order, in every process."""
    runs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_import_is_light() -> None:
    script = (
        "import palio.routing, sys; print([m for m in ('numba', 'pyarrow') if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout == "[]\n"


def test_who_follows_hears_of_every_change() -> None:
    """What is followed adds up to what the peer was told, and each change is news of its own."""
    rng, router = Random(5), Router("r")
    router.step(Joined("n", Role.NEIGHBOUR))
    for peer in ("a", "b"):
        router.step(Joined(peer))
    news, known = router.subscriptions.follow("n"), set[Filter]()
    choices = [only(f"x > {i}") for i in range(6)]
    choices += [only(f"x > {i} AND y = 1") for i in range(6)]
    for _ in range(300):
        found = rng.choice(choices)
        packet = rng.choice([Subscribe(found), Unsubscribe(found)])
        router.step(Received(rng.choice("ab"), packet))
        if rng.random() < 0.5:
            for item, is_told in news.items():
                assert (item in known) is not is_told
                (known.add if is_told else known.remove)(item)
            news.clear()
            assert known == set(router.subscriptions.forwarded("n"))
    for i in range(100):
        router.step(Received("a", Subscribe(only(f"z = {i}"))))
    news.clear()
    router.step(Received("b", Subscribe(only("z = 1000"))))
    assert news == {only("z = 1000"): True}


def test_a_client_leaves_a_long_chain_of_filters_without_a_look_at_all_of_it() -> None:
    calls = []
    for length in (50, 400):
        router = Router("1")
        router.step(Joined("2", Role.NEIGHBOUR))
        for i in range(length):
            router.step(Joined(f"c{i}"))
            router.step(Received(f"c{i}", Subscribe(only(f"x > {i}"))))
        profile = cProfile.Profile()
        profile.enable()
        router.step(Left("c0"))
        profile.disable()
        assert router.subscriptions.forwarded("2") == [only("x > 1")]
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[1] < calls[0] + 50
