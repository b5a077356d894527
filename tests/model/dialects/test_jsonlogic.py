"""Rules of JSONLogic: the cases of the compatibility tables, random rules against a reference, errors."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import palio
from palio.errors import InvalidPredicate, LimitExceeded, ParseError
from palio.model.dialects.documents import DEPTH_MAX
from palio.model.dialects.jsonlogic import read
from palio.model.dialects.jsonlogic_constants import truth
from tests.model.dialects.jsonlogic_reference import evaluate

CASES = json.loads(Path(__file__).with_name("jsonlogic_cases.json").read_text("utf-8"))

REASONS = {
    "no message": "the data is null, a number or an array, and a message is an object",
    "reduce": "reduce over an array of the message",
    "merge": "merge of attributes, which may be arrays or not",
    "values": "=== and the like of more than two values, / of one: proposals of the tables",
    "null == 0": "a proposal of the tables; JavaScript says false",
    "numbers of booleans": "the tables read true as 1 in + and *, and take many values in - and %",
}


def why_not(rule: Any, data: Any) -> str:
    """The reason why a case cannot be expected to pass."""
    text = json.dumps(rule)
    if data is not None and not isinstance(data, dict):
        return "no message"
    if '"reduce"' in text:
        return "reduce"
    if text.startswith('{"merge": [{'):
        return "merge"
    ((operator, raw),) = rule.items() if isinstance(rule, dict) and rule else [("", [])]
    count = len(raw) if isinstance(raw, list) else 1
    if operator in ("==", "!=") and raw == [None, 0]:
        return "null == 0"
    more_than_two = operator in ("==", "!=", "===", "!==", ">", ">=") and count > 2
    if more_than_two or (operator == "/" and count < 2) or raw == []:
        return "values"
    if operator in ("+", "*", "-", "%") and "true" in text:
        return "numbers of booleans"
    return ""


def test_cases_of_the_tables() -> None:
    """A message is selected where the result is truthy."""
    passed: Counter[str] = Counter()
    failed: Counter[tuple[str, str]] = Counter()
    for suite, rule, data, result in CASES:
        kind = "compatible" if suite == "compatible" else "others"
        if data is not None and not isinstance(data, dict):
            failed[kind, "no message"] += 1
            continue
        try:
            is_right = read(json.dumps(rule)).matches(data or {}) is truth(result)
        except ParseError:
            is_right = False
        if is_right:
            passed[kind] += 1
        else:
            assert why_not(rule, data) in REASONS, (suite, rule, data, result)
            failed[kind, why_not(rule, data)] += 1
    assert passed == {"compatible": 266, "others": 479}
    assert failed == {
        ("compatible", "no message"): 6,
        ("compatible", "reduce"): 6,
        ("others", "reduce"): 9,
        ("others", "merge"): 3,
        ("others", "values"): 19,
        ("others", "null == 0"): 2,
        ("others", "numbers of booleans"): 7,
    }


@pytest.mark.parametrize(
    ("rule", "meaning"),
    [
        ({"==": [{"var": "dest"}, "MXP"]}, "dest = 'MXP'"),
        ({"===": [{"var": "a.b"}, 5]}, "a.b = 5"),
        ({"==": [{"var": "x"}, "5"]}, "x = '5' OR x = 5"),
        ({"===": [{"var": "x"}, "5"]}, "x = '5'"),
        ({"==": [{"var": "x"}, None]}, "x IS NULL"),
        ({"!=": [{"var": "x"}, None]}, "x IS NOT NULL"),
        ({"!=": [{"var": "x"}, "a"]}, "NOT coalesce(x = 'a', FALSE)"),
        ({">": [{"var": "x"}, 5]}, "x > 5"),
        ({"<": [{"var": "x"}, 5]}, "x < 5 OR x IS NULL"),
        ({"<": [{"var": ["x", 9]}, 5]}, "x < 5"),
        ({"<": [1, {"var": "x"}, 5]}, "x > 1 AND x < 5 OR x > 1 AND x IS NULL"),
        ({"in": [{"var": "x"}, ["a", "b"]]}, "x IN ('a', 'b')"),
        ({"in": [{"var": "x"}, [1, "a", None]]}, "x = 1 OR x = 'a' OR x IS NULL"),
        ({"in": ["a", {"var": "x"}]}, "array_contains(x, 'a') OR contains(x, 'a')"),
        ({"in": [{"var": "x"}, "abc"]}, "contains('abc', CAST(x AS STRING))"),
        ({"or": [{"==": [{"var": "x"}, 1]}, {"==": [1, 1]}]}, "TRUE"),
        ({"and": [{"==": [{"var": "x"}, 1]}, {"in": ["a", "cat"]}]}, "x = 1"),
        ({"!!": {"var": "x"}}, "x = TRUE OR x <> 0 OR x <> '' OR size(x) > 0"),
        ({"!": {"var": "x"}}, "x = FALSE OR x = 0 OR x = '' OR size(x) = 0 OR x IS NULL"),
        ({"==": [{"+": [{"var": "x"}, {"*": [2, {"var": "y"}]}]}, 7]}, "x + 2 * y = 7"),
        ({">": [{"-": [{"var": "x"}, 1]}, 7]}, "coalesce(x, 0) - 1 > 7"),
        ({"==": [{"substr": [{"var": "x"}, 0, 3]}, "abc"]}, "substring(x, 1, 3) = 'abc'"),
        ({"if": [{"==": [{"var": "x"}, 1]}, True, False]}, "x = 1"),
        (
            {"some": [{"var": "items"}, {">": [{"var": "qty"}, 3]}]},
            "exists(items, each -> each.qty > 3)",
        ),
        ({"missing": ["a"]}, "a IS NULL OR a = ''"),
        ({"==": [{"var": "tags.0"}, "a"]}, "tags[0] = 'a'"),
    ],
)
def test_a_rule_is_a_condition(rule: Any, meaning: str) -> None:
    assert str(read(rule)) == str(palio.parse(meaning))
    assert read(json.dumps(rule)) == read(rule)


# ---- random rules

NUMBERS, STRINGS, FLAGS = ("n1", "n2"), ("s1", "s2"), ("b1", "b2")


class _Draw:
    """Rules over attributes that have one type each, so that nothing depends on casts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def data(self) -> dict[str, Any]:
        draw = self.random
        whole = {
            **{name: draw.choice([0, 1, -2, 2.5, 7]) for name in NUMBERS},
            **{name: draw.choice(["", "a", "b", "ab"]) for name in STRINGS},
            **{name: draw.choice([True, False]) for name in FLAGS},
            "list": [draw.choice([0, 1, 2, 7]) for _ in range(draw.randint(0, 3))],
            "items": [
                {name: draw.choice([0, 1, 2, 7]) for name in ("p", "q") if draw.random() < 0.8}
                for _ in range(draw.randint(0, 3))
            ],
        }
        return {name: value for name, value in whole.items() if draw.random() < 0.7}

    def number(self, depth: int, names: tuple[str, ...] = NUMBERS) -> Any:
        draw = self.random
        if depth <= 0 or draw.random() < 0.6:
            constant = draw.choice([0, 1, 2, 2.5, -2])
            default = [draw.choice([1, 5])] if draw.random() < 0.3 else []
            return draw.choice([constant, {"var": [draw.choice(names), *default]}])
        operator = draw.choice(["+", "-", "*", "min", "max"])
        return {operator: [self.number(depth - 1, names) for _ in range(2)]}

    def string(self, depth: int) -> Any:
        draw = self.random
        if depth <= 0 or draw.random() < 0.7:
            return draw.choice(["", "a", "ab", {"var": draw.choice(STRINGS)}])
        if draw.random() < 0.5:
            return {"cat": [self.string(depth - 1), self.string(depth - 1)]}
        return {"substr": [self.string(depth - 1), draw.choice([0, 1]), draw.choice([1, 2])]}

    def condition(self, depth: int) -> Any:
        draw = self.random
        kinds = ["compare", "compare", "string", "flag", "in", "missing", "list", "items"]
        if depth > 0:
            kinds += ["and", "or", "!", "if", "and", "or"]
        return getattr(self, f"_{draw.choice(kinds)}".replace("!", "not"))(depth - 1)

    def _compare(self, depth: int) -> Any:
        operator = self.random.choice(["==", "===", "!=", "!==", "<", "<=", ">", ">="])
        return {operator: [self.number(depth), self.number(depth)]}

    def _string(self, depth: int) -> Any:
        operator = self.random.choice(["==", "===", "!=", "!=="])
        return {operator: [self.string(depth), self.string(depth)]}

    def _flag(self, _depth: int) -> Any:
        names = (*FLAGS, *NUMBERS, *STRINGS, "list", "nowhere")
        return self.random.choice([{"var": self.random.choice(names)}, {"!": {"var": "n1"}}])

    def _in(self, depth: int) -> Any:
        draw = self.random
        if draw.random() < 0.3:
            return {"in": [draw.choice([0, 1, 7]), {"var": "list"}]}
        if draw.random() < 0.5:
            return {"in": [self.number(0), [1, 2, 2.5]]}
        return {"in": [self.string(depth), draw.choice([["a", "b", ""], "ab", {"var": "s2"}])]}

    def _missing(self, _depth: int) -> Any:
        names = self.random.sample([*NUMBERS, *STRINGS, "nowhere"], 3)
        count = self.random.randint(1, 3)
        return self.random.choice([{"missing": names}, {"missing_some": [count, names]}])

    def _list(self, depth: int) -> Any:
        operator = self.random.choice(["some", "all", "none", "filter"])
        comparison = self.random.choice(["==", "<", ">=", "!="])
        return {operator: [{"var": "list"}, {comparison: [{"var": ""}, self.number(0, ("",))]}]}

    def _items(self, depth: int) -> Any:
        operator = self.random.choice(["some", "all", "none"])
        comparison = self.random.choice(["==", "<", ">=", "!="])
        sides = [self.number(1, ("p", "q")), self.number(1, ("p", "q"))]
        return {operator: [{"var": "items"}, {comparison: sides}]}

    def _and(self, depth: int) -> Any:
        return {"and": [self.condition(depth) for _ in range(self.random.randint(1, 3))]}

    def _or(self, depth: int) -> Any:
        return {"or": [self.condition(depth) for _ in range(self.random.randint(1, 3))]}

    def _not(self, depth: int) -> Any:
        return {"!": [self.condition(depth)]}

    def _if(self, depth: int) -> Any:
        return {"if": [self.condition(depth) for _ in range(self.random.randint(2, 5))]}


