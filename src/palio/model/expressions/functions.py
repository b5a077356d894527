"""The functions that expressions may use, one table: what each is called, takes and computes.

Most are strict: NULL for a NULL. Conditions and alternatives (`case`, `coalesce`, `and`, `or`) and what
has a lambda are not here: only what is chosen is computed (`evaluation.py`).
"""

from __future__ import annotations

from palio.model.expressions.table.arrays import ARRAYS
from palio.model.expressions.table.entry import Function as Function
from palio.model.expressions.table.logic import LOGIC
from palio.model.expressions.table.numbers import NUMBERS
from palio.model.expressions.table.texts import TEXTS
from palio.model.expressions.table.times import TIMES

FAMILIES: dict[str, dict[str, Function]] = {
    "Comparisons and types": LOGIC,
    "Numbers": NUMBERS,
    "Strings": TEXTS,
    "Times": TIMES,
    "Arrays": ARRAYS,
}
FUNCTIONS: dict[str, Function] = {
    name: function for family in FAMILIES.values() for name, function in family.items()
}
