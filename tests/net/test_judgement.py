"""The judge of the chaos test sees what is wrong: each fault is made by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.net.chaos.dead_letters import DELIVERIES_MAX, Collector
from tests.net.judgement import PLAIN, Answer, Draws, Id, Judge, Repeats, Sent, Taken, Workload

MESSAGES = 400
LATE_S = 5.0
DRAWS = Draws(seed=1, plain_from=MESSAGES, has_true_clocks=True)


class Run:
    """A client has published, and one subscription has all of it as it must; faults are made then."""

    def __init__(self, **more: Any) -> None:
        self.workload = Workload(Random(1))
        self.judge = Judge(self.workload, DRAWS, LATE_S)
        self.began = time.monotonic() - 100
        self.sent = {"c1": Sent("c1", "b1", list(range(MESSAGES)), [self.began] * MESSAGES)}
        self.taken = Taken("c2-0", "c2", "b2", "price >= 0", **more)
        self.ids = [Id("c1", index) for index in range(MESSAGES)]
        for id in self.ids:
            if not DRAWS.terms(id).is_short:
                self.taken.came(id, False, PLAIN)
        known = self.judge.published(self.sent.values())
        self.required = self.judge.required(self.taken, known, 0.0)
        self.allowed = self.judge.allowed(self.taken, known)

    def found(self) -> dict[str, list[Id]]:
        return self.judge.faults(self.taken, self.required, self.allowed, set(), self.sent)

    def one(self, wanted: Callable[[Id], bool]) -> Id:
        return next(id for id in self.ids if wanted(id))


def test_all_is_well() -> None:
    run = Run()
    assert run.found() == {}
    kinds = [DRAWS.terms(id) for id in run.ids]
    assert PLAIN in kinds
    assert any(t.is_short for t in kinds)
    assert any(t.delay for t in kinds)
    assert {DRAWS.answer(run.taken, id) for id in run.ids} == {
        Answer.ACK, Answer.NACK, Answer.REJECT
    }  # fmt: skip


def test_what_is_missing_doubled_or_unwanted() -> None:
    run = Run()
    lost, doubled = run.ids[0], run.ids[1]
    del run.taken.got[lost]
    run.taken.came(doubled, True, PLAIN)
    stranger = Id("c9", 0)
    run.taken.came(stranger, False, PLAIN)
    assert run.found() == {"missing": [lost], "doubled": [doubled], "unwanted": [stranger]}


def test_what_was_given_back_must_come_again_once_and_say_so() -> None:
    run = Run()
    id = run.ids[0]
    run.taken.returned[id] += 1
    assert run.found() == {"missing": [id]}
    run.taken.came(id, True, PLAIN)
    assert run.found() == {}
    run.taken.came(id, False, PLAIN)
    assert run.found() == {"doubled": [id], "unmarked": [id]}


def test_what_was_rejected_may_come_again_if_it_says_so() -> None:
    run = Run()
    id = run.ids[0]
    run.taken.rejected.add(id)
    run.taken.came(id, True, PLAIN)
    assert run.found() == {}


def test_messages_come_at_their_time() -> None:
    run = Run()
    delayed = run.one(lambda one: (DRAWS.terms(one).delay or 0) > 0.2)
    short = run.one(lambda one: DRAWS.terms(one).is_short)
    run.taken.arrived[delayed] = (run.began + 0.1, run.began + 0.1)
    run.taken.got[short] += 1
    run.taken.arrived[short] = (run.began, run.began + 1)
    assert run.found() == {"early": [delayed]}
    run.taken.arrived[delayed] = (run.began + 3, run.began + 3)
    run.taken.arrived[short] = (run.began, run.began + 3 + LATE_S)
    assert run.found() == {"late": [short]}


def test_repeats_of_mqtt_are_marked_unless_its_broker_has_restarted() -> None:
    run = Run(repeats=Repeats.MARKED)
    id = run.ids[0]
    run.taken.came(id, True, PLAIN)
    assert run.found() == {}
    run.taken.came(id, False, PLAIN)
    assert run.found() == {"unmarked": [id]}
    run.judge.restarts["b2"].append(run.taken.arrived[id][0])
    run.taken.came(id, True, PLAIN)
    assert run.found() == {}


def dead_letter(run: Run, id: Id, **more: object) -> Any:
    told = {"dead_letter": "c2-0", "dead_reason": "rejected", **more}
    original = {f"original.{name}": value for name, value in run.workload.pool[id.index].items()}
    return SimpleNamespace(attributes={**told, **original}, body=id.body)


def judged(run: Run, collector: Collector) -> list[str]:
    required = collector.required([(run.taken, run.required)])
    return list(collector.faults(required, [run.taken]))


def test_dead_letters() -> None:
    run = Run()
    collector = Collector(Taken("dead", "c4", "b4", "dead_letter LIKE 'c%'"), DRAWS)
    id, other = [id for id in run.ids if DRAWS.terms(id) is PLAIN][:2]
    run.taken.rejected.add(id)
    assert judged(run, collector) == ["dead letters missing"]
    collector.came(dead_letter(run, id), run.workload.pool[id.index])
    assert judged(run, collector) == []
    collector.came(dead_letter(run, id), run.workload.pool[id.index])
    assert judged(run, collector) == ["dead letters doubled"]
    collector.came(dead_letter(run, other), run.workload.pool[id.index])
    assert judged(run, collector) == [
        "dead letters doubled", "dead letters unwanted", "dead letters changed"
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["c2-0", "somebody else"])
def test_what_is_given_back_every_time_dies(name: str) -> None:
    run = Run(deliveries_max=DELIVERIES_MAX)
    collector = Collector(Taken("dead", "c4", "b4", f"dead_letter = '{name}'"), DRAWS)
    required = collector.required([(run.taken, run.required)])
    dying = {("c2-0", id) for id in run.required if DRAWS.answer(run.taken, id) is Answer.NEVER}
    assert dying
    assert required == (dying if name == "c2-0" else set())
