"""A state machine of updates, forks and compactions: every version equals its predicates, always.

A version is a table and the dict of predicates that it must be equal to. Rules make versions of
any version, not of the newest only, and all are asked again at every step. Limits are small here,
so that a few updates fill levels and merge them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import palio
from palio import ForwardingTable, Message, Predicate
from palio.matching.versions import updates
from tests.seeds import sizes
from tests.strategies import TRICKY_STRINGS, VALUES, constraints_on, filters_of, predicates_of

NAMES = st.sampled_from(["a", "b", "c"])
FEW = st.sampled_from(["", "a", "b", "ab", "ba", "abc", *TRICKY_STRINGS[:6]])
PREDICATES = predicates_of(filters_of(constraints_on(NAMES), min_size=0, max_size=3))
MESSAGES = st.dictionaries(NAMES, st.one_of(*VALUES.values(), FEW, st.integers(-2, 2)))
INTERFACES = st.sampled_from([f"i{n}" for n in range(6)])
ENTRIES = st.dictionaries(INTERFACES, PREDICATES, max_size=4)


@dataclass(frozen=True)
class Version:
    table: ForwardingTable
    entries: dict[str, Predicate]


class Updates(RuleBasedStateMachine):
    """What a user may do to tables, in any order."""

    versions: Bundle[Version] = Bundle("versions")

    def __init__(self) -> None:
        super().__init__()
        self.known: list[Version] = []
        self.messages = [Message({})]

    def made(self, table: ForwardingTable, entries: dict[str, Predicate]) -> Version:
        self.known.append(Version(table, entries))
        return self.known[-1]

    @initialize(target=versions, entries=ENTRIES, engine=st.sampled_from(["pivot", "naive"]))
    def compile(self, entries: dict[str, Predicate], engine: str) -> Version:
        return self.made(ForwardingTable.compile(entries, engine), entries)

    @rule(target=versions, version=versions, add=ENTRIES, data=st.data())
    def update(self, version: Version, add: dict[str, Predicate], data: st.DataObject) -> Version:
        entries = dict(version.entries)
        remove = data.draw(st.sets(st.sampled_from(sorted(entries)), max_size=2)) if entries else ()
        for name in remove:
            del entries[name]
        for name, predicate in add.items():
            entries[name] = entries[name] | predicate if name in entries else predicate
        return self.made(version.table.updated(add=add, remove=remove), entries)

    @rule(target=versions, version=versions)
    def compact(self, version: Version) -> Version:
        return self.made(version.table.compacted(), version.entries)

    @rule(version=versions, name=INTERFACES)
    def remove_unknown(self, version: Version, name: str) -> None:
        if name not in version.entries:
            with pytest.raises(palio.InvalidPredicate, match=name):
                version.table.updated(add={"x": "a = 1"}, remove=[name])
            assert version.table.interfaces == tuple(version.entries)

    @rule(version=versions, found=MESSAGES)
    def ask_for_everything(self, version: Version, found: dict[str, object]) -> None:
        message = Message(found)
        explained = version.table.explain(message)
        for name, predicate in version.entries.items():
            wanted = predicate.matches(message)
            assert version.table.predicate(name).matches(message) == wanted
            assert explained[name].matches == wanted

    @rule(found=MESSAGES)
    def send(self, found: dict[str, object]) -> None:
        self.messages = [*self.messages[-2:], Message(found)]

    @invariant()
    def every_version_gives_its_answer(self) -> None:
        rows = pa.table({"message": [message.to_json() for message in self.messages]})
        for version in self.known[-8:]:
            names = tuple(version.entries)
            wanted = [
                [name for name, p in version.entries.items() if p.matches(message)]
                for message in self.messages
            ]
            assert version.table.interfaces == names
            assert [version.table.forward(message) for message in self.messages] == wanted
            assert version.table.forward_batch(rows, json="message").to_pylist() == wanted
            ids = version.table.forward_batch(rows, json="message", ids=True).to_pylist()
            assert [[names[i] for i in row] for row in ids] == wanted


@pytest.fixture(params=[(64, 8), (3, 2), (2, 100)], ids=["as it is", "levels", "evaluated"])
def small_limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    recent, lasting = request.param
    monkeypatch.setattr(updates, "RECENT_MAX", recent)
    monkeypatch.setattr(updates, "_LASTING", lasting)


@pytest.mark.usefixtures("small_limits")
@sizes(10, 50)
def test_every_version_equals_its_predicates(size: int) -> None:
    run_state_machine_as_test(
        Updates, settings=settings(max_examples=size, stateful_step_count=20, deadline=None)
    )
