"""2000, 3.7: how the work of the covering relations grows with the size of their arguments.

The work is the number of lines of Python that are executed, which does not depend on the machine. The
relations are evaluated where they hold, since one that fails may end early.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid
from palio.model.advertisement import Advertisement
from palio.model.covering import advertisement_covers, covers, intersects
from palio.model.message import Message
from palio.model.predicate import Constraint, Filter, Predicate
from palio.routing.poset import SUBSCRIPTIONS, Poset

SETTINGS = ExperimentSettings(
    id="2000-relations",
    figure="2000, 3.7",
    title="Work of the covering relations and of the poset",
    text="Filters, advertisements and notifications of 4 to 128 constraints and attributes on as many "
    "names; flat posets of 100 to 3,000 filters of four constraints, into which one more is put, "
    "and which one message looks through. Lines of Python executed.",
)
SIZES = (4, 8, 16, 32, 64, 128)
POSETS = (100, 300, 1_000, 3_000)


def points(scale: float) -> list[dict[str, Plain]]:
    most = 4 if scale < 0.1 else len(SIZES)
    relations = grid(relation=list(RELATIONS), size=SIZES[:most])
    flat = grid(relation=list(FLAT), size=POSETS[: 3 if scale < 0.1 else len(POSETS)])
    return [*relations, *flat]


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    relation, size = values["relation"], values["size"]
    made = {**RELATIONS, **FLAT}[relation](size)
    made()  # what is computed once a process is not counted
    call = {**RELATIONS, **FLAT}[relation](size)
    lines, answer = executed(call)
    return [{"lines": lines, "holds": bool(answer), "argument": size}]


def executed(call: Callable[[], Any]) -> tuple[int, Any]:
    """How many lines of Python a call executes, and its answer."""
    lines = 0

    def trace(_frame: Any, event: str, _argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        answer = call()
    finally:
        sys.settrace(before)
    return lines, answer


def _filter(size: int, slack: int = 0) -> Filter:
    return Filter(tuple(Constraint(f"a{i}", "<", 100 + i + slack) for i in range(size)))


def _advertisement(size: int, slack: int = 0) -> Advertisement:
    return Advertisement(tuple(Constraint(f"a{i}", "<", 100 + i + slack) for i in range(size)))


def _message(size: int) -> Message:
    return Message({f"a{i}": i for i in range(size)})


def _matching(size: int) -> Callable[[], bool]:
    wanted, sent = _filter(size), _message(size)
    return lambda: wanted.matches(sent)


def _allowing(size: int) -> Callable[[], bool]:
    allowed, sent = _advertisement(size), _message(size)
    return lambda: allowed.matches(sent)


def _covering(size: int) -> Callable[[], bool]:
    wide, narrow = Predicate((_filter(size, slack=1),)), Predicate((_filter(size),))
    return lambda: covers(wide, narrow)


def _advertisements(size: int) -> Callable[[], bool]:
    wide, narrow = _advertisement(size, slack=1), _advertisement(size)
    return lambda: advertisement_covers(wide, narrow)


def _intersecting(size: int) -> Callable[[], bool]:
    offered, wanted = _advertisement(size), Predicate((_filter(size),))
    return lambda: intersects(offered, wanted)


def _flat(size: int) -> Poset[Filter]:
    """Filters on four names each, none of which covers another."""
    poset: Poset[Filter] = Poset(SUBSCRIPTIONS)
    for k in range(size):
        poset.insert(_flat_filter(k))
    return poset


def _flat_filter(k: int) -> Filter:
    others = tuple(Constraint(f"b{i}", "<", 100) for i in range(3))
    return Filter((Constraint("key", "=", k), *others))


def _inserting(size: int) -> Callable[[], Any]:
    poset = _flat(size)
    return lambda: poset.insert(_flat_filter(size))


def _looking(size: int) -> Callable[[], Any]:
    poset, sent = _flat(size), Message({"key": 1, "b0": 1, "b1": 1, "b2": 1})
    return lambda: poset.matching(sent)


RELATIONS: dict[str, Callable[[int], Callable[[], Any]]] = {
    "subscription and notification": _matching,
    "advertisement and notification": _allowing,
    "subscription and subscription": _covering,
    "advertisement and advertisement": _advertisements,
    "advertisement and subscription": _intersecting,
}
FLAT: dict[str, Callable[[int], Callable[[], Any]]] = {
    "flat poset, insertion": _inserting,
    "flat poset, look-up": _looking,
}


def plot(rows: Sequence[Row], figure: Any) -> None:
    left, right = figure.subplots(1, 2)
    for relation in distinct(rows, "relation"):
        axis = right if relation in FLAT else left
        line(axis, curve(chosen(rows, relation=relation), "argument", "lines"), relation)
    left.set(xlabel="n = m", ylabel="lines executed", xscale="log", yscale="log")
    right.set(xlabel="R", ylabel="lines executed", xscale="log", yscale="log")
