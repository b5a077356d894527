"""Random event patterns, and events that resemble them. Without null but in arrays: see the reference."""

from __future__ import annotations

from random import Random
from typing import Any

STRINGS = (
    *("a", "b", "ab", "abc", "aXb", "A", "B", "aB", "", "a*b", "a%b", "a_b", "a\\b", "é", "É"),
    *("10.0.0.1", "10.1.2.3", "::1", "0:0::1", "2001:db8::1", "x", "5", "zz abc"),
)
NUMBERS = (0, 1, 5, 5.0, -1, 2.5, 10, 100, 1e3, -0.5, 3.018e2)
NAMES = ("a", "b", "c", "d")
BOUNDS = (["=", 5], ["<", 5], [">=", 1], [">", 0, "<=", 5], [">=", -1, "<", 100], ["<=", 2.5])
BLOCKS = ("10.0.0.0/8", "10.0.0.0/24", "10.1.2.3/31", "2001:db8::/32", "::1/127")


def draw_pattern(r: Random) -> dict[str, Any]:
    found = _fields(r, 0, NAMES)
    if r.random() < 0.2:
        free = [name for name in (*NAMES, "e", "f") if name not in found]
        found["$or"] = [_fields(r, 1, free[-2:]) for _ in range(r.choice([2, 2, 3]))]
    return found


def _fields(r: Random, depth: int, names: Any) -> dict[str, Any]:
    few = r.sample(names, r.choice([1, 1, 2, 2, 3]) if len(names) > 2 else 1)
    return {
        name: _fields(r, depth + 1, NAMES)
        if depth < 2 and r.random() < 0.45
        else [draw_member(r) for _ in range(r.choice([1, 1, 1, 2, 3]))]
        for name in few
    }


def draw_member(r: Random) -> Any:
    text = r.choice(STRINGS)
    edge = r.choice(["prefix", "suffix"])
    match r.randrange(14):
        case 0 | 1 | 2:
            return _scalar(r)
        case 3 | 4:
            return {edge: text}
        case 5:
            return {edge: {"equals-ignore-case": text}}
        case 6:
            return {"equals-ignore-case": text}
        case 7:
            return {"wildcard": _wildcard(r)}
        case 8:
            return {"numeric": r.choice(BOUNDS)}
        case 9:
            return {"exists": r.random() < 0.5}
        case 10:
            return {"cidr": r.choice(BLOCKS)}
        case 11:
            some = [text, r.choice(NUMBERS), r.sample(STRINGS, 2), r.sample(NUMBERS, 2)]
            return {"anything-but": r.choice(some)}
        case 12:
            return {"anything-but": {edge: r.choice([text or "q", ["a", "b"]])}}
    kind = r.choice(["equals-ignore-case", "wildcard"])
    return {"anything-but": {kind: r.choice(["a", "b*", ["ab", "*A"]])}}


def _wildcard(r: Random) -> str:
    pieces = ["a", "b", "X", "*", "\\*", "\\\\", "%", "_"]
    text = "".join(r.choice(pieces) for _ in range(r.randint(1, 5)))
    while "**" in text:
        text = text.replace("**", "*")
    return text


def _scalar(r: Random) -> Any:
    k = r.random()
    return r.choice(STRINGS) if k < 0.55 else r.choice(NUMBERS) if k < 0.85 else r.random() < 0.5


def draw_event(r: Random, pattern: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = _object(r, 0) if r.random() < 0.35 else _near(r, pattern)
    for name in NAMES if r.random() < 0.3 else ():
        if name not in found and r.random() < 0.5:
            found[name] = _held(r, 1)
    return found


def _held(r: Random, depth: int) -> Any:
    k = r.random()
    if depth > 3 or k < 0.5:
        return _scalar(r)
    if k < 0.72:
        return [_element(r, depth + 1) for _ in range(r.choice([0, 1, 1, 2, 2, 3]))]
    return _object(r, depth + 1)


def _element(r: Random, depth: int) -> Any:
    k = r.random()
    if k < 0.05:
        return None
    if depth > 3 or k < 0.4:
        return _scalar(r)
    if k < 0.52:
        return [_element(r, depth + 1) for _ in range(r.choice([0, 1, 2]))]
    return _object(r, depth + 1)


def _object(r: Random, depth: int) -> dict[str, Any]:
    share = 0.6 if depth else 0.75
    return {name: _held(r, depth) for name in NAMES if r.random() < share}


def _near(r: Random, pattern: dict[str, Any]) -> dict[str, Any]:
    """An event that may match."""
    found: dict[str, Any] = {}
    for name, value in pattern.items():
        if name == "$or":
            found.update(_near(r, r.choice(value)))
            continue
        one = _near(r, value) if isinstance(value, dict) else _value_for(r, r.choice(value))
        if one is None or r.random() < 0.07:
            continue
        if r.random() < 0.35:
            others = [_element(r, 2) for _ in range(r.choice([0, 1, 1]))]
            one = [*others, one]
            r.shuffle(one)
            one = [one] if r.random() < 0.15 else one
        found[name] = one
    return found


def _value_for(r: Random, member: Any) -> Any:
    if not isinstance(member, dict):
        return member
    ((kind, wanted),) = member.items()
    if kind == "exists":
        return r.choice(STRINGS) if wanted else None
    if kind == "wildcard":
        return wanted.replace("*", r.choice(["", "Z"]))
    if isinstance(wanted, str) and kind != "cidr":
        more = r.choice(["", "q"])
        return wanted + more if kind == "prefix" else more + wanted
    return _scalar(r)
