"""When held messages are released: as a scan of all watches finds it, and at the cost of those due."""

from __future__ import annotations

import random

from palio.model.message import Message
from palio.routing.patterns import Watch, parse
from palio.routing.patterns.active_watch import ActiveWatch
from palio.routing.patterns.due_watches import DueWatches
from palio.routing.patterns.planning import here
from palio.routing.publication import Publish

PATTERN = parse("[t = 'a'] then [t = 'b']")


def watches(count: int, lateness: int = 10) -> list[ActiveWatch]:
    made = [ActiveWatch("ann", Watch(i, PATTERN), lateness, i) for i in range(count)]
    for active in made:
        active.begin(here(PATTERN), 1, None)
    return made


def message(time: int, number: int) -> Publish:
    return Publish(Message({"t": "a"}), "bob", number, time)


def test_the_heap_agrees_with_a_scan() -> None:
    rng, due, all_ = random.Random(7), DueWatches(), watches(20)
    now = 0
    for number in range(3000):
        now += rng.randint(0, 3)
        chosen = rng.randrange(3)
        active = rng.choice(all_)
        if chosen:
            active.take(message(now - rng.randint(0, 9), number))
            due.note(active)
        else:
            expected = [a for a in all_ if a.release_at is not None and a.release_at <= now]
            found = due.take(now)
            assert found == expected
            for one in found:
                one.expire(now)
                due.note(one)
        times = [a.release_at for a in all_ if a.release_at is not None]
        assert due.first == min(times, default=None)
        assert len(due._heap) <= 64
    due.remove(all_[0])
    assert all_[0] not in due.take(2**62)


def test_what_is_taken_is_gone_until_it_is_noted() -> None:
    due, (first, second) = DueWatches(), watches(2)
    for active in (second, first):
        active.take(message(100, 1))
        due.note(active)
        due.note(active)
    assert due.first == 111
    assert due.take(110) == []
    assert due.take(111) == [first, second]
    assert due.first is None
