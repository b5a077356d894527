"""The checks catch broken cores, sessions and disks: some seed of each fails."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from palio.protocol.broker.carrying import Carrier
from palio.protocol.broker.data_path import DataPath, DedupWindow
from palio.protocol.broker.durable_names import DurableName, DurableNames
from palio.protocol.broker.interests import Interests
from palio.protocol.broker.last_value_exchange import LastValueExchange
from palio.protocol.broker.local import LocalDelivery
from palio.protocol.broker.neighbours import NeighbourLinks
from palio.protocol.client.last_value_filter import LastValueFilter
from palio.protocol.durability.commits import Commits
from palio.protocol.durability.last_values import LastValue, LastValues
from palio.protocol.durability.lifecycle import SubscriptionLifecycle
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.durability.publishers import PublisherTable
from palio.protocol.durability.streams import IncomingStream, OutgoingStream
from palio.protocol.interfaces import LiveSubscription
from palio.protocol.policies.drp import DRPPolicy
from palio.protocol.wire.encode import EncodedFrames
from palio.protocol.wire.last_values import ValueOrder
from palio.sim.brokers.drawing import FAULTS, BrokerSettings
from palio.sim.brokers.plans import parse_broker_plan
from palio.sim.brokers.runs import judge
from palio.sim.brokers.simulation import run
from palio.sim.kernel.disk import SimulatedDisk

SEEDS_MAX = 120

Patch = pytest.MonkeyPatch

pytestmark = pytest.mark.slow


CRASHES = ("crash",) * 3


def caught(*kinds: str, faults: tuple[str, ...] = FAULTS, routing: str = "any") -> None:
    """Some seed fails, by one of these checks."""
    settings = BrokerSettings(4, operations=80, faults=faults, routing=routing)
    for seed in range(SEEDS_MAX):
        verdict = judge(settings, seed)
        if verdict.kind is not None:
            assert verdict.kind in kinds, verdict.text
            return
    pytest.fail("nobody has noticed")


def caught_in(scenario: str, kind: str, monkeypatch: Patch) -> None:
    """The scenario fails with some seed, by this check, and not without the mutant."""
    for seed in range(SEEDS_MAX):
        plan = parse_broker_plan(f"seed {seed}\n{scenario}")
        verdict = run(plan)
        if verdict.kind is not None:
            assert verdict.kind == kind, verdict.text
            monkeypatch.undo()
            assert run(plan).kind is None
            return
    pytest.fail("nobody has noticed")


def test_a_disk_that_never_commits_is_caught(monkeypatch: Patch) -> None:
    def end(self: SimulatedDisk[bytes]) -> None:
        self._under_way.clear()

    monkeypatch.setattr(SimulatedDisk, "end", end)
    caught("lost", "twice", "restless", "broken", "leftovers")


def test_what_goes_out_before_its_commit_is_caught(monkeypatch: Patch) -> None:
    """The store says that all is safe as soon as it is sealed."""
    seal = MessageStore.seal

    def hasty(self: MessageStore) -> int | None:
        ticket = seal(self)
        if ticket is not None:
            self.committed(ticket, self._clock.now_us)
        return ticket

    monkeypatch.setattr(MessageStore, "seal", hasty)
    caught("lost", "twice", "broken", "restless", faults=CRASHES)


def test_publishers_that_are_answered_at_once_are_caught(monkeypatch: Patch) -> None:
    publish = MessageStore.publish

    def hasty(self: MessageStore, batch: Any, matches: Any, now_us: int) -> int:
        taken = publish(self, batch, matches, now_us)
        row = self._publishers.row(batch.publishers()[0])
        row.safe = row.number
        self._ready.note_published(row.name, row.number)
        return taken

    monkeypatch.setattr(MessageStore, "publish", hasty)
    caught("lost", "broken")


def test_a_destination_that_acknowledges_before_its_commit_is_caught(monkeypatch: Patch) -> None:
    accept = IncomingStream.accept

    def hasty(self: IncomingStream) -> None:
        accept(self)
        self.stored = self.expected - 1

    arrive = MessageStore.arrive

    def answers(self: MessageStore, header: Any, *rest: Any) -> None:
        arrive(self, header, *rest)
        self._ready.note_ack(self._arrivals._streams.get(header.origin, header.epoch))

    monkeypatch.setattr(IncomingStream, "accept", hasty)
    monkeypatch.setattr(MessageStore, "arrive", answers)
    caught("lost", faults=CRASHES)


def test_a_stream_that_takes_messages_twice_is_caught(monkeypatch: Patch) -> None:
    def careless(self: IncomingStream, target: Any, arrival: Any, now_us: int) -> bool:
        self.expected = target.number
        self.early[target.number] = arrival
        return True

    monkeypatch.setattr(IncomingStream, "offer", careless)
    caught("twice", "broken", "order", "restless", "lost")


def test_a_publisher_whose_messages_are_stored_twice_is_caught(monkeypatch: Patch) -> None:
    def forgetful(self: PublisherTable, name: str) -> int:
        return 0

    publish = MessageStore.publish

    def anew(self: MessageStore, batch: Any, *rest: Any) -> int:
        self._publishers.row(batch.publishers()[0]).number = 0
        return publish(self, batch, *rest)

    monkeypatch.setattr(PublisherTable, "safe", forgetful)
    monkeypatch.setattr(MessageStore, "publish", anew)
    caught("twice", "order", "restless")


def test_a_message_that_loses_names_on_its_way_is_caught(monkeypatch: Patch) -> None:
    send = Carrier._send

    def lossy(self: Carrier, header: Any, attributes: bytes, body: bytes, came_from: Any) -> None:
        if came_from is not None:
            targets = tuple(msgspec.structs.replace(t, names=t.names[:1]) for t in header.targets)
            header = msgspec.structs.replace(header, targets=targets)
        send(self, header, attributes, body, came_from)

    monkeypatch.setattr(Carrier, "_send", lossy)
    caught("lost")


def test_an_origin_that_never_sends_again_is_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(OutgoingStream, "wake", lambda self, now_us: False)
    monkeypatch.setattr(
        OutgoingStream, "reach", lambda self, is_reachable: _set_reach(self, is_reachable)
    )
    caught("restless")


def _set_reach(stream: OutgoingStream, is_reachable: bool) -> None:
    stream._is_reachable = is_reachable


def test_subscriptions_that_are_not_stored_are_caught(monkeypatch: Patch) -> None:
    """Neither subscriptions here nor those of others outlive a crash."""
    monkeypatch.setattr(Commits, "_put_subscriptions", lambda self, changes: None)
    caught("lost", "broken", "leftovers", "twice", "restless")


def test_a_replay_that_is_left_out_is_caught(monkeypatch: Patch) -> None:
    """A subscription begins where an origin hears of it."""
    add = SubscriptionLifecycle.add

    def late(self: SubscriptionLifecycle, stored: Any, matching: Any, since: int) -> bool:
        return add(self, stored, matching, 1 << 60)

    monkeypatch.setattr(SubscriptionLifecycle, "add", late)
    caught("lost")


def test_last_values_that_stay_whatever_comes_are_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(LastValue, "order", property(lambda self: ValueOrder(0, "", 0)))
    caught("last")


def test_subscribers_that_miss_what_is_being_committed_are_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(LastValues, "awaited", lambda self, key: None)
    lines = ["clients ann@a bob@a", "", "0.000 settle"]
    for x in range(40):
        at_ms = 6000 + 100 * x
        lines.append(f'{at_ms}.000 ann publish durable retain=x {{"x": {x}}}')
        lines.append(f"{at_ms + x % 4}.{x * 10:03} bob subscribe s{x} last where x = {x}")
    caught_in("\n".join(lines), "last", monkeypatch)


def test_clients_that_take_older_values_are_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(LastValueFilter, "is_new", lambda self, header, payload: True)
    caught("older", "twice")


def test_new_brokers_that_are_given_nothing_are_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(LastValueExchange, "_give", lambda self, broker, value: True)
    caught("last")


def test_live_messages_to_everybody_are_caught(monkeypatch: Patch) -> None:
    deliver = LocalDelivery._deliver

    def generous(self: LocalDelivery, batch: Any, row: int, slots: list[int]) -> None:
        live = [s for s, g in self._by_slot.items() if isinstance(g.interface, LiveSubscription)]
        deliver(self, batch, row, list(dict.fromkeys([*slots, *live])))

    monkeypatch.setattr(LocalDelivery, "_deliver", generous)
    caught("uninterested")


def test_live_messages_that_are_not_passed_on_are_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(NeighbourLinks, "send", lambda self, name, frames: len(frames.ends))
    caught("lost")


def test_doubled_live_messages_are_caught(monkeypatch: Patch) -> None:
    send = NeighbourLinks.send

    def twice(self: NeighbourLinks, name: str, frames: EncodedFrames) -> int:
        return send(self, name, frames) and send(self, name, frames)

    monkeypatch.setattr(NeighbourLinks, "send", twice)
    monkeypatch.setattr(DedupWindow, "new", lambda self, batch: batch)
    caught("twice")


def test_live_subscriptions_that_end_without_being_asked_to_are_caught(monkeypatch: Patch) -> None:
    subscribe = Interests.subscribe

    def strict(self: Interests, *arguments: Any, **options: Any) -> None:
        subscribe(self, *arguments, **{**options, "ends": True})

    monkeypatch.setattr(Interests, "subscribe", strict)
    caught("refused")


def test_interests_that_forget_to_flush_are_caught(monkeypatch: Patch) -> None:
    """A message goes to those who subscribed after it, when both come in one turn."""
    make = Interests.__init__

    def forgetful(self: Interests, *arguments: Any) -> None:
        make(self, *arguments[:-1], lambda: None)

    monkeypatch.setattr(Interests, "__init__", forgetful)
    caught_in(
        """
