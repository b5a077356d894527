"""Cells of one name, compared with `is_subset`: numbers that are neighbours, and the decimals between them."""

from __future__ import annotations

from palio.model.boxes import box
from palio.model.valuesets import is_empty, is_subset
from palio.routing.cells import Cell, NameCells
from tests.model.test_covering_decimals import NumberDrawing
from tests.seeds import sizes


@sizes(60, 5_000)
def test_what_lies_around_and_inside(size: int) -> None:
    drawing = NumberDrawing(11)
    for _ in range(size):
        numbers = drawing.pool()[1]
        found = [box(drawing.filter(numbers))["d"] for _ in range(30)]
        sets = [one for one in dict.fromkeys(found) if not is_empty(one)]
        kept: NameCells[int] = NameCells()
        cells = [Cell[int](one) for one in sets]
        for number, cell in enumerate(cells):
            kept.hold(cell, number)
            kept.file(cell, number, alone=True)
        for a in cells:
            wide = {id(b) for b in cells if is_subset(a.allowed, b.allowed)}
            narrow = {id(b) for b in cells if is_subset(b.allowed, a.allowed)}
            assert {id(b) for b in cells if b.holds(a)} == wide, a.allowed
            assert set(map(id, kept.around(a))) == wide, a.allowed
            assert set(map(id, kept.inside(a))) == narrow, a.allowed