@pytest.mark.parametrize("limit", [4096, 2])
def test_random_rules_select_what_the_reference_says(limit: int) -> None:
    """With a small limit, tests of attributes are expressions instead of several constraints."""
    draw, compared = _Draw(limit), 0
    for _ in range(250):
        rule = draw.condition(2)
        try:
            predicate = read(rule, limit=limit)
        except LimitExceeded:
            continue
        for _ in range(8):
            data = draw.data()
            compared += 1
            expected = truth(evaluate(rule, data))
            assert predicate.matches(data) is expected, (rule, data, str(predicate))
    assert compared > 1000


# ---- differences, errors, bounds


def test_attributes_are_not_cast() -> None:
    """Where JavaScript would."""
    assert evaluate({"==": [{"var": "x"}, 5]}, {"x": "5"})
    assert not read({"==": [{"var": "x"}, 5]}).matches({"x": "5"})
    assert read({"==": [{"+": {"var": "x"}}, 5]}).matches({"x": "5"}), "+ casts"
    assert read({"==": [{"var": "x"}, "5"]}).matches({"x": 5}), "literals are cast"


def test_wide_rules_stay_one_filter() -> None:
    flags = {"and": [{"var": f"c{at}"} for at in range(30)]}
    predicate = read(flags)
    assert len(predicate) == 1
    everything = {f"c{at}": [True, 1, "a", 2.5][at % 4] for at in range(30)}
    assert predicate.matches(everything)
    assert not predicate.matches({**everything, "c7": 0})


