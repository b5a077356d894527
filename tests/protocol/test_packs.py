"""Many durable messages at once are dealt with as one by one would be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from palio.protocol.durability import kept
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.deposit import Deposit
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.kept import (
    Message,
    Pack,
    Picked,
    from_bytes,
    messages_of,
    to_bytes,
    weigh,
)
from palio.protocol.durability.outgoing import Keys, Outgoing
from palio.protocol.durability.queues import Full
from palio.protocol.frames import Deliver, Frames, Letter, Publish, letter_frame
from palio.protocol.runs import Publication, Run, deliver_entries, scan
from palio.protocol.words import Durable, Got

from .deposit_world import run_of
from .memory_store import MemoryStore

ANN = "ann/1"
KEYS = (("A", "x"), ("A", "y"), ("B", "u"), ("B", "v"), ("C", "w"), ("D", "unknown"))
LETTERS = st.lists(
    st.tuples(st.sampled_from([-2, 0, 1, 1, 1, 1, 5]), st.sets(st.sampled_from(KEYS))), max_size=25
)
FULL = st.sampled_from([Full.BLOCK, Full.DROP, Full.END])


@pytest.fixture(autouse=True)
def small_packs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "PACK_MIN", 1)
        yield


class Side:
    """A deposit that takes letters in one way, and everything that came out of it."""

    def __init__(self, step: int, is_run: bool, full: Full, bounds: Bounds) -> None:
        self.step, self.is_run, self.bounds = step, is_run, bounds
        self.store = MemoryStore()
        self.seen: list[object] = []
        self.start()
        for broker, name in KEYS[:-1]:
            durable = Durable("", 0, 1)
            if broker == "A":
                self.deposit.create(name, durable, full, lambda texts: [True] * len(texts), 0)
            else:
                self.deposit.learn(broker, name, durable, lambda texts: [True] * len(texts), 0)
        self.turn()
        self.attach()

    def start(self) -> None:
        self.store.crash()
        self.deposit = Deposit(self.store, "A", "epoch", 0, self.bounds)
        self.deposit.reachable({"B", "C"}, 0)

    def attach(self) -> None:
        names = [fact.name for fact in self.deposit.subscriptions() if fact.broker == "A"]
        for name in names:
            self.deposit.attach(name, name, 7)

    def offer(self, letters: list[Publication], matches: list[Keys]) -> int:
        done = 0
        while done < len(letters):
            part = letters[done : done + self.step]
            found: list[Publication] | Run = run_of(part) if self.is_run else part
            taken = self.deposit.publish(ANN, found, matches[done : done + self.step], 5)
            done += taken
            if taken < len(part):
                break
        return done

    def turn(self) -> None:
        ticket = self.deposit.seal()
        if ticket is not None:
            self.store.commit()
            self.deposit.committed(ticket, 5)
        self._note(self.deposit.take(5))

    def _note(self, out: Outgoing) -> None:
        sent: dict[object, list[object]] = {}
        for one in out.deliveries:
            messages = list(one.messages)
            assert len(one.messages) == len(one.positions) == len(messages)
            sent.setdefault(one.consumer, []).extend(
                (n, one.again, m) for n, m in zip(one.positions, messages, strict=True)
            )
        self.seen.append((out.published, out.carries, sent, out.ended, out.has_room))

    def acknowledge(self, numbers: list[int]) -> None:
        for name in ("x", "y"):
            self.deposit.acknowledge(name, numbers, 6)
        self.deposit.got(Got("A", "epoch", "B", len(numbers)), 6)

    def state(self) -> tuple[object, ...]:
        numbers = replace(self.deposit.statistics(), bytes=0)  # frames on disk are larger
        return self.seen, numbers, self.deposit.last_number(ANN)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(LETTERS, st.lists(st.integers(1, 30), max_size=9)), min_size=1, max_size=4),
    st.booleans(),
    FULL,
    st.sampled_from([Bounds(), Bounds(queue=6, backlog=9), Bounds(queue_bytes=300, cache_bytes=1)]),
)
def test_a_batch_is_what_single_messages_are(
    turns: list[tuple[list[tuple[int, set[tuple[str, str]]]], list[int]]],
    is_run: bool,
    full: Full,
    bounds: Bounds,
) -> None:
    single, many = Side(1, False, full, bounds), Side(1000, is_run, full, bounds)
    number = 3
    for drawn, acknowledged in turns:
        letters: list[Publication] = []
        matches: list[Keys] = []
        for step, keys in drawn:
            number = max(1, number + step)
            letters.append((number, 7, b"%d" % number, b"b" * (number % 50)))
            matches.append(tuple(sorted(keys)))
        assert single.offer(letters, matches) == many.offer(letters, matches)
        for side in (single, many):
            side.turn()
            side.acknowledge(acknowledged)
            side.turn()
        assert single.state() == many.state()
    for side in (single, many):
        side.start()
        side.attach()
        side.turn()
    assert single.state()[0] == many.state()[0]
    assert single.deposit.last_number(ANN) == many.deposit.last_number(ANN)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.booleans(), st.integers(0, 2)), max_size=8),
    st.sampled_from([1, 1 << 20]),
    st.randoms(use_true_random=False),
)
def test_a_journal_reads_packs_as_messages(
    parts: list[tuple[int, bool, int]], cache_bytes: int, random: object
) -> None:
    store = MemoryStore()
    bounds = Bounds(cache_bytes=cache_bytes, retention_us=10)
    journal = Journal(store, "", bounds)
    wanted: list[Message] = []
    counts: list[int] = []
    for count, is_pack, references in parts:
        letters = [(len(wanted) + i, 7, b'{"x":1}', b"." * i) for i in range(1, count + 1)]
        messages = messages_of(ANN, journal.clock(len(wanted)), letters)
        lot = Pack(ANN, journal.clock(0), run_of(letters)) if is_pack else messages
        chosen = [references if i % 3 == 0 else 0 for i in range(count)]
        first = journal.extend(lot, weigh(lot), chosen)
        assert first == len(wanted) + 1
        assert weigh(lot) == weigh(messages)
        wanted += messages
        counts += chosen
    journal.seal()
    positions = list(range(1, len(wanted) + 1))
    random.shuffle(positions)  # type: ignore[attr-defined]
    for found in (journal, Journal(store, "", bounds)):
        assert [m for part in found.pick(positions) for m in part] == [
            wanted[n - 1] for n in positions
        ]
        assert found.read(positions) == [wanted[n - 1] for n in positions]
        ascending = sorted(positions)
        assert [m for part in found.pick(ascending) for m in part] == wanted
    journal.sweep(1_000, 1 << 62)  # thinned: the rest is still there
    needed = [n for n in positions if counts[n - 1]]
    assert journal.read(needed) == [wanted[n - 1] for n in needed]
    assert [m for part in journal.pick(needed) for m in part] == journal.read(needed)


@given(
    st.lists(st.tuples(st.integers(0, 2**63 - 1), st.binary(max_size=9)), min_size=1, max_size=9),
    st.data(),
)
def test_frames_of_packs_are_those_of_messages(
    drawn: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    numbers = st.one_of(st.integers(0, 300), st.integers(0, 2**40))
    letters = [(number, data.draw(numbers), b'{"x":1}', body) for number, body in drawn]
    run, again = run_of(letters), data.draw(st.booleans())
    places = data.draw(st.lists(st.sampled_from(range(len(letters))), max_size=9))
    positions = [data.draw(numbers) for _ in places]
    id = data.draw(numbers)
    run.sign("ann/é")
    written = deliver_entries(run, places, positions, id, again)
    wanted = [
        Letter(Deliver((id,), position, "ann/é", n, time, again), text, body)
        for position, (n, time, text, body) in zip(
            positions, [letters[at] for at in places], strict=True
        )
    ]
    assert list(Frames().feed(written)) == wanted
    assert written == b"".join(letter_frame(*letter) for letter in wanted)
    picked = Picked(Pack("ann/é", 9, run), places)
    assert [m.number for m in picked] == [letters[at][0] for at in places]


def test_a_pack_is_stored_as_the_frames_that_came() -> None:
    letters = [(n, 7, b'{"x":1}', b"body") for n in range(1, 10)]
    frames = b"".join(letter_frame(Publish(n, t, True), text, b) for n, t, text, b in letters)
    noise = letter_frame(Publish(0, 0, False), b"{}", b"")
    run, _ = scan(noise + frames, len(noise), kept._ANY)
    assert run is not None
    assert run.alone() is run
    rest, _ = scan(frames + bytes(1000), 0, kept._ANY)
    assert rest is not None
    assert list(rest.alone()) == letters
    assert rest.alone().bytes == frames
    stored = to_bytes(Pack(ANN, 5, run))
    assert frames in stored
    again = from_bytes(stored)
    assert isinstance(again, Pack)
    assert list(again) == messages_of(ANN, 5, letters)
