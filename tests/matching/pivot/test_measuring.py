"""Statistics say what is there: sizes, pivots and candidates against counting by hand."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio import ForwardingTable, Message, Predicate
from palio.errors import PalioError
from palio.lab.data import workloads
from palio.matching.encode import codes
from palio.matching.encode.columns import from_predicates
from palio.matching.encode.decoding import Decoder
from palio.matching.pivot.engine import PivotEngine
from palio.matching.pivot.likelihood import Constraints, guess
from palio.matching.pivot.predicates import Operands
from palio.matching.pivot.sample import take_sample
from palio.matching.statistics import ALWAYS, Stats
from palio.model.predicate import Constraint, Filter, Op
from tests.matching.test_engine import MESSAGES, TABLES


def filed(engine: PivotEngine) -> list[tuple[Constraint | None, int, int]]:
    """What each key stands for (None: TRUE), decoded, with its filters alone and its others."""
    p = engine.table.pivots
    sets = (p.set_at, p.set_split, p.set_keys)
    decoder = Decoder(engine.table.names, Operands(engine.table.strings), sets)
    found = []
    for d in range(len(p.kind)):
        name = max(
            (n for n in range(len(engine.table.names)) if p.directory_at[n] <= d), default=-1
        )
        for k in range(p.keys_at[d], p.keys_at[d + 1]):
            kind, domain = int(p.kind[d]), int(p.domain[d])
            meant = None
            if d not in p.always:
                number = kind == codes.ANY and domain == codes.NUMBER
                meant = decoder.constraint(
                    name, kind, codes.EVERY if number else domain, int(p.keys[k])
                )
            alone, others = np.diff(p.alone_at)[k], np.diff(p.entries_at)[k]
            found.append((meant, int(alone), int(others)))
    return found


def touches(constraint: Constraint | None, number: bool, message: Message) -> bool:
    if constraint is None:
        return True
    value = message.get(constraint.name)
    if number and isinstance(value, bool | str) | hasattr(value, "year"):
        return False
    return Predicate((Filter((constraint,)),)).matches(message)


def numbers(engine: PivotEngine) -> list[bool]:
    """Which keys ask for the presence of a number."""
    p = engine.table.pivots
    asks = (p.kind == codes.ANY) & (p.domain == codes.NUMBER)
    return [bool(x) for x in np.repeat(asks, np.diff(p.keys_at))]


@settings(max_examples=200, deadline=None)
@given(TABLES, st.lists(MESSAGES, min_size=1, max_size=6), st.booleans())
def test_counted_costs_are_those_of_counting_by_hand(
    table: list[Predicate], found: list[dict[str, object]], sampled: bool
) -> None:
    messages = [Message(m) for m in found]
    columns = from_predicates((f"i{n}", p) for n, p in enumerate(table))
    engine = PivotEngine.compile(columns, messages if sampled else None)
    made = ForwardingTable(engine, pa.array(columns.interfaces, pa.string()))
    stats = made.stats(messages)
    keys = list(zip(filed(engine), numbers(engine), strict=True))
    taken = candidates = 0
    pivots: Counter[str] = Counter()
    for message in messages:
        for (constraint, alone, others), number in keys:
            if touches(constraint, number, message):
                taken += alone
                candidates += others
                pivots[constraint.name if constraint is not None else ALWAYS] += others
    assert stats.sampled == len(messages)
    assert stats.taken * len(messages) == pytest.approx(taken)
    assert stats.candidates * len(messages) == pytest.approx(candidates)
    for name, count in pivots.items():
        own = sum(p.candidates for p in stats.pivots if p.name == name)
        assert own * len(messages) == pytest.approx(count)
    matched = sum(p.matches(m) for p in table for m in messages)
    assert stats.matches is not None
    assert stats.matches * len(messages) == pytest.approx(matched)
    assert stats.checks >= stats.candidates * (1 - 1e-9)


@settings(max_examples=100, deadline=None)
@given(TABLES)
def test_sizes(table: list[Predicate]) -> None:
    made = ForwardingTable.compile({f"i{n}": p for n, p in enumerate(table)})
    stats = made.stats()
    stored = [made.predicate(name) for name in made.interfaces]  # as decoded
    assert stats.interfaces == len(table)
    assert stats.filters == sum(len(p) for p in stored)
    decoded = sum(p.size for p in stored)
    if any(c.op is Op.IN for p in table for f in p.filters for c in f.constraints):
        assert stats.constraints <= decoded  # what follows a set is stored once for its members
    else:
        assert stats.constraints == decoded
    assert stats.alone <= stats.filters == sum(p.filters for p in stats.pivots)
    assert stats.bytes == sum(stats.bytes_by_part.values())
    assert sum(c.share for c in stats.costly) <= 1 + 1e-9
    assert isinstance(str(stats), str)


def test_a_mapped_table_tells_the_same(tmp_path: Path) -> None:
    load = workloads.WORKLOADS["flights"](2_000, "all", 200, seed=3)
    made = ForwardingTable.compile(load.constraints)
    made.save(tmp_path / "t")
    mapped = ForwardingTable.load(tmp_path / "t")
    assert mapped.stats() == made.stats()
    assert mapped.stats(load.messages) == made.stats(load.messages)


def test_guesses_of_a_table_are_those_that_chose_its_pivots() -> None:
    columns = from_predicates(
        (f"i{n}", Predicate((Filter((Constraint("x", "=", n % 7), Constraint("y", "<", n))),)))
        for n in range(40)
    )
    engine = PivotEngine.compile(columns)
    stats = ForwardingTable(engine, pa.array(columns.interfaces)).stats()
    chance = guess(Constraints.of(columns))
    expected = np.minimum(chance[0::2], chance[1::2]).sum()
    assert stats.candidates == pytest.approx(expected)


def test_the_sample_of_compiling_is_kept() -> None:
    load = workloads.WORKLOADS["flights"](1_000, "all", 100, seed=4)
    made = ForwardingTable.compile(load.constraints, sample=load.messages)
    assert made.stats().sampled == 100
    assert made.stats() == made.stats(load.messages)


def test_checks_are_counted_to_the_first_that_fails() -> None:
    """x = 1 holds always, y = 1 in half of the messages, z = 1 never."""
    rows = [{"p": 1, "x": 1, "y": n % 2, "z": 0} for n in range(10)]
    made = ForwardingTable.compile({"a": "p = 1 AND x = 1 AND y = 1 AND z = 1"}, sample=rows)
    (pivot,) = made.stats().pivots
    assert (pivot.name, pivot.candidates) == ("z", 0.0)
    others = [{**row, "z": 1} for row in rows]
    stats = made.stats(others)  # candidates always; y judged, then in half of them the two others
    assert stats.candidates == 1.0
    assert stats.checks == pytest.approx(1 + 0.5 + 0.5)


def test_updated_tables_are_compacted_for_it() -> None:
    made = ForwardingTable.compile({"a": "x = 1", "b": "x = 2 AND y = 3"})
    stats = made.updated(add={"c": "z > 1"}, remove=["a"]).stats()
    assert (stats.interfaces, stats.filters, stats.constraints) == (2, 2, 3)


def test_row_is_plain_and_text_names_the_costly() -> None:
    made = ForwardingTable.compile({"a": "x = 1 AND y = 2", "t": "TRUE", "n": "z IS NULL"})
    stats: Stats = made.stats([{"x": 1, "y": 2}, {"x": 1}])
    assert json.loads(json.dumps(stats.row()))["candidates"] == stats.candidates
    text = str(stats)
    assert "counted on 2 messages" in text
    assert "costly name" in text
    assert ALWAYS in {p.name for p in stats.pivots}


@pytest.mark.parametrize("engine", ["counting", "naive"])
def test_other_engines_have_none(engine: str) -> None:
    with pytest.raises(PalioError, match="pivot"):
        ForwardingTable.compile({"a": "x = 1"}, engine).stats()
    with pytest.raises(PalioError, match="takes no sample"):
        ForwardingTable.compile({"a": "x = 1"}, engine, sample=[{"x": 1}])


@pytest.mark.parametrize("wrong", [{"x": 1}, "x", 5])
def test_a_sample_is_rows_or_messages(wrong: object) -> None:
    with pytest.raises(PalioError, match="a sample is"):
        ForwardingTable.compile({"a": "x = 1"}, sample=wrong)


def test_an_empty_table_and_an_empty_sample() -> None:
    assert ForwardingTable.compile({}).stats().filters == 0
    made = ForwardingTable.compile({"a": "x = 1 AND y < 2"}, sample=[])
    assert made.stats() == ForwardingTable.compile({"a": "x = 1 AND y < 2"}).stats()


@settings(max_examples=200, deadline=None)
@given(TABLES, st.lists(MESSAGES, min_size=1, max_size=6))
def test_hits_are_those_of_matching(table: list[Predicate], found: list[dict[str, object]]) -> None:
    """Every constraint that is no weak one, counted against the messages one by one."""
    messages = [Message(m) for m in found]
    columns = from_predicates((f"i{n}", p) for n, p in enumerate(table))
    engine = PivotEngine.compile(columns)
    known = take_sample(messages, engine.table.names, engine.table.strings)
    hits = known.hits(Constraints.of(columns))
    constraints = [c for p in table for f in p.filters for c in f.constraints]
    assert len(hits) == len(constraints)
    for c, count in zip(constraints, hits.tolist(), strict=True):
        if codes.OP[c.op] not in codes.KEPT_INLINE:
            assert count == sum(Predicate((Filter((c,)),)).matches(m) for m in messages), c
