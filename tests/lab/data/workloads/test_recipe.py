"""The options of the papers' workloads: each has the distribution that its paper prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pyarrow.compute as pc
import pytest

from palio.errors import InvalidValue
from palio.lab.bench.engines import matcher
from palio.lab.data.english_words import DICTIONARY
from palio.lab.data.workloads import (
    PLAIN,
    DrawOptions,
    Workload,
    constraint_rows,
    generator,
    message_dicts,
    predicates,
    sigcomm03,
    tr2001,
)
from palio.matching.counting.engine import CountingEngine
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.model.message import Message

each_maker = pytest.mark.parametrize("maker", [sigcomm03, tr2001], ids=["2003", "2001"])
UNEVEN = DrawOptions(uneven=True)
STRICT = DrawOptions(strict=True)
LARGE = DrawOptions(large=True)


def filters_each(workload: Workload) -> list[int]:
    """How many filters each interface has."""
    table = workload.constraints
    owners = dict(zip(table["filter"].to_pylist(), table["interface"].to_pylist(), strict=True))
    assert list(dict.fromkeys(owners.values())) == [f"i{n}" for n in range(workload.interfaces)]
    return list(Counter(owners.values()).values())


@each_maker
def test_filters_of_an_interface_are_uniform(maker: Callable[..., Workload]) -> None:
    """2003, 5.1: uniform in [1, fh), with F = I fh / 2."""
    workload = maker(20_000, 2_000, 1, options=UNEVEN)
    each = filters_each(workload)
    assert (len(each), min(each), max(each)) == (2_000, 1, 19)
    assert abs(workload.filters / 20_000 - 1) < 0.05
    observed = np.bincount(each, minlength=20)[1:]
    assert (
        (observed - 2_000 / 19) ** 2 / (2_000 / 19)
    ).sum() < 43  # chi squared, 18 degrees: 0.001
    assert np.diff(workload.constraints["filter"].to_numpy()).max() == 1


def test_one_filter_an_interface_stays_one() -> None:
    assert sigcomm03(500, "all", 5, options=UNEVEN).constraints.equals(
        sigcomm03(500, "all", 5).constraints
    )


def test_uneven_interfaces_give_pre_processing_something_to_eliminate() -> None:
    """2003, 4.3: an interface goes when each of its filters needs a name that is not there."""
    eliminated = {}
    for options in (PLAIN, UNEVEN):
        load = sigcomm03(20_000, 1_000, 50, options=options)
        engine = CountingEngine(from_constraint_rows(load.constraints), rounds=50)
        matcher(engine, [Message(m) for m in message_dicts(load)])()
        eliminated[options] = engine.counters.interfaces_eliminated / 50 / 1_000
    assert eliminated[UNEVEN] > 0.02
    assert eliminated[UNEVEN] > 5 * eliminated[PLAIN]


@each_maker
def test_strict_constraints_ask_for_their_type(maker: Callable[..., Workload]) -> None:
    """2000, 3.1: the same filters, in which numbers have a type too."""
    plain, strict = maker(300, 20, 60), maker(300, 20, 60, options=STRICT)
    assert strict.messages.equals(plain.messages)
    pairs = zip(predicates(plain), predicates(strict), strict=True)
    for (name, loose), (same, typed) in pairs:
        assert name == same
        for before, after in zip(loose, typed, strict=True):
            assert tuple(c for c in after if c.op != "any") == before.constraints
            asked = [c.name for c in after if c.op == "any"]
            assert len(asked) == len(set(asked))
            assert set(asked) == {c.name for c in before if c.type == "int"}
            for i, c in enumerate(after):
                if c.op == "any":
                    assert (after.constraints[i + 1].name, c.type) == (c.name, "int")
    objects = list(predicates(strict))
    assert constraint_rows(objects).to_pylist() == strict.constraints.to_pylist()
    sent = message_dicts(plain)
    loosely, strictly = dict(predicates(plain)), dict(objects)
    matched = 0
    for message in sent:
        floats = {k: float(v) if type(v) is int else v for k, v in message.items()}
        for name, predicate in strictly.items():
            assert predicate.matches(message) == loosely[name].matches(message)
            matched += predicate.matches(message)
            assert predicate.matches(floats) <= loosely[name].matches(floats)
    assert matched > 0


@each_maker
def test_words_of_the_large_dictionary(maker: Callable[..., Workload]) -> None:
    known = set(DICTIONARY)
    plain, large = maker(500, 20, 5), maker(500, 20, 5, options=LARGE)
    assert large.constraints.equals(maker(500, 20, 5, options=LARGE).constraints)
    for table, share in ((plain.constraints, 1.0), (large.constraints, 0.1)):
        names = pc.unique(table["name"]).to_pylist()
        assert sum(name in known for name in names) <= share * len(names)
    assert "generated dictionary" in large.source


def test_more_words_than_the_small_dictionary_has() -> None:
    assert len(tr2001(10, 1, 1, strings=50_000, options=LARGE).source) > 0
    with pytest.raises(InvalidValue, match="3,299"):
        tr2001(10, 1, 1, strings=50_000)


def test_by_default_nothing_changes() -> None:
    for maker in (sigcomm03, tr2001):
        assert maker(200, 10, 5, options=DrawOptions()).constraints.equals(
            maker(200, 10, 5).constraints
        )
    with pytest.raises(InvalidValue, match="takes no options"):
        generator("flights", UNEVEN)
