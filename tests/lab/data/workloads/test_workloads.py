"""The workloads have the shares that the papers state, and their two forms agree."""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import palio
from palio import Constraint, Filter, Message, Predicate
from palio.errors import InvalidValue
from palio.lab.data import english_words as words
from palio.lab.data import flights as departures
from palio.lab.data.workloads import (
    WORKLOADS,
    Workload,
    constraint_rows,
    disjunction_2006,
    flights,
    json_messages,
    message_dicts,
    predicates,
    rules,
    sigcomm03,
    tr2001,
    tr2006,
)
from palio.lab.data.workloads.workload import CONSTRAINTS, SPARSE_MESSAGES

FILTERS = 20_000

MAKERS: dict[str, Callable[..., Workload]] = {
    "sigcomm03": sigcomm03,
    "tr2001": tr2001,
    "tr2006": lambda filters, interfaces, messages, seed: tr2006(
        filters, interfaces=interfaces, seed=seed
    ),
    "flights": flights,
    "rules": rules,
}
each_maker = pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)


@pytest.fixture(scope="module")
def of_2003() -> Workload:
    return sigcomm03(FILTERS, "all", FILTERS)


@pytest.fixture(scope="module")
def of_2001() -> Workload:
    return tr2001(FILTERS, "all", FILTERS)


@pytest.fixture(scope="module")
def of_2006() -> Workload:
    return tr2006(FILTERS)


def assert_shares(drawn: Sequence[object], shares: Mapping[Any, float]) -> None:
    """Nothing else was drawn, and each share is within 4.5 standard errors of the stated one."""
    counts = Counter(drawn)
    total = sum(shares.values())
    assert set(counts) <= set(shares)
    for item, share in shares.items():
        expected = share / total
        error = (expected * (1 - expected) / len(drawn)) ** 0.5
        assert abs(counts[item] / len(drawn) - expected) <= 4.5 * error, item


def column(workload: Workload, name: str, **where: str) -> list[object]:
    """A column of the constraints, of the rows with these values in other columns."""
    table = workload.constraints
    for other, value in where.items():
        table = table.filter(pc.equal(table[other], value))
    return list(table[name].to_pylist())


def filter_sizes(workload: Workload) -> list[object]:
    return list(Counter(column(workload, "filter")).values())


def attributes(workload: Workload) -> list[dict[str, str]]:
    return [part for message in workload.messages["attributes"].to_pylist() for part in message]


def message_sizes(workload: Workload) -> list[object]:
    return list(pc.list_value_length(workload.messages["attributes"]).to_pylist())


# ---- 2003, Table 1 and section 5.1


def test_2003_sizes(of_2003: Workload) -> None:
    """cl = 1, ch = 10 and al = 1, ah = 20, half open: averages of 5 and 10."""
    assert_shares(filter_sizes(of_2003), dict.fromkeys(range(1, 10), 1))
    assert_shares(message_sizes(of_2003), dict.fromkeys(range(1, 20), 1))


def test_2003_types_and_operators(of_2003: Workload) -> None:
    assert_shares(column(of_2003, "type"), {"string": 50, "int": 50})
    assert_shares([part["type"] for part in attributes(of_2003)], {"string": 50, "int": 50})
    string_ops = {"=": 35, "prefix": 15, "suffix": 15, "contains": 15, "<": 10, ">": 10}
    assert_shares(column(of_2003, "op", type="string"), string_ops)
    assert_shares(column(of_2003, "op", type="int"), {"=": 60, "<": 20, ">": 20})


def test_2003_names_follow_zipf(of_2003: Workload) -> None:
    ranked = of_2003.constraints["name"].chunk(0).dictionary.to_pylist()
    assert len(set(ranked)) == 1_000
    assert set(ranked) <= set(words.DICTIONARY)
    assert_shares(column(of_2003, "name"), {name: 1 / r for r, name in enumerate(ranked, 1)})
    assert {part["name"] for part in attributes(of_2003)} <= set(ranked)


def test_2003_values_are_uniform_and_the_same_on_both_sides(of_2003: Workload) -> None:
    integers = dict.fromkeys(map(str, range(100)), 1)
    assert_shares(column(of_2003, "value", type="int"), integers)
    assert_shares([p["value"] for p in attributes(of_2003) if p["type"] == "int"], integers)
    operands = column(of_2003, "value", type="string")
    assert_shares(operands, dict.fromkeys(operands, 1))
    assert len(set(operands)) == 1_000
    assert set(operands) == {p["value"] for p in attributes(of_2003) if p["type"] == "string"}


# ---- 2001, section 4.1


def test_2001_sizes(of_2001: Workload) -> None:
    assert_shares(filter_sizes(of_2001), dict.fromkeys(range(1, 6), 1))
    assert_shares(message_sizes(of_2001), dict.fromkeys(range(3, 11), 1))


