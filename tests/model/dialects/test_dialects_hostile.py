"""Rules of strangers in every dialect: huge, nested deep, doubling themselves. They are read or refused in
bounded time, by an error of bounded length."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from palio.dialects import read
from palio.errors import PalioError

SECONDS_MAX = 15
"""Of processor time, on a slow and busy machine; on a quiet one no case takes two."""


def nested(key: str, count: int, inner: str, *, as_list: bool = True) -> str:
    opening, closing = ("[", "]") if as_list else ("", "")
    return f'{{"{key}":{opening}' * count + inner + f"{closing}}}" * count


def over(elements: int, rule: Any, first: Any) -> str:
    return json.dumps({"reduce": [list(range(elements)), rule, first]})


ACCUMULATOR = {"var": "accumulator"}
TWICE = [ACCUMULATOR, ACCUMULATOR]
HUNDRED = list(range(100))
DIGITS = "9" * 100_000
CASES: dict[str, list[str]] = {
    "jms": [
        "(" * 100_000 + "x=1" + ")" * 100_000, "NOT " * 50_000 + "x=1", "-" * 100_000 + "1 = x",
        "x = 1 AND " * 50_000 + "x = 1", "x LIKE '" + "%a" * 50_000 + "'", f"x = {DIGITS}", f"x = 1e{DIGITS}",
        "x + " * 30_000 + "1 > 2", "'" * 100_001, '"' * 100_001, "/*" * 50_000,
        " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(30)),
        "NOT (" + " AND ".join(f"(a{i} <> 1 OR b{i} = 2)" for i in range(40)) + ")",
        "(" * 90 + "x" + " + 1)" * 90 + " > 1",
    ],
    "jsonlogic": [
        nested("and", 50_000, "true"), nested("or", 39, '{"var":"x"}'), nested("!!", 39, '{"var":"x"}'),
        "[" * 200_000 + "]" * 200_000, over(60, {"cat": TWICE}, "a"), over(60, {"merge": TWICE}, [1]),
        over(60, TWICE, 1), over(200, {"*": TWICE}, 3), over(60, {"cat": TWICE}, {"var": "x"}),
        over(60, {"merge": TWICE}, [{"var": "x"}]), nested("var", 1, '"' + "a." * 100_000 + '"'),
        json.dumps({"some": [HUNDRED, {"some": [HUNDRED, {"some": [HUNDRED, {"some": [HUNDRED, {"==": [1, 2]}]}]}]}]}),
        json.dumps({"map": [list(range(200_000)), {"*": [{"var": ""}, 2]}]}),
        json.dumps({"and": [{"or": [{"==": [{"var": f"a{i}"}, 1]}, {"==": [{"var": f"b{i}"}, 2]}]} for i in range(60)]}),
        json.dumps({"cat": [{"var": "x"}] * 20_000}), '{"==":[{"var":"x"},' + DIGITS + "]}",
        json.dumps({"if": [{"var": "x"}, 1] * 10_000}),
    ],
    "mongo": [
        nested("$and", 50_000, "{}"), nested("$nor", 37, '{"a":1},{"b":{"$gt":2}}'), nested("a", 50_000, "1", as_list=False),
        json.dumps({"$and": [{"$or": [{f"a{i}": 1}, {f"b{i}": 2}]} for i in range(60)]}),
        json.dumps({"a": {"$regex": "(a*)*b" * 200}}), json.dumps({"a": {"$regex": "(" * 5000 + ")" * 5000}}),
        json.dumps({"a": {"$regex": "(a{1000}){1000}"}}), json.dumps({"a": {"$regex": "a" * 1_000_000}}),
        json.dumps({"a": {"$regex": "^" + "a?" * 400 + "a" * 400 + "$"}}), json.dumps({"a." * 10_000 + "b": 1}),
        json.dumps({f"a{i}": {"$ne": i} for i in range(3000)}), json.dumps({"a": {"$numberDecimal": "1e999999999"}}),
        json.dumps({"$expr": {"$gt": [{"$add": ["$a"] * 20_000}, 1]}}), json.dumps({"a": {"$numberLong": DIGITS}}),
        '{"a":' + nested("$elemMatch", 38, '{"$gt":1}', as_list=False) + "}", '{"a":' + DIGITS + "}",
    ],
    "eventbridge": [
        nested("a", 50_000, '["x"]', as_list=False), nested("$or", 60, '{"a":["x"]},{"b":["y"]}'),
        json.dumps({f"f{i}": {f"g{j}": [{"exists": False}] for j in range(60)} for i in range(60)}),
        json.dumps({f"a{i}": ["x", "y"] for i in range(3000)}), json.dumps({"a." * 5000 + "b": ["x"]}),
        json.dumps({f"a{i}": [{"exists": bool(i % 2)}] for i in range(4000)}),
        json.dumps({**{f"a{i}": ["x"] for i in range(2000)}, "$or": [{f"b{i}": ["y"]} for i in range(2000)]}),
        json.dumps({"$or": [{"$or": [{f"a{i}_{j}": ["x"]} for j in range(70)]} for i in range(70)]}),
        json.dumps({"a": [{"wildcard": "*a" * 5000}]}), json.dumps({"a": [{"wildcard": "*" * 100_000}]}),
        json.dumps({"a": [{"cidr": "::/0" * 1000}]}), json.dumps({"a": [{"cidr": f"10.0.0.0/{DIGITS}"}]}),
        json.dumps({"a": [{"x" * 100_000: 1}]}), json.dumps({"a": [{"anything-but": {"x" * 100_000: 1}}]}),
        json.dumps({"a": list(map(str, range(200_000)))}), '{"a":["x"],' * 50_000,
    ],
    "cesql": [
        "(" * 100_000 + "x=1" + ")" * 100_000, "NOT " * 50_000 + "x", "x AND " * 50_000 + "y",
        "x LIKE '" + "%a" * 50_000 + "'", "CONCAT(" * 5000 + "x" + ")" * 5000, "x + " * 30_000 + "1 > 2",
        "x XOR " * 3000 + "y", f"x = {DIGITS}", " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(40)),
        f"LEFT(x, {DIGITS}) = 'a'", "CONCAT(" + ",".join(["x"] * 20_000) + ") = 'a'",
    ],
    "mqtt": [
        "+/" * 500_000, "a/" * 127 + "b?" + " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(12)),
        "a?" + " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(30)), "a?" + "(" * 100_000 + "x = 1", "a" * 70_000,
        "#?" + "x = 1 AND " * 50_000 + "x = 1", "?" * 100_000, "a?" + "b" * 1_000_000, "$share/" * 10_000,
    ],
    "cloudevents": [
        nested("all", 50_000, "{}"), nested("any", 38, '{"exact":{"type":"a"}}'), nested("not", 50_000, "{}", as_list=False),
        json.dumps([{"any": [{"exact": {"type": str(i)}} for i in range(50_000)]}]),
        json.dumps([{"all": [{"any": [{"prefix": {f"a{i}": "x"}}, {"suffix": {f"a{i}": "x"}}]} for i in range(60)]}]),
        json.dumps([{"exact": {"type": "a" * 1_000_000}}]), json.dumps([{"sql": "(" * 1000 + "x" + ")" * 1000}]),
    ],
}  # fmt: skip


SLOW = {
    ("jsonlogic", 5),
    ("jsonlogic", 9),
    ("jsonlogic", 11),
    ("jsonlogic", 12),
    ("eventbridge", 14),
}
"""Those that reach a bound after a second or more."""
NUMBERS = [(dialect, number) for dialect, cases in CASES.items() for number in range(len(cases))]


@pytest.mark.parametrize(
    ("dialect", "number"),
    [pytest.param(*one, marks=[pytest.mark.slow] if one in SLOW else []) for one in NUMBERS],
)
def test_a_hostile_rule_is_read_or_refused(dialect: str, number: int) -> None:
    begin = time.process_time()
    size, said = 0, ""
    try:
        size = len(read(CASES[dialect][number], dialect).filters)
    except PalioError as error:
        said = str(error)
    assert time.process_time() - begin < SECONDS_MAX
    assert size <= 4096
    assert len(said) < 2000