@pytest.mark.parametrize(
    ("rule", "at", "reason"),
    [
        ('{"and": [true, {"nope": 1}]}', '{"nope', "there is no operation 'nope'"),
        ('{"a": 1, "b": 2}', "{", "an object with one key"),
        ('{"==": [{"var": "x"}, [1]]}', "[{", "use in, some, all or none"),
        ('{"==": [{"var": "x"}]}', '[{"var', "it takes two values"),
        ('{"<": [1, 2, 3, 4]}', "[1, 2", "two or three"),
        ('{"!": [{"var": ""}]}', '""', "the whole message"),
        ('{"var": {"cat": ["a", {"var": "x"}]}}', "{", "written in the rule"),
        ('{"reduce": [{"var": "x"}, {"+": [1]}, 0]}', '[{"var', "reduce over an array"),
        ('{"merge": [{"var": "x"}]}', '[{"var', "written in the rule"),
        ('{"==": [{"+": []}, 1]}', "[]}, 1", "+ needs a value"),
        ('{"substr": ["abc", {"var": "x"}]}', '["abc', "whole numbers"),
        ('{"some": [{"var": "x"}]}', '[{"var', "an array and a rule"),
    ],
)
def test_errors_point_at_the_character(rule: str, at: str, reason: str) -> None:
    with pytest.raises(ParseError) as raised:
        read(rule)
    assert reason in raised.value.reason
    assert rule[raised.value.position :].startswith(at), rule[raised.value.position :]


def test_errors_of_objects_name_the_way() -> None:
    with pytest.raises(ParseError, match=r"at and\[1\]"):
        read({"and": [True, {"nope": 1}]})


def test_bounds() -> None:
    with pytest.raises(ParseError, match="not JSON"):
        read('{"==": [1 2]}')
    with pytest.raises(LimitExceeded, match="nested more than"):
        read("[" * 100_000 + "]" * 100_000)
    deep: Any = {"var": "x"}
    for _ in range(DEPTH_MAX):
        deep = {"!": [deep]}
    with pytest.raises(LimitExceeded, match="nested more than"):
        read(deep)
    with pytest.raises(InvalidPredicate, match="keys"):
        read({1: 2})
    nested: Any = {"var": "x"}
    for _ in range(DEPTH_MAX // 2 - 2):
        nested = {"if": [nested, {"var": "a"}, {"var": "b"}]}
    with pytest.raises(LimitExceeded):
        read(nested)
    with pytest.raises(ParseError, match="64 bits"):
        read('{"==": [{"var": "x"}, 99999999999999999999]}')
