"""Fuzz the parser for a minute: nothing but the library's own errors may come out.

`make fuzz` runs it; PALIO_FUZZ_SECONDS and PALIO_FUZZ_SEED choose length and seed, and a failure
prints the text that caused it.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

import pytest
from sqlglot.dialects.spark import Spark

import palio
from palio.model import json_form, notation

SECONDS = float(os.environ.get("PALIO_FUZZ_SECONDS", "60"))
SEED = int(os.environ.get("PALIO_FUZZ_SEED", str(time.time_ns() % 1_000_000)))

WORDS = [*Spark.Tokenizer.KEYWORDS, *Spark.Parser.FUNCTIONS]
COMMON = [
    "x",
    "y",
    "a.b",
    "`q",
    "r`",
    "'a'",
    "'b%'",
    '"c"',
    "5",
    "-1",
    "2.5",
    "1e3",
    "(",
    ")",
    ",",
    "=",
    "!=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "<=>",
    "+",
    "-",
    "*",
    "/",
    "!",
    ".",
    "%",
    "AND",
    "OR",
    "NOT",
    "IN",
    "LIKE",
    "BETWEEN",
    "IS",
    "NULL",
    "TRUE",
    "FALSE",
    "TIMESTAMP",
    "'2013-01-01'",
    "CAST",
    "AS",
    "DOUBLE",
    "BIGINT",
    "startswith",
    "endswith",
    "contains",
    "typeof",
    "lower(",
    "abs(",
    "coalesce(",
    "array_contains(",
    "exists(x, t -> ",
    "CASE WHEN",
    "RLIKE",
    "::",
    "[0]",
    "INTERVAL",
    "ESCAPE",
    "DISTINCT",
    "FROM",
    "--",
    "/*",
    "*/",
    "\n",
    "\\",
    "'",
    '"',
    "`",
]
SEEDS = [
    "dest = 'MXP' AND price < 500 OR airline LIKE 'U%'",
    "NOT (x IN (1, 2, -3) AND y BETWEEN 1.5 AND 2) OR z IS NOT NULL",
    "lower(x) = 'a' AND abs(lat - 45.3) < 0.1 OR name LIKE 'a%b_'",
    "exists(tags, t -> t = 'x') AND CASE WHEN x < y THEN 1 ELSE z % 3 END = 1",
    "array_contains(tags, 'x') OR tags[0] = coalesce(a, CAST(b AS STRING), 'c')",
    "year(ts) = 2026 AND s RLIKE '^[a-c]+$' AND price * qty > 2 + 3",
    "ts > TIMESTAMP '2013-01-31 10:00:00' AND NOT startswith(s, 'a''b\\n')",
    "string carrier = UA\nint level > 3\nor\nstring class >* finance/",
    '[[{"name": "price", "op": "<", "type": "int", "value": 500}]]',
]


def soup(draw: random.Random) -> str:
    """Words in any order, sometimes the same few thousands of times."""
    words = [
        draw.choice(COMMON if draw.random() < 0.7 else WORDS) for _ in range(draw.randint(1, 14))
    ]
    if draw.random() < 0.1:
        words = words[:3] * draw.choice([10, 300, 5_000])
    return draw.choice([" ", "", " "]).join(words)


def mutated(draw: random.Random) -> str:
    """A good text with a few characters changed, dropped, doubled or swapped for others."""
    text = list(draw.choice(SEEDS))
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(text) + 1)
        kind = draw.randrange(4)
        if kind == 0:
            text.insert(at, chr(draw.choice([draw.randrange(128), draw.randrange(0x3000)])))
        elif kind == 1:
            del text[at : at + draw.randint(1, 4)]
        elif kind == 2:
            text[at:at] = list(draw.choice(COMMON))
        else:
            text[at:at] = text[draw.randrange(len(text) + 1) :][:20]
    return "".join(text)


PARSERS: list[Callable[[str], object]] = [
    palio.parse,
    palio.parse,
    notation.parse_predicate,
    notation.parse_message,
    json_form.from_json,
    palio.Message.from_json,
]


@pytest.mark.fuzz
def test_parsers_raise_only_their_own_errors() -> None:
    draw = random.Random(SEED)
    deadline = time.monotonic() + SECONDS
    tried = understood = 0
    while time.monotonic() < deadline:
        text = soup(draw) if draw.random() < 0.5 else mutated(draw)
        parser = draw.choice(PARSERS)
        tried += 1
        try:
            parser(text)
            understood += 1
        except palio.PalioError:
            pass
        except BaseException:
            print(f"seed {SEED}, {parser.__name__}: {text!r}")
            raise
    print(f"seed {SEED}: {tried:,} texts, {understood:,} understood")
    assert understood > 0