def test_2001_types_and_operators(of_2001: Workload) -> None:
    types = {"string": 40, "int": 40, "bool": 20}
    assert_shares(column(of_2001, "type"), types)
    assert_shares([part["type"] for part in attributes(of_2001)], types)
    for ordered in ("string", "int"):
        assert_shares(column(of_2001, "op", type=ordered), {"=": 60, "<": 20, ">": 20})
    assert_shares(column(of_2001, "op", type="bool"), {"=": 1})


def test_2001_values_are_linear(of_2001: Workload) -> None:
    falling = {str(i): 100 - i for i in range(100)}
    assert_shares(column(of_2001, "value", type="int"), falling)
    assert_shares(column(of_2001, "value", type="bool"), {"true": 50, "false": 50})


@pytest.mark.parametrize(("names", "ignored"), [(1_000, (0.82, 0.96)), (100, (0.15, 0.45))])
def test_2001_messages_that_nobody_wants(names: int, ignored: tuple[float, float]) -> None:
    """4.2, figure 11, at F = 1,000: about 90% are ignored with A = 1,000, 30% with A = 100."""
    workload = tr2001(1_000, 1, 100, attributes=names)
    ((_, predicate),) = predicates(workload)
    share = 1 - np.mean([predicate.matches(message) for message in message_dicts(workload)])
    assert ignored[0] < share < ignored[1]


# ---- 2006, section 4.2


def test_2006_sizes_and_operators(of_2006: Workload) -> None:
    assert_shares(filter_sizes(of_2006), {1: 10, 2: 40, 3: 30, 4: 10, 5: 5, 6: 5})
    others = ("prefix", "suffix", "contains", "!=", "<", ">")
    assert_shares(column(of_2006, "op", type="string"), {"=": 40, **dict.fromkeys(others, 10)})
    assert_shares(column(of_2006, "op", type="int"), {"=": 40, "<": 25, ">": 25, "!=": 10})
    assert_shares(
        column(of_2006, "value", type="int"), dict.fromkeys(map(str, range(-100, 101)), 1)
    )
    assert set(column(of_2006, "value", type="string")) <= set(words.NEWS)


def test_2006_a_name_has_one_type_in_equal_proportions(of_2006: Workload) -> None:
    uniform = tr2006(FILTERS, names=50, zipf=False)
    pairs = set(zip(column(uniform, "name"), column(uniform, "type"), strict=True))
    assert len(pairs) == 50
    assert Counter(type for _, type in pairs) == {"string": 25, "int": 25}
    assert_shares(column(uniform, "name"), {f"a{number}": 1 for number in range(50)})
    assert_shares(
        column(of_2006, "name"), {f"a{number}": 1 / (number + 1) for number in range(500)}
    )


def test_2006_disjunction_is_the_same_draw() -> None:
    p = disjunction_2006(300, names=40, zipf=False, seed=9)
    workload = tr2006(300, names=40, zipf=False, seed=9)
    assert list(predicates(workload)) == [("i0", p)]
    assert len(p) == 300
    assert p.size == workload.constraints.num_rows


# ---- ours


def test_flights_have_wide_messages_and_every_type() -> None:
    workload = flights(2_000, None, 500)
    assert workload.messages.schema == departures.SCHEMA
    assert workload.messages.num_rows == 500
    assert not workload.is_sparse
    assert set(column(workload, "type")) == {"string", "int", "float", "bool", "time", None}
    assert {"in", "absent", "!=", "prefix"} <= set(column(workload, "op"))
    assert all(len(json.loads(str(text))) > 1 for text in column(workload, "value", op="in"))


def test_flights_are_the_subscriptions() -> None:
    workload = flights(500, "all", 10, seed=3)
    texts = dict(departures.subscriptions(1_500, seed=3))
    found = dict(predicates(workload))
    assert len(found) == workload.interfaces > 350
    assert all(predicate == palio.parse(texts[name]) for name, predicate in found.items())


# ---- what holds for all


@each_maker
def test_a_seed_gives_one_workload(maker: Callable[..., Workload]) -> None:
    made = [maker(500, 20, 50, seed=seed) for seed in (5, 5, 6)]
    assert made[0].constraints.equals(made[1].constraints)
    assert made[0].messages.equals(made[1].messages)
    assert not made[0].constraints.equals(made[2].constraints)
    assert made[0].source == made[1].source != made[2].source


@each_maker
def test_layout(maker: Callable[..., Workload]) -> None:
    """Filters are numbered 0, 1, ... and adjacent, interfaces too, all shares even."""
    workload = maker(1_003, 20, 50, seed=1)
    table = workload.constraints
    table.validate(full=True)
    workload.messages.validate(full=True)
    assert table.schema == CONSTRAINTS
    steps = np.diff(table["filter"].to_numpy())
    assert set(steps.tolist()) == {0, 1}
    assert (workload.filters, workload.interfaces) == (1_003, 20)
    owners = dict(zip(table["filter"].to_pylist(), table["interface"].to_pylist(), strict=True))
    assert list(dict.fromkeys(owners.values())) == [f"i{number}" for number in range(20)]
    if maker is not flights:  # deals subscriptions, which have one filter or two
        assert set(Counter(owners.values()).values()) == {50, 51}


