"""JSONLogic as its documentation has it, evaluated rule by rule: what translated rules are compared with.

It follows the operators, not the translation; casts are those of JavaScript.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from typing import Any

from palio.model.dialects import jsonlogic_constants as javascript
from palio.model.dialects.jsonlogic_constants import truth


def evaluate(rule: Any, data: Any) -> Any:
    if isinstance(rule, list):
        return [evaluate(one, data) for one in rule]
    if not isinstance(rule, dict) or not rule:
        return rule
    ((operator, raw),) = rule.items()
    arguments = raw if isinstance(raw, list) else [raw]
    if operator in LAZY:
        return LAZY[operator](arguments, data)
    values = [evaluate(one, data) for one in arguments]
    if operator in javascript.COMPARISONS:
        test = javascript.COMPARISONS[operator]
        return all(test(a, b) for a, b in pairwise(values))
    if operator in EAGER:
        return EAGER[operator](values, data)
    return javascript.arithmetic(operator, values)


def var(values: list[Any], data: Any) -> Any:
    path, default, *_ = [*values, None, None]
    found = data
    for name in str(path).split(".") if path not in (None, "") else []:
        if isinstance(found, list) and name.isdigit():
            found = found[int(name)] if int(name) < len(found) else None
        else:
            found = found.get(name) if isinstance(found, dict) else None
    return default if found is None else found


def missing(values: list[Any], data: Any) -> list[Any]:
    names = values[0] if values and isinstance(values[0], list) else values
    return [name for name in names if var([name], data) in (None, "")]


def missing_some(values: list[Any], data: Any) -> list[Any]:
    lacking = missing([values[1]], data)
    return [] if len(values[1]) - len(lacking) >= values[0] else lacking


def merge(values: list[Any], _data: Any) -> list[Any]:
    return [one for part in values for one in (part if isinstance(part, list) else [part])]


def choose(rules: list[Any], data: Any) -> Any:
    at = 0
    while at + 1 < len(rules):
        if truth(evaluate(rules[at], data)):
            return evaluate(rules[at + 1], data)
        at += 2
    return evaluate(rules[at], data) if at < len(rules) else None


def conjunction(rules: list[Any], data: Any) -> Any:
    found = None
    for rule in rules:
        found = evaluate(rule, data)
        if not truth(found):
            return found
    return found


def disjunction(rules: list[Any], data: Any) -> Any:
    found = None
    for rule in rules:
        found = evaluate(rule, data)
        if truth(found):
            return found
    return found


def elements(rules: list[Any], data: Any) -> list[Any]:
    found = evaluate(rules[0], data)
    return found if isinstance(found, list) else []


def chosen(rules: list[Any], data: Any) -> list[Any]:
    return [one for one in elements(rules, data) if truth(evaluate(rules[1], one))]


def reduced(rules: list[Any], data: Any) -> Any:
    return reduce(
        lambda total, one: evaluate(rules[1], {"accumulator": total, "current": one}),
        elements(rules, data),
        evaluate(rules[2], data),
    )


LAZY = {
    "if": choose,
    "?:": choose,
    "and": conjunction,
    "or": disjunction,
    "filter": chosen,
    "map": lambda rules, data: [evaluate(rules[1], one) for one in elements(rules, data)],
    "some": lambda rules, data: bool(chosen(rules, data)),
    "none": lambda rules, data: not chosen(rules, data),
    "all": lambda rules, data: 0 < len(elements(rules, data)) == len(chosen(rules, data)),
    "reduce": reduced,
}
EAGER = {
    "var": var,
    "missing": missing,
    "missing_some": missing_some,
    "merge": merge,
    "!": lambda values, _data: not truth(values[0]),
    "!!": lambda values, _data: truth(values[0]),
    "in": lambda values, _data: javascript.contains(values[0], values[1]),
    "cat": lambda values, _data: javascript.joined(values, ""),
    "substr": lambda values, _data: javascript.substring(*values),
    "log": lambda values, _data: values[0],
}
