"""Arrays compared with literals: shared, as residuals, and message by message."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest

import palio

LITERALS = ["array('a')", "array('a', 'b')", "array('b', NULL)", "array('c')"]
NAMES = ("tags", "other")


def _rules(rng: random.Random) -> dict[str, str]:
    operators = ["=", "!=", "<", ">=", "<=>"]
    return {
        f"r{i}": f"{rng.choice(NAMES)} {rng.choice(operators)} {rng.choice(LITERALS)}"
        for i in range(60)
    }


@pytest.mark.parametrize("mode", ["auto", "attributes", "residuals"])
def test_every_path(mode: str) -> None:
    rng = random.Random(1)
    rules = _rules(rng)
    held = [None, ["a"], ["a", "b"], ["c"], [], ["b", None]]
    rows = [{name: rng.choice(held) for name in NAMES} for _ in range(40)]
    messages = [{k: v for k, v in row.items() if v is not None} for row in rows]
    wanted = [
        [name for name, rule in rules.items() if palio.parse(rule).matches(message)]
        for message in messages
    ]
    assert sum(map(len, wanted)) > 300
    table = palio.ForwardingTable.compile(rules, expressions=mode)
    assert [table.forward(message) for message in messages] == wanted
    assert [table.forward_json(json.dumps(m).encode()) for m in messages] == wanted
    schema = pa.schema([(name, pa.list_(pa.string())) for name in NAMES])
    assert table.forward_batch(pa.Table.from_pylist(rows, schema=schema)).to_pylist() == wanted