links a-b
clients ann@a
4000.000 ann publish {"x": 7}
4000.000 ann subscribe late where x > 5
""",
        "uninterested",
        monkeypatch,
    )


def test_slots_that_are_reused_while_an_answer_is_kept_are_caught(monkeypatch: Patch) -> None:
    """A durable message is looked up, a live subscription makes room for another, and the message
    goes to that one when it is committed."""
    flush = DataPath.flush

    def hasty(self: DataPath) -> None:
        flush(self)
        self._table.reclaim(self._table.retired)

    monkeypatch.setattr(DataPath, "flush", hasty)
    caught_in(
        """
links a-b
clients ann@a
3000.000 ann subscribe before where x > 5
4000.000 ann publish durable {"x": 7}
4000.000 ann leave before
4000.000 ann subscribe after where x < 5
""",
        "uninterested",
        monkeypatch,
    )


def test_brokers_on_the_way_that_do_not_take_their_own_are_caught(monkeypatch: Patch) -> None:
    """With DRP, a broker that has others to pass a message to forgets that it is a receiver too."""
    is_receiver = DRPPolicy.is_receiver

    def hasty(self: DRPPolicy, route: bytes) -> bool:
        _, receivers = self._decode(route, "a neighbour")
        return is_receiver(self, route) and len(receivers) == 1

    monkeypatch.setattr(DRPPolicy, "is_receiver", hasty)
    caught("lost", routing="DRP")


def test_groups_of_one_durable_name_that_share_a_queue_are_caught(monkeypatch: Patch) -> None:
    def careless(self: DurableNames, name: DurableName) -> str | None:
        return next((key for key, known in self._names.items() if known[:2] == name[:2]), None)

    with monkeypatch.context() as patch:
        patch.setattr(DurableNames, "key_of", careless)
        caught("refused", "lost")  # with another predicate, or with the same
    monkeypatch.setattr(DurableNames, "key_of", careless)
    caught_in(
        """
clients ann@a bob@a
1000.000 ann subscribe day durable called=desk group=day where x > 5
1000.000 bob subscribe night durable called=desk group=night where x > 5
4000.000 ann publish durable {"x": 7}
""",
        "lost",
        monkeypatch,
    )


def test_journals_that_are_never_swept_are_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        "palio.protocol.durability.journal.Journal.sweep", lambda self, now_us, needed: None
    )
    caught("leftovers")


def test_errors_of_the_core_are_caught(monkeypatch: Patch) -> None:
    def raises(self: MessageStore, *_: Any) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(MessageStore, "acknowledged", raises)
    caught("broken")