@pytest.mark.parametrize("interfaces", [None, "all"])
def test_one_interface_per_filter(interfaces: str | None) -> None:
    table = sigcomm03(100, interfaces, 1).constraints
    expected = [f"i{number}" for number in table["filter"].to_pylist()]
    assert table["interface"].to_pylist() == expected


@each_maker
def test_rows_and_objects_agree(maker: Callable[..., Workload]) -> None:
    """Row by row; and the objects make the same table again."""
    workload = maker(700, 30, 10, seed=2)
    objects = list(predicates(workload))
    flat = [
        (interface, c.name, c.op.value, c.type and c.type.value)
        for interface, predicate in objects
        for filter in predicate
        for c in filter
    ]
    columns = (
        workload.constraints[name].to_pylist() for name in ("interface", "name", "op", "type")
    )
    assert flat == list(zip(*columns, strict=True))
    again = constraint_rows(objects)
    assert again.to_pylist() == workload.constraints.to_pylist()


def test_every_operator_and_type_survives_as_rows() -> None:
    texts = [
        "a = TRUE AND b != 17 AND c < 2.5 AND d LIKE '%x%' AND d NOT LIKE 'y%'",
        "t > TIMESTAMP '2013-01-31 10:00:00.25' OR t IN (TIMESTAMP '2013-01-01', TIMESTAMP '2014-01-01')",
        "n IN (1, 2.5) AND s IN ('[', '\"', 'é') AND gate IS NULL AND s = ''",
        "gate IS NOT NULL AND n = -9223372036854775808",
    ]
    entries = [(f"i{number}", palio.parse(text)) for number, text in enumerate(texts)]
    entries.append(("typed", Predicate.of(Constraint("x", "any", type="string"))))
    entries.append(("far", Predicate.of(Constraint("x", "<", float("inf")))))
    entries.append(("wide", Predicate.of(Constraint("x", "in", [1, 2.5, float("-inf")]))))
    empty = SPARSE_MESSAGES.empty_table()
    assert list(predicates(Workload("own", constraint_rows(entries), empty, ""))) == entries


def test_a_filter_without_constraints_has_no_rows() -> None:
    with pytest.raises(palio.PalioError, match="without constraints"):
        constraint_rows([("all", Predicate((Filter(()),)))])


@each_maker
def test_messages_agree_as_dicts_and_as_json(maker: Callable[..., Workload]) -> None:
    workload = maker(10, 5, 300, seed=4)
    dicts = message_dicts(workload)
    made = json_messages(workload)
    assert made.schema == pa.schema([("message", pa.string())])
    assert len(dicts) == made.num_rows == workload.messages.num_rows
    assert [Message.from_json(text) for text in made["message"].to_pylist()] == list(
        map(Message, dicts)
    )
    assert message_dicts(workload, 7) == dicts[:7]
    part = Workload("part", workload.constraints, workload.messages.slice(100, 50), "")
    assert json_messages(part).equals(made.slice(100, 50).combine_chunks())


@pytest.mark.parametrize(
    "maker", [sigcomm03, tr2001, partial(tr2001, attributes=10)], ids=["2003", "2001", "2001-few"]
)
def test_a_message_is_a_set(maker: Callable[..., Workload]) -> None:
    workload = maker(10, 1, 2_000)
    sizes = message_sizes(workload)
    assert [len(message) for message in message_dicts(workload)] == sizes


def test_messages_do_not_depend_on_the_filters() -> None:
    assert sigcomm03(10, 1, 50).messages.equals(sigcomm03(500, 5, 50).messages)


@pytest.mark.parametrize("maker", WORKLOADS.values(), ids=WORKLOADS)
def test_bad_sizes_are_refused(maker: Callable[..., Workload]) -> None:
    for filters, interfaces, messages in (
        (0, None, 1),
        (10, 0, 1),
        (10, 11, 1),
        (10, "some", 1),
        (10, 2, -1),
    ):
        with pytest.raises(InvalidValue):
            maker(filters, interfaces, messages)


def test_bad_names_are_refused() -> None:
    for attributes in (0, 9, 1_000_000):
        with pytest.raises(InvalidValue):
            tr2001(10, 1, 10, attributes=attributes)
    with pytest.raises(InvalidValue):
        tr2006(10, names=0)


@pytest.mark.slow
def test_five_million_constraints(record_property: Callable[[str, object], None]) -> None:
    """A table of the 2003 paper's largest size; the time is recorded, not judged."""
    started = time.perf_counter()
    workload = sigcomm03(1_000_000, None, 100)
    record_property("seconds", time.perf_counter() - started)
    assert abs(workload.constraints.num_rows - 5_000_000) < 20_000
    assert workload.interfaces == workload.filters == 1_000_000
