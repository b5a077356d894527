"""What an argument of a function is, where the function gives one of some values: by the function.

    year(at) is 2026         at is from 2026-01-01 until 2027-01-01
    left(s, 1) is 'A'        s begins with 'A'
    x + 1 is above 5         `inverses` says

The answers are never too small. Of a function that is not in the table nothing is known but that its arguments
are there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeAlias

from palio.model import inverses, ranges
from palio.model.expressions.decimals import Exact
from palio.model.expressions.errors import UNCOMPUTABLE
from palio.model.expressions.evaluation import evaluator
from palio.model.expressions.filling import has_attributes
from palio.model.expressions.time_functions import date_trunc
from palio.model.expressions.tree import Call, Constant, Expression
from palio.model.inverses import Interval, Numbers
from palio.model.like import like_parts
from palio.model.operators import OPPOSITE, Op
from palio.model.predicate import Constraint
from palio.model.ranges import UNIVERSE, Ranges
from palio.model.strings import Facts, common_prefix, facts
from palio.model.values import INT_MAX, INT_MIN, Type, instant_from_micros, instant_micros
from palio.model.valuesets import FLOAT, INT, NO_RANGES, ORDERED, PRESENT, ValueSet

_PARTS_MAX = 8
"""Parts of a pattern in the middle: the longest ones."""
_BOOL, _TIME = ORDERED.index(Type.BOOL), ORDERED.index(Type.TIME)
_ALL_TIMES = (UNIVERSE[Type.TIME],)


class WantedValues(NamedTuple):
    """What an expression must be: a set of values, and of decimals, which are exact on the way."""

    values: ValueSet
    decimals: tuple[Interval, ...]

    @property
    def numbers(self) -> Numbers:
        kept = self.values.ranges
        return Numbers(kept[INT], kept[FLOAT], self.decimals)

    @property
    def truth(self) -> bool | None:
        """What a condition must be; None: either."""
        found = self.values.ranges[_BOOL]
        return bool(found[0][0]) if found in (((0, 0),), ((1, 1),)) else None


IS_THERE = WantedValues(PRESENT, inverses.ALL_NUMBERS.decimals)


def truth_of(value: bool) -> WantedValues:
    span = (int(value), int(value))
    return WantedValues(ValueSet(False, _with(_BOOL, (span,)), None), ())


def _with(at: int, spans: Ranges) -> tuple[Ranges, ...]:
    return (*NO_RANGES[:at], spans, *NO_RANGES[at + 1 :])


# ---- by the function: what an argument must be, and which


_Argument: TypeAlias = tuple[int, WantedValues]
_Inverse: TypeAlias = Callable[[Call, WantedValues], _Argument]
_UNKNOWN = (0, IS_THERE)


def _numbers(found: Numbers) -> WantedValues:
    kept = list(NO_RANGES)
    kept[INT], kept[FLOAT] = inverses.few(found.ints), inverses.few(found.floats)
    return WantedValues(ValueSet(False, tuple(kept), None), inverses.few_intervals(found.decimals))


def _strings(*atoms: tuple[Op, str]) -> WantedValues:
    return WantedValues(ValueSet(False, NO_RANGES, atoms), ())


def _split(call: Call) -> tuple[int, Constant] | None:
    """Which of two arguments is computed, and the constant that the other is."""
    if len(call.arguments) == 2:
        for place, other in enumerate(reversed(call.arguments)):
            constant = _constant(other)
            if constant is not None and _constant(call.arguments[place]) is None:
                return place, constant
    return None


def _constant(expression: Expression) -> Constant | None:
    """What literals alone compute, too: not all of it is folded, as 45.0 + 0.3."""
    if isinstance(expression, Constant):
        return expression
    if has_attributes(expression):
        return None
    return Constant(evaluator(expression)({}, lambda _reason: None))


def _arithmetic(call: Call, wanted: WantedValues) -> _Argument:
    split = _split(call)
    if split is None:
        return _UNKNOWN
    place, constant = split
    if wanted is IS_THERE:
        return place, _numbers(inverses.ALL_NUMBERS)
    return place, _numbers(inverses.argument(call.function, place, constant.value, wanted.numbers))


def _negative(_call: Call, wanted: WantedValues) -> _Argument:
    return 0, _numbers(inverses.negated(wanted.numbers))


def _absolute(_call: Call, wanted: WantedValues) -> _Argument:
    return 0, _numbers(inverses.unsigned(wanted.numbers))


_COMPARISONS = {
    "less": Op.LT, "less_or_equal": Op.LE, "greater": Op.GT, "greater_or_equal": Op.GE, "equal": Op.EQ,
}  # fmt: skip
_FLIPPED = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE, Op.EQ: Op.EQ}


def _comparison(call: Call, wanted: WantedValues) -> _Argument:
    """With a number: a double compares with the nearest double, a decimal with a double as the nearest one,
    and everything else exactly."""
    split, truth = _split(call), wanted.truth
    value = split[1].value if split is not None else None
    is_number = isinstance(value, int | float | Exact) and not isinstance(value, bool)
    if split is None or truth is None or not is_number or value != value:
        return _UNKNOWN
    if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
        return _UNKNOWN
    op = _COMPARISONS[call.function]
    op = op if split[0] == 0 else _FLIPPED[op]
    op = op if truth else OPPOSITE[op]
    if op is Op.NE:
        return _UNKNOWN
    number = float(value) if isinstance(value, Exact) else value
    compared = Constraint("x", op, number)
    ints, floats = (ranges.selected(type, compared) for type in (Type.INT, Type.FLOAT))
    if isinstance(value, float):
        return split[0], _numbers(Numbers(ints, floats, inverses.rounded_to(floats)))
    decimals = inverses.compared(op, value.value if isinstance(value, Exact) else value)  # type: ignore[arg-type]
    return split[0], _numbers(Numbers(inverses.whole(decimals), floats, decimals))


def _pattern(call: Call, wanted: WantedValues) -> _Argument:
    pattern = call.arguments[1]
    if wanted.truth is not True or not isinstance(pattern, Constant):
        return 0, _strings()
    if not isinstance(pattern.value, str):
        return 0, _strings()
    found = _of_regex(pattern.value) if call.function == "rlike" else _of_like(pattern.value)
    return 0, _strings(*found)


def _of_like(pattern: str) -> list[tuple[Op, str]]:
    parts: list[str] = [""]
    for char, is_wild in like_parts(pattern):
        if is_wild:
            parts.append("")
        else:
            parts[-1] += char
    first, *middle, last = parts if len(parts) > 1 else (parts[0], "")
    found = [(Op.PREFIX, first), (Op.SUFFIX, last if len(parts) > 1 else first)]
    longest = sorted(filter(None, middle), key=len, reverse=True)[:_PARTS_MAX]
    return [(op, text) for op, text in (*found, *((Op.CONTAINS, one) for one in longest)) if text]


def _of_regex(regex: str) -> list[tuple[Op, str]]:
    """The plain characters with which every text begins that a regular expression is found in."""
    anchored = _ANCHORED.match(regex)
    if anchored is None or "|" in regex:
        return []
    is_repeated = regex[anchored.end() : anchored.end() + 1] in ("?", "*", "+", "{")
    begin = anchored[1][:-1] if is_repeated else anchored[1]
    return [(Op.PREFIX, begin)] if begin else []


_ANCHORED = re.compile(r"\^([A-Za-z0-9_ ]+)")
_TESTS = {"startswith": Op.PREFIX, "endswith": Op.SUFFIX, "contains": Op.CONTAINS}


def _test(call: Call, wanted: WantedValues) -> _Argument:
    other = call.arguments[1]
    if wanted.truth is True and isinstance(other, Constant) and isinstance(other.value, str):
        return 0, _strings((_TESTS[call.function], other.value))
    return 0, _strings()


def _text(_call: Call, _wanted: WantedValues) -> _Argument:
    return 0, _strings()


def _known(wanted: WantedValues) -> Facts | None:
    known = facts(wanted.values.strings) if wanted.values.strings else None
    return known if known is not None and not known.empty else None


def _begin(call: Call, wanted: WantedValues) -> _Argument:
    """left(s, n), or substring(s, 1, n): what it is, s begins with."""
    known, count = _known(wanted), call.arguments[-1]
    is_first = call.function == "left" or (
        len(call.arguments) == 3 and _is_number(call.arguments[1], (0, 1))
    )
    if known is None or not is_first or not isinstance(count, Constant):
        return 0, _strings()
    if known.only is not None:
        begin = _common(known.only)
        if _is_short(known.only, count):  # the whole text
            return 0, _strings((Op.EQ, begin))
    else:
        begin = common_prefix(known.low, known.high)
    return 0, _strings((Op.PREFIX, begin)) if begin else _strings()


def _end(call: Call, wanted: WantedValues) -> _Argument:
    known, count = _known(wanted), call.arguments[1]
    if known is None or not isinstance(count, Constant):
        return 0, _strings()
    end = known.suffix
    if known.only is not None:
        end = _common(text[::-1] for text in known.only)[::-1]
        if _is_short(known.only, count):
            return 0, _strings((Op.EQ, end))
    return 0, _strings((Op.SUFFIX, end)) if end else _strings()


def _common(texts: Iterable[str]) -> str:
    """What all of them begin with."""
    first, *_ = ordered = sorted(texts)
    size = next(
        (i for i, (a, b) in enumerate(zip(first, ordered[-1], strict=False)) if a != b), None
    )
    return first[:size]


def _is_short(only: Iterable[str], count: Constant) -> bool:
    """Is it one text, of fewer characters than are taken?"""
    texts = list(only)
    return len(texts) == 1 and isinstance(count.value, int) and len(texts[0]) < count.value


def _is_number(expression: Expression, wanted: tuple[int, ...]) -> bool:
    return (
        isinstance(expression, Constant)
        and isinstance(expression.value, int)
        and expression.value in wanted
    )


# ---- times


def _times(spans: Iterable[tuple[int, int]], *, or_text: bool = False) -> WantedValues:
    first, last = UNIVERSE[Type.TIME]
    kept: Ranges = ()
    for low, high in spans:
        low, high = max(low, first), min(high, last)
        kept = ranges.union(kept, ((low, high),) if low <= high else ())
    return WantedValues(ValueSet(False, _with(_TIME, kept), () if or_text else None), ())


def _year(_call: Call, wanted: WantedValues) -> _Argument:
    spans = ((max(low, 1), min(high, 9999)) for low, high in wanted.values.ranges[INT])
    return 0, _times(
        (instant_micros(datetime(low, 1, 1, tzinfo=UTC)), _before_year(high + 1))
        for low, high in spans
        if low <= high
    )


def _before_year(year: int) -> int:
    if year > 9999:
        return UNIVERSE[Type.TIME][1]
    return instant_micros(datetime(year, 1, 1, tzinfo=UTC)) - 1


_DAY = timedelta(days=1)
_UNIT_LENGTHS = {
    "YEAR": 366 * _DAY, "QUARTER": 93 * _DAY, "MONTH": 31 * _DAY, "WEEK": 7 * _DAY, "DAY": _DAY,
    "HOUR": _DAY / 24, "MINUTE": timedelta(minutes=1), "SECOND": timedelta(seconds=1),
    "MILLISECOND": timedelta(milliseconds=1), "MICROSECOND": timedelta(microseconds=1),
}  # fmt: skip
"""Enough to come from the begin of any unit into the next one, and no further."""
_UNIT_NAMES = {"YYYY": "YEAR", "YY": "YEAR", "MM": "MONTH", "MON": "MONTH", "DD": "DAY"}


def _date_trunc(call: Call, wanted: WantedValues) -> _Argument:
    unit = call.arguments[0]
    if not isinstance(unit, Constant) or not isinstance(unit.value, str):
        return 1, _times(_ALL_TIMES)
    return 1, _times(_truncated(unit.value.upper(), wanted))


def _day(_call: Call, wanted: WantedValues) -> _Argument:
    """to_date also reads strings."""
    return 0, _times(_truncated("DAY", wanted), or_text=True)


def _truncated(unit: str, wanted: WantedValues) -> list[tuple[int, int]]:
    """The times of which the begin of the unit is one of these."""
    length = _UNIT_LENGTHS.get(_UNIT_NAMES.get(unit, unit))
    spans = []
    for low, high in wanted.values.ranges[_TIME] if length is not None else _ALL_TIMES:
        try:
            begin = date_trunc(unit, instant_from_micros(high))
            high = instant_micros(date_trunc(unit, begin + (length or _DAY))) - 1
        except UNCOMPUTABLE:  # at the ends of time, or no unit
            high = UNIVERSE[Type.TIME][1]
        spans.append((low, high))
    return spans


_SINCE = {
    "unix_micros": 1, "unix_millis": 1_000, "unix_seconds": 1_000_000, "unix_date": 86_400_000_000,
}  # fmt: skip


def _since_1970(call: Call, wanted: WantedValues) -> _Argument:
    size = _SINCE[call.function]
    return 0, _times((low * size, (high + 1) * size - 1) for low, high in wanted.values.ranges[INT])


_UNITS = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000, "DAY": 86_400_000_000, "WEEK": 604_800_000_000,
}  # fmt: skip


def _moved(call: Call, wanted: WantedValues) -> _Argument:
    """timestampadd by units of fixed length."""
    unit, count, _ = call.arguments
    if not isinstance(unit, Constant) or not isinstance(count, Constant):
        return 2, _times(_ALL_TIMES)
    size = _UNITS.get(str(unit.value).upper())
    if size is None or isinstance(count.value, bool) or not isinstance(count.value, int):
        return 2, _times(_ALL_TIMES)
    by = size * count.value
    return 2, _times((low - by, high - by) for low, high in wanted.values.ranges[_TIME])


INVERSES: dict[str, _Inverse] = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide"), _arithmetic),
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys(("like", "rlike"), _pattern),
    **dict.fromkeys(_TESTS, _test),
    **dict.fromkeys(("lower", "upper", "trim", "ltrim", "rtrim", "length"), _text),
    **dict.fromkeys(("left", "substring"), _begin),
    **dict.fromkeys(("to_date", "cast as DATE"), _day),
    **dict.fromkeys(_SINCE, _since_1970),
    "negative": _negative,
    "abs": _absolute,
    "right": _end,
    "year": _year,
    "date_trunc": _date_trunc,
    "timestampadd": _moved,
}
"""Of strict functions."""
