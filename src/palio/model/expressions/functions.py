"""The functions that expressions may use, one table: what each is called, takes and computes.

Most are strict: NULL for a NULL. Conditions and alternatives (`case`, `coalesce`, `and`, `or`) are not
here: only what is chosen is computed (`evaluation.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from palio.model.expressions import logic
from palio.model.expressions import number_functions as numbers
from palio.model.expressions import text_functions as texts
from palio.model.expressions import time_functions as times
from palio.model.expressions.casts import CASTS
from palio.model.expressions.number_functions import Computed


@dataclass(frozen=True, slots=True)
class Function:
    """It takes `least` to `most` arguments."""

    name: str
    compute: Callable[..., Computed | None]
    least: int
    most: int
    is_strict: bool = True


MANY = 1000
"""Arguments: of those that take any number."""


def _table(*functions: Function) -> dict[str, Function]:
    return {function.name: function for function in functions}


FUNCTIONS = _table(
    Function("add", numbers.add, 2, 2),
    Function("subtract", numbers.subtract, 2, 2),
    Function("multiply", numbers.multiply, 2, 2),
    Function("divide", numbers.divide, 2, 2),
    Function("mod", numbers.mod, 2, 2),
    Function("div", numbers.div, 2, 2),
    Function("negative", numbers.negative, 1, 1),
    Function("abs", numbers.absolute, 1, 1),
    Function("round", numbers.rounded, 1, 2),
    Function("floor", numbers.floor, 1, 1),
    Function("ceil", numbers.ceil, 1, 1),
    Function("power", numbers.power, 2, 2),
    Function("sqrt", numbers.sqrt, 1, 1),
    Function("sign", numbers.sign, 1, 1),
    Function("least", logic.least, 2, MANY, is_strict=False),
    Function("greatest", logic.greatest, 2, MANY, is_strict=False),
    Function("nullif", logic.nullif, 2, 2, is_strict=False),
    Function("equal", logic.equal, 2, 2),
    Function("not_equal", logic.not_equal, 2, 2),
    Function("less", logic.less, 2, 2),
    Function("less_or_equal", logic.less_or_equal, 2, 2),
    Function("greater", logic.greater, 2, 2),
    Function("greater_or_equal", logic.greater_or_equal, 2, 2),
    Function("same", logic.same, 2, 2, is_strict=False),
    Function("lower", texts.lower, 1, 1),
    Function("upper", texts.upper, 1, 1),
    Function("trim", texts.trim, 1, 2),
    Function("ltrim", texts.ltrim, 1, 2),
    Function("rtrim", texts.rtrim, 1, 2),
    Function("length", texts.length, 1, 1),
    Function("substring", texts.substring, 2, 3),
    Function("left", texts.left, 2, 2),
    Function("right", texts.right, 2, 2),
    Function("concat", texts.concat, 1, MANY),
    Function("replace", texts.replace, 2, 3),
    Function("split_part", texts.split_part, 3, 3),
    Function("locate", texts.position, 2, 3),
    Function("startswith", texts.startswith, 2, 2),
    Function("endswith", texts.endswith, 2, 2),
    Function("contains", texts.contains, 2, 2),
    Function("year", times.year, 1, 1),
    Function("quarter", times.quarter, 1, 1),
    Function("month", times.month, 1, 1),
    Function("day", times.day, 1, 1),
    Function("hour", times.hour, 1, 1),
    Function("minute", times.minute, 1, 1),
    Function("second", times.second, 1, 1),
    Function("dayofweek", times.dayofweek, 1, 1),
    Function("weekday", times.weekday, 1, 1),
    Function("dayofyear", times.dayofyear, 1, 1),
    Function("weekofyear", times.weekofyear, 1, 1),
    Function("to_date", times.to_date, 1, 1),
    Function("datediff", times.datediff, 2, 2),
    Function("date_trunc", times.date_trunc, 2, 2),
    *[Function(f"cast as {name}", compute, 1, 1) for name, compute in CASTS.items()],
)
