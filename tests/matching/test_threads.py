"""Several threads give the answers of one, and tell rows of the whole batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from palio import ForwardingTable
from palio.errors import InvalidValue
from palio.lab.data import workloads
from palio.matching import threads as threads_module


@pytest.fixture(autouse=True)
def _no_batch_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads_module, "_ROWS_MIN", 1)


@pytest.mark.parametrize("workload", ["flights", "sigcomm03", "rules"])
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_one_answer(workload: str, threads: int) -> None:
    load = workloads.WORKLOADS[workload](2_000, None, 101, seed=5)
    table = ForwardingTable.compile(load.constraints)
    options: dict[str, Any] = {"attributes": "attributes"} if load.is_sparse else {}
    one = table.forward_batch(load.messages, **options)
    assert table.forward_batch(load.messages, threads=threads, **options).equals(one)
    text = workloads.json_messages(load)
    assert table.forward_batch(text, json="message", threads=threads).equals(one)
    few = list(table.interfaces[::7])
    assert table.forward_batch(load.messages, among=few, threads=threads, **options).equals(
        table.forward_batch(load.messages, among=few, **options)
    )


def test_rows_of_errors_and_failures() -> None:
    table = ForwardingTable.compile({"ann": "1 / x > 0", "bob": "x = 2"})
    rows = pa.table({"x": np.where(np.arange(100) % 30 == 29, 0, 2)})
    failed: list[int] = []
    answer = table.forward_batch(
        rows, threads=4, on_failure=lambda _name, places, _why: failed.extend(places)
    )
    assert sorted(failed) == [29, 59, 89]
    assert answer.to_pylist()[28:31] == [["ann", "bob"], [], ["ann", "bob"]]
    with pytest.raises(InvalidValue, match=r"row 29.*the rule of 'ann'"):
        table.forward_batch(rows, threads=4, strict=True)
    texts = pa.table({"m": ['{"x": 1}'] * 70 + ["{"] + ['{"x": 1}'] * 9})
    with pytest.raises(InvalidValue, match="row 70"):
        table.forward_batch(texts, json="m", threads=4)


def test_an_updated_table_and_no_rows() -> None:
    table = ForwardingTable.compile({"ann": "x > 1"}).updated(add={"bob": "x > 2"})
    rows = pa.table({"x": list(range(50))})
    assert table.forward_batch(rows, threads=3).equals(table.forward_batch(rows))
    assert table.forward_batch(rows.slice(0, 0), threads=3).to_pylist() == []


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_what_is_no_number_of_threads(threads: Any) -> None:
    table = ForwardingTable.compile({"ann": "x > 1"})
    with pytest.raises(InvalidValue, match="a number from 1 on"):
        table.forward_batch(pa.table({"x": [1]}), threads=threads)
