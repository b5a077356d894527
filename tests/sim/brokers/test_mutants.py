"""The checkers check: each broken core, session or disk is caught by some seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from palio.protocol.client.receipts import Receipts
from palio.protocol.durability.deposit import Deposit
from palio.protocol.durability.publishers import Publishers
from palio.protocol.durability.streams import Inbound, Outbound
from palio.protocol.durability.vault import Vault
from palio.protocol.live import Live
from palio.protocol.neighbours import Neighbours
from palio.protocol.traffic import Traffic
from palio.sim.brokers.disks import Disk
from palio.sim.brokers.runs import judge
from palio.sim.brokers.workload import FAULTS, BrokerSettings

SEEDS_MAX = 40

Patch = pytest.MonkeyPatch

pytestmark = pytest.mark.slow


CRASHES = ("crash",) * 3


def caught(*kinds: str, faults: tuple[str, ...] = FAULTS) -> None:
    """Some seed fails, by one of these checkers."""
    settings = BrokerSettings(4, operations=80, faults=faults)
    for seed in range(SEEDS_MAX):
        verdict = judge(settings, seed)
        if verdict.kind is not None:
            assert verdict.kind in kinds, verdict.text
            return
    pytest.fail("nobody has noticed")


def test_a_disk_that_never_commits_is_caught(monkeypatch: Patch) -> None:
    def end(self: Disk) -> None:
        self._under_way = {}

    monkeypatch.setattr(Disk, "end", end)
    caught("lost", "twice", "restless", "broken", "leftovers")


def test_what_goes_out_before_its_commit_is_caught(monkeypatch: Patch) -> None:
    """The deposit says that all is safe as soon as it is sealed."""
    seal = Deposit.seal

    def hasty(self: Deposit) -> int | None:
        ticket = seal(self)
        if ticket is not None:
            self.committed(ticket, self._now_us)
        return ticket

    monkeypatch.setattr(Deposit, "seal", hasty)
    caught("lost", "twice", "broken", "restless", faults=CRASHES)


def test_publishers_that_are_answered_at_once_are_caught(monkeypatch: Patch) -> None:
    publish = Deposit.publish

    def hasty(self: Deposit, publisher: str, letters: Any, matches: Any, now_us: int) -> int:
        taken = publish(self, publisher, letters, matches, now_us)
        row = self._vault.publishers.row(publisher)
        row.safe = row.number
        self._answers[publisher] = row.number
        return taken

    monkeypatch.setattr(Deposit, "publish", hasty)
    caught("lost", "broken")


def test_a_destination_that_says_got_before_its_commit_is_caught(monkeypatch: Patch) -> None:
    accept = Inbound.accept

    def hasty(self: Inbound) -> None:
        accept(self)
        self.stored = self.expected - 1

    arrive = Deposit.arrive

    def answers(self: Deposit, carry: Any, *rest: Any) -> None:
        arrive(self, carry, *rest)
        self._got[self._vault.inbound[carry.origin, carry.epoch]] = None

    monkeypatch.setattr(Inbound, "accept", hasty)
    monkeypatch.setattr(Deposit, "arrive", answers)
    caught("lost", faults=CRASHES)


def test_a_stream_that_takes_messages_twice_is_caught(monkeypatch: Patch) -> None:
    def careless(self: Inbound, target: Any, arrival: Any, now_us: int) -> bool:
        self.expected = target.number
        self._early[target.number] = arrival
        return True

    monkeypatch.setattr(Inbound, "offer", careless)
    caught("twice", "broken", "order", "restless", "lost")


def test_a_publisher_whose_messages_are_stored_twice_is_caught(monkeypatch: Patch) -> None:
    def forgetful(self: Publishers, name: str) -> int:
        return 0

    publish = Deposit.publish

    def anew(self: Deposit, publisher: str, *rest: Any) -> int:
        self._vault.publishers.row(publisher).number = 0
        return publish(self, publisher, *rest)

    monkeypatch.setattr(Publishers, "safe", forgetful)
    monkeypatch.setattr(Deposit, "publish", anew)
    caught("twice", "order", "restless")


def test_a_message_that_loses_names_on_its_way_is_caught(monkeypatch: Patch) -> None:
    send = Traffic._send_carry

    def lossy(self: Traffic, header: Any, attributes: bytes, body: bytes, came: Any) -> None:
        if came is not None:
            targets = tuple(msgspec.structs.replace(t, names=t.names[:1]) for t in header.targets)
            header = msgspec.structs.replace(header, targets=targets)
        send(self, header, attributes, body, came)

    monkeypatch.setattr(Traffic, "_send_carry", lossy)
    caught("lost")


def test_an_origin_that_never_sends_again_is_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Outbound, "wake", lambda self, now_us: False)
    monkeypatch.setattr(
        Outbound, "reach", lambda self, is_reachable: _set_reach(self, is_reachable)
    )
    caught("restless")


def _set_reach(stream: Outbound, is_reachable: bool) -> None:
    stream._is_reachable = is_reachable


def test_facts_that_are_not_kept_are_caught(monkeypatch: Patch) -> None:
    """Neither subscriptions here nor those of others outlive a crash."""
    monkeypatch.setattr(Vault, "_put_facts", lambda self: None)
    caught("lost", "broken", "leftovers", "twice", "restless")


def test_a_replay_that_is_left_out_is_caught(monkeypatch: Patch) -> None:
    """A subscription begins where an origin hears of it."""
    learn = Deposit.learn

    def late(self: Deposit, broker: str, name: str, durable: Any, *rest: Any) -> None:
        since = msgspec.structs.replace(durable, since=1 << 60)
        learn(self, broker, name, since, *rest)

    monkeypatch.setattr(Deposit, "learn", late)
    caught("lost")


def test_a_client_that_forgets_its_receipts_is_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        Receipts, "is_new", lambda self, position, number: _is_new(self, position, number)
    )
    caught("twice")


def _is_new(receipts: Receipts, position: int, number: int) -> bool:
    receipts._given[position] = number
    return True


def test_live_messages_to_everybody_are_caught(monkeypatch: Patch) -> None:
    deliver = Live._deliver

    def generous(self: Live, parcel: Any, peers: Any) -> Any:
        return deliver(self, parcel, [*peers, *(p for p in self._groups if p not in peers)])

    monkeypatch.setattr(Live, "_deliver", generous)
    caught("uninterested")


def test_live_messages_that_are_not_passed_on_are_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Neighbours, "send", lambda self, name, frame: True)
    caught("lost")


def test_doubled_live_messages_are_caught(monkeypatch: Patch) -> None:
    send: Callable[..., bool] = Neighbours.send

    def twice(self: Neighbours, name: str, frame: bytes) -> bool:
        return send(self, name, frame) and send(self, name, frame)

    monkeypatch.setattr(Neighbours, "send", twice)
    monkeypatch.setattr(Traffic, "_is_new", lambda self, publisher, number: True)
    monkeypatch.setattr(Traffic, "_are_new", lambda self, keys: True)
    caught("twice")


def test_live_subscriptions_that_end_without_being_asked_to_are_caught(monkeypatch: Patch) -> None:
    subscribe = Live.subscribe

    def strict(self: Live, *arguments: Any, **options: Any) -> None:
        subscribe(self, *arguments, **{**options, "ends": True})

    monkeypatch.setattr(Live, "subscribe", strict)
    caught("refused")


def test_journals_that_are_never_swept_are_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        "palio.protocol.durability.journal.Journal.sweep", lambda self, now_us, needed: None
    )
    caught("leftovers")


def test_errors_of_the_core_are_caught(monkeypatch: Patch) -> None:
    def raises(self: Deposit, *_: Any) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(Deposit, "got", raises)
    caught("broken")
