"""Random rules with expressions and random messages, on every path that answers them.

A round is some rules and some messages. The naive engine judges each pair; tables of pivots must say the
same: one message, one text, columns, JSON; compiled, updated, compacted, saved and loaded.

    python -m tests.matching.computed.every_path FIRST_SEED ROUNDS
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from palio.errors import PalioError
from palio.matching.table import ForwardingTable
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Predicate
from tests.differential.expression_drawing import COLUMNS, ExpressionDrawing, draw_rows

RULES, MESSAGES = 40, 200
"""Of a round."""
_TYPES = {
    "BOOLEAN": pa.bool_(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "STRING": pa.string(),
    "TIMESTAMP": pa.timestamp("us", "UTC"), "ARRAY<STRING>": pa.list_(pa.string()),
    "ARRAY<BIGINT>": pa.list_(pa.int64()),
    "PRICE": pa.decimal128(12, 3), "COST": pa.decimal128(30, 2), "FINE": pa.decimal128(38, 20),
    "BIG": pa.decimal128(20, 2),
}  # fmt: skip
_PLAIN = (
    "i = {n}", "j > {n}", "s = '{w}'", "s LIKE '{w}%'", "t LIKE '%{w}%'", "x <= {n}", "b", "s IS NULL",
    "array_contains(tags, '{w}')", "array_contains(nums, {n})", "i IN ({n}, {m}, 7)", "i < j", "x + {n} > y",
    "price + 0.{m} = {n}.3", "price * {n} > cost", "price - cost < i", "abs(price - 0.{m}) <= 0.2", "price = cost",
    "price / {m} > 0.{m}", "price % 0.03 = 0.0{m}", "CAST(cost AS STRING) LIKE '%{n}%'", "price > 0.{m}",
    "coalesce(cost, price, x) IN (0.{m}, {n})", "round(price, 1) = greatest(cost, 0.{m})", "price + x > {n}",
    "fine > 0.{m}", "fine <= 0.1", "fine = {n}.10000000000000000001", "fine IN (0.1, {n}, 0.20000000000000000001)",
    "big > 12345678901234567.8{m}", "big = 12345678901234567.8{m}", "big < 12345678901234568", "-fine < -0.{m}",
    "big + 0 >= 12345678901234567.8{m}", "abs(fine - 0.{m}) < 0.10000000000000000001", "big != fine",
    "coalesce(fine, big) NOT IN (0.1, 12345678901234567.88)",
    "CAST(x AS STRING) LIKE '-0%'", "CAST(-x AS STRING) = '-0.0'",
    "lower(s) = '{w}'", "s LIKE '{w}%{v}_'", "abs(x - {n}.5) < {m}", "size(tags) = 2", "tags[0] = '{w}'",
)  # fmt: skip

Row = dict[str, Any]


def draw_rules(seed: int, count: int = RULES) -> dict[str, Predicate]:
    """Conjunctions of plain conditions and drawn ones, some of them joined by OR; by name."""
    draw, drawing = random.Random(seed), ExpressionDrawing(seed)

    def condition() -> str:
        if draw.random() < 0.5:
            n, m = draw.randrange(-3, 12), draw.randrange(12)
            w, v = draw.choice(["a", "b", "abc", ""]), draw.choice("abc")
            found = draw.choice(_PLAIN).format(n=n, m=m, w=w, v=v)
        else:
            found = drawing.boolean(draw.choice((1, 1, 2)))
        return f"NOT ({found})" if draw.random() < 0.15 else found

    rules: dict[str, Predicate] = {}
    while len(rules) < count:
        filters = [
            " AND ".join(f"({condition()})" for _ in range(draw.randint(1, 3)))
            for _ in range(draw.choice((1, 1, 1, 2)))
        ]
        try:
            rules[f"r{len(rules)}"] = parse(" OR ".join(filters), limit=200)
        except PalioError:  # what is drawn need not be a predicate: a bad cast of a literal
            continue
    return rules


def draw_messages(seed: int, count: int = MESSAGES) -> tuple[list[Row], bool]:
    """Messages without NULLs, and whether each attribute is of one type in all of them."""
    draw = random.Random(seed)
    rows = [{k: v for k, v in row.items() if v is not None} for row in draw_rows(seed, count)]
    for row in rows:
        for name, places in (("price", 3), ("cost", 2)):
            if draw.random() < 0.8:
                digits = draw.choice((draw.randrange(-9, 900), draw.randrange(10**6), 10**24 + 1))
                digits = min(digits, 10**8) if name == "price" else digits
                row[name] = Decimal(digits).scaleb(-places)
        for name, near in (("fine", _FINE), ("big", _BIG)):
            if draw.random() < 0.5:
                row[name] = Decimal(draw.choice(near))
    if seed % 2 == 0:
        return rows, True
    for row in rows:
        for name in [*row]:
            if draw.random() < 0.15:
                row[name] = draw.choice(draw.choice(_ODD))
        row |= {name: draw.choice(_ODD)[0] for name in _STRANGE if draw.random() < 0.2}
    return rows, False


_FINE = (
    "0.1", "0.10000000000000000001", "0.09999999999999999999", "3.10000000000000000001", "-0.2", "7",
    "0.20000000000000000001", "-3.00000000000000000001",
)  # fmt: skip
_BIG = (
    "12345678901234567.88",
    "12345678901234567.89",
    "12345678901234567.8",
    "12345678901234568",
    "0.1",
    "-0.01",
)
_ODD: tuple[tuple[Any, ...], ...] = (
    (1, 2.0, "a", True), (("a", 1, None, ("b",), {"k": 1}), (), ("a", "a")), ("", "abc", "A%b", "1"),
    (0, -1, 2**63 - 1, -(2**63)), (1e300, -0.0, float("nan"), float("-inf")), (b"ab", ("b", b"x"), (2.5, 1)),
)  # fmt: skip
_STRANGE = (
    "=lower(s)",
    "=i < j",
    "=0",
    "tags∋a",
    "=array_contains(tags, 'a')",
    "=",
    "\0",
    "tags[0]",
)


def disagreements(seed: int) -> Iterator[tuple[str, str, Row]]:
    """The path, the rule and the message of each wrong answer of a round."""
    rules, (messages, is_typed) = draw_rules(seed), draw_messages(seed)
    checked = [Message(row) for row in messages]
    naive = ForwardingTable.compile(rules, engine="naive")
    expected = [naive.forward(message) for message in checked]
    texts = [message.to_json() for message in checked]
    of_texts = [naive.forward(Message.from_json(text)) for text in texts]  # decimals are doubles
    of_rows = expected
    if is_typed:
        kinds = {**COLUMNS, **{n.lower(): n for n in ("PRICE", "COST", "FINE", "BIG")}}
        schema = pa.schema([(name, _TYPES[kind]) for name, kind in kinds.items()])
        rows = pa.Table.from_pylist(messages, schema=schema)
        of_rows = naive.forward_batch(rows).to_pylist()
    paths: dict[str, list[list[str]]] = {
        "matches": [
            [name for name, rule in rules.items() if rule.matches(message)] for message in checked
        ]
    }
    mode = ("auto", "attributes", "residuals")[seed % 3]
    for kind, table in _tables(rules, mode, seed):
        column = pa.table({"message": texts})
        paths[f"{kind} forward"] = [table.forward(message) for message in checked]
        paths[f"{kind} json"] = table.forward_batch(column, json="message").to_pylist()
        if kind in ("compiled", "loaded"):
            paths[f"{kind} text"] = [table.forward_json(text.encode()) for text in texts]
        if is_typed:
            paths[f"{kind} columns"] = table.forward_batch(rows).to_pylist()
    for path, answers in paths.items():
        oracle = {"json": of_texts, "text": of_texts, "columns": of_rows}
        own = oracle.get(path.split()[-1], expected)
        for message, wanted, found in zip(messages, own, answers, strict=True):
            for name in sorted(set(wanted) ^ set(found)):
                yield path, str(rules[name]), message


def _tables(
    rules: dict[str, Predicate], mode: str, seed: int
) -> Iterator[tuple[str, ForwardingTable]]:
    table = ForwardingTable.compile(rules, expressions=mode)
    yield "compiled", table
    names = [*rules]
    half = {name: rules[name] for name in names[: len(names) // 2]}
    gone = {f"gone{i}": rule for i, rule in enumerate(draw_rules(seed + 1, 5).values())}
    rest = {name: rules[name] for name in names[len(names) // 2 :]}
    updated = ForwardingTable.compile({**half, **gone}, expressions=mode)
    updated = updated.updated(add=rest, remove=[*gone])
    yield "updated", updated
    if seed % 4 == 0:
        yield "compacted", updated.compacted()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.palio"
        table.save(path)
        yield "loaded", ForwardingTable.load(path)


def main(first: int, rounds: int) -> None:
    wrong = 0
    for turn, seed in enumerate(range(first, first + rounds), 1):
        try:
            for path, rule, message in disagreements(seed):
                wrong += 1
                if wrong < 30:
                    print(f"{seed}: {path}: {rule}\n    {message}", flush=True)
        except Exception as error:
            wrong += 1
            print(f"{seed}: {type(error).__name__}: {error}", flush=True)
        if turn % 5 == 0:
            print(f"{turn * RULES * MESSAGES:,} cases, {wrong} wrong", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
