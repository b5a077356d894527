"""The benchmark of the model runs; its times are no promise."""

from __future__ import annotations

import palio
from palio.lab.bench import model


def test_every_rule_parses_and_there_are_as_many_shapes_as_asked() -> None:
    texts = model.rule_texts(200, 20)
    assert len(set(texts)) == 200
    names = {frozenset(c.name for f in palio.parse(text) for c in f) for text in texts}
    assert len(names) == 20


def test_figures_of_a_small_run() -> None:
    (parsed,) = model.parsing(100, 20, repeats=1)
    assert list(parsed.row()) == ["bench", "predicates", "shapes", "per_second"]
    assert parsed.per_second > 0
    reduced = list(model.reductions((50, 100)))
    assert [(r.distribution, r.filters) for r in reduced] == [
        *(("zipf", 50), ("zipf", 100), ("uniform", 50), ("uniform", 100))
    ]
    assert all(0 < r.alpha <= 1 for r in reduced)
