"""Random events and CESQL expressions, of every operator and function."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

NAMES = ["id", "type", "subject", "a", "b", "n", "m", "time"]
TEXTS = [
    "",
    "a",
    "ab",
    "b a",
    "true",
    "FALSE",
    "5",
    "-3",
    "+5",
    "007",
    "abc",
    "4294967296",
    "5.5",
    "x_%",
    " a\u00a0",
]
NUMBERS = [0, 1, -1, 2, 3, 5, -3, 2147483647, -2147483648]
PATTERNS = ["%", "a%", "_", "%b%", "a_", "tr%", "5%", "\\\\%", "x\\\\_\\\\%", "a%c", ""]


def draw_event(rng: Random) -> dict[str, Any]:
    event: dict[str, Any] = {"id": rng.choice(TEXTS), "type": rng.choice(TEXTS)}
    if rng.random() < 0.5:
        event["subject"] = rng.choice(TEXTS)
    for name in ("a", "b", "n", "m"):
        if rng.random() < 0.75:
            event[name] = _attribute(rng)
    if rng.random() < 0.5:
        event["time"] = datetime(2024, 3, rng.randint(1, 28), 10, tzinfo=UTC)
    return event


def _attribute(rng: Random) -> Any:
    kind = rng.random()
    if kind < 0.4:
        return rng.choice(TEXTS)
    if kind < 0.75:
        return rng.choice([*NUMBERS, 1 << 40])
    return rng.choice([True, False, 1.5, 2.0])


def draw_expression(rng: Random, depth: int = 4) -> str:
    """One that gives a Boolean."""
    return _boolean(rng, depth)


def _text(rng: Random) -> str:
    mark = rng.choice("'\"")
    return f"{mark}{rng.choice(TEXTS)}{mark}"


def _any(rng: Random, depth: int) -> str:
    if depth <= 0 or rng.random() < 0.35:
        if rng.random() < 0.6:
            return rng.choice(NAMES)
        return rng.choice([_text(rng), str(rng.choice(NUMBERS)), rng.choice(["TRUE", "false"])])
    return rng.choice([_integer, _string, _boolean])(rng, depth - 1)


def _integer(rng: Random, depth: int) -> str:
    a, b = _any(rng, depth - 1), _any(rng, depth - 1)
    return rng.choice(
        [
            f"({a} {rng.choice('+-*/%')} {b})",
            f"-{a}" if not a.startswith("-") else f"(-({a}))",
            f"ABS({a})",
            f"LENGTH({a})",
            f"int({a})",
        ]
    )


def _string(rng: Random, depth: int) -> str:
    a, b, c = (_any(rng, depth - 1) for _ in range(3))
    return rng.choice(
        [
            f"CONCAT({a}, {b}, {c})",
            f"CONCAT_WS({', '.join([a, b, c][: rng.randint(1, 3)])})",
            f"LOWER({a})",
            f"UPPER({a})",
            f"TRIM({a})",
            f"LEFT({a}, {b})",
            f"RIGHT({a}, {rng.choice(NUMBERS)})",
            f"SUBSTRING({a}, {b})",
            f"SUBSTRING({a}, {rng.choice(NUMBERS)}, {rng.choice(NUMBERS)})",
            f"STRING({a})",
        ]
    )


def _boolean(rng: Random, depth: int) -> str:
    if depth <= 0:
        return rng.choice(
            ["TRUE", "a", "EXISTS b", "b", "n = 5", "id = 'a'", "a = 'ab'", "EXISTS m"]
        )
    kind = rng.random()
    if kind < 0.45:
        parts = [_boolean(rng, depth - 1) for _ in range(rng.randint(2, 3))]
        word = rng.choice(["AND", "OR", "OR", "XOR"])
        return f"({f' {word} '.join(parts)})"
    a, b = _any(rng, depth - 1), _any(rng, depth - 1)
    negation = rng.choice(["", "NOT "])
    if kind < 0.55:
        return f"(NOT {_boolean(rng, depth - 1)})"
    if kind < 0.6:
        return f"EXISTS {rng.choice(NAMES)}"
    if kind < 0.68:
        return f"({a} {negation}LIKE '{rng.choice(PATTERNS)}')"
    if kind < 0.76:
        members = ", ".join(_any(rng, 1) for _ in range(rng.randint(1, 3)))
        return f"({a} {negation}IN ({members}))"
    if kind < 0.8:
        return f"BOOL({a})"
    operator = rng.choice(["=", "=", "!=", "<>", "<", "<=", ">", ">="])
    return f"({a} {operator} {b})"
