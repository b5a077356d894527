"""From a file to the engine of its table; expressions are checked here, arrays in `soundness`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from palio.errors import InvalidPredicate
from palio.matching.computed.compiling import CompiledEngine
from palio.matching.computed.engine import ComputedEngine
from palio.matching.expressions import ExpressionUse
from palio.matching.file import storage
from palio.matching.pivot.engine import PivotEngine
from palio.model.expressions.names import is_computed


def loaded(path: Path) -> tuple[CompiledEngine, pa.StringArray]:
    """The engine and the interfaces of a file of a table; what its expressions may cost is bounded before
    they are read."""
    table, interfaces, hidden, choice = storage.load(path)
    inner = PivotEngine(table)
    inner.use = ExpressionUse(choice)
    names = [n for n in (*table.names, *(hidden.columns.names if hidden else ())) if is_computed(n)]
    if hidden is None and not names:
        return inner, interfaces
    storage.check_expressions(path, names)
    try:
        made = ComputedEngine(inner, hidden, inner.use)
        if hidden is not None:
            hidden.check()
    except InvalidPredicate as error:
        raise storage.unsound_names(path, error.detail) from None
    return made, interfaces
