"""The benchmark of updates runs and says what it did; its times are nobody's promise."""

from __future__ import annotations

import pytest

from palio.errors import InvalidValue
from palio.lab.bench import update as bench_update


def test_figures_of_a_small_run() -> None:
    said: list[str] = []
    (result,) = bench_update.run(
        "sigcomm03", 2000, 3000, share=0.2, progress=lambda text, _share: said.append(text)
    )
    assert (result.filters, result.interfaces, result.updates) == (2000, 2000, 3000)
    assert result.compactions > 0
    row = result.row()
    assert all(isinstance(row[k], float) and row[k] > 0 for k in row if k.endswith(("_s", "_ms")))
    assert said[0] == "drawing 2,000 filters"


def test_a_run_that_makes_no_sense() -> None:
    with pytest.raises(InvalidValue, match="no workload 'x'"):
        list(bench_update.run("x", 10, 10))
    with pytest.raises(InvalidValue, match="at least one"):
        list(bench_update.run("sigcomm03", 10, 0))
