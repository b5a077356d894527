"""What an expression with its literals becomes: one form for what can be written in several ways.

    name LIKE 'a#_%' ESCAPE '#'     name LIKE 'a\\_%'
    m['k']                          the attribute m.k
    extract(YEAR FROM at)           year(at)
    at + INTERVAL 2 HOURS           timestampadd(HOUR, 2, at)
    x + (1 + 2)                     x + 3

Literals that are no pattern, path, unit or zone raise ExpressionError, with the place of the argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from palio.errors import InvalidPredicate
from palio.model.expressions import calendar_functions as calendar
from palio.model.expressions import intervals
from palio.model.expressions.decimals import Exact
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.folding import with_constants
from palio.model.expressions.json_functions import json_path
from palio.model.expressions.number_functions import IntLiteral
from palio.model.expressions.patterns import like_pieces
from palio.model.expressions.regex_functions import check_delimiter, check_regex
from palio.model.expressions.tree import AttributeOf, Call, Constant, Expression
from palio.model.like import canonical_pattern

_Arguments: TypeAlias = tuple[Expression, ...]
NO_FIXED_LENGTH = "months and years are of no fixed length; add them to a time"


class BadArgument(Exception):
    """A literal argument that cannot stand where it stands."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.reason, self.at = reason, at


def simplified(function: str, given: _Arguments) -> Expression:
    known = with_constants(function, given)
    try:
        return _simplified(function, known)
    except BadArgument:  # computed: NULL for every message, and counted
        if known is given:
            raise
        return _simplified(function, given)


def _simplified(function: str, given: _Arguments) -> Expression:
    if function in _CHECKS:
        at, check = _CHECKS[function]
        _check(given, at, check)
    form = _FORMS.get(function)
    if form is not None:
        return form(given)
    if any(isinstance(one, Call) and one.function == "interval" for one in given):
        raise BadArgument(NO_FIXED_LENGTH, 0)
    return Call(function, given)


def field_of(inner: Expression, name: str) -> Expression:
    """A field of a map or a struct is an attribute; one of an element of an array is computed."""
    if isinstance(inner, AttributeOf):
        return AttributeOf(f"{inner.name}.{name}")
    return _in_json(inner, f"['{name}']") or Call("field", (inner, Constant(name)))


def _in_json(inner: Expression, step: str) -> Expression | None:
    """One step further in a JSON text: body:a[0]['b c']."""
    if isinstance(inner, Call) and inner.function == "get_json_object":
        path = _text(inner.arguments[1])
        if path is not None and "'" not in step[2:-2]:
            return Call("get_json_object", (inner.arguments[0], Constant(f"{path}{step}")))
    return None


def _element(given: _Arguments) -> Expression:
    inner, index = given
    if (name := _text(index)) is not None:  # m[lower('K')]
        return field_of(inner, name)
    is_place = isinstance(index, Constant) and isinstance(index.value, int) and index.value >= 0
    found = _in_json(inner, f"[{index.value}]") if is_place else None  # type: ignore[union-attr]
    return found or Call("element", given)


def _check(given: _Arguments, at: int, check: Callable[[str], object]) -> None:
    wanted = _text(given[at]) if at < len(given) else None
    if wanted is None:
        return
    try:
        check(wanted)
    except ExpressionError as error:
        raise BadArgument(str(error), at) from None


def _text(expression: Expression) -> str | None:
    is_text = isinstance(expression, Constant) and isinstance(expression.value, str)
    return expression.value if is_text else None  # type: ignore[union-attr, return-value]


# ---- patterns and fields


def _like_escape(given: _Arguments) -> Expression:
    written, mark = _text(given[1]), _text(given[2])
    if written is None or mark is None:
        return Call("like escape", given)
    try:
        return Call("like", (given[0], Constant(canonical_pattern(written, mark))))
    except InvalidPredicate as error:
        raise BadArgument(error.detail, 1) from None


def _field(given: _Arguments) -> Expression:
    inner, name = given
    return field_of(inner, str(name.value)) if isinstance(name, Constant) else Call("field", given)


def _at(function: str) -> Callable[[_Arguments], Expression]:
    """element_at(m, lower('K')) is a field."""

    def form(given: _Arguments) -> Expression:
        name = _text(given[1])
        return Call(function, given) if name is None else field_of(given[0], name)

    return form


def _date_part(given: _Arguments) -> Expression:
    """A field with a function of its own is that."""
    field = _text(given[0])
    if field is None:
        raise BadArgument("the field of a time is written as a literal", 0)
    name = calendar.field_name(field)
    if name in calendar.FIELD_FUNCTIONS:
        return Call(calendar.FIELD_FUNCTIONS[name], given[1:])
    return Call("date_part", (Constant(name), *given[1:]))


def _with_unit(function: str) -> Callable[[_Arguments], Expression]:
    def form(given: _Arguments) -> Expression:
        unit = _text(given[0])
        if unit is None:
            raise BadArgument("a unit is a word such as DAY", 0)
        return Call(function, (Constant(calendar.unit_of(unit)), *given[1:]))

    return form


# ---- intervals


def _interval(given: _Arguments) -> Expression:
    """Microseconds; months stay an interval, for `_plus`."""
    number, unit = given
    written = number.value if isinstance(number, Constant) else None
    if isinstance(written, Exact):
        written = f"{written.value:f}"
    try:
        amount, is_months = intervals.interval(str(written), _text(unit) or "")
    except ExpressionError as error:
        raise BadArgument(str(error), 0) from None
    if is_months:
        return Call("interval", (Constant(IntLiteral(amount)), Constant("MONTH")))
    return Constant(IntLiteral(amount))


def _plus(sign: int) -> Callable[[_Arguments], Expression]:
    """A time and an interval."""

    def form(given: _Arguments) -> Expression:
        value, moved = given
        if isinstance(moved, Call) and moved.function == "interval":
            moved, unit = moved.arguments[0], "MONTH"
        else:
            unit = "MICROSECOND"
        if not isinstance(moved, Constant) or not isinstance(moved.value, int):
            count = moved if sign > 0 else Call("negative", (moved,))
            return Call("timestampadd", (Constant(unit), count, value))
        amount = sign * moved.value
        for name in _LARGE_FIRST if unit == "MICROSECOND" else ():
            if amount % calendar.MICROSECONDS[name] == 0:
                unit, amount = name, amount // calendar.MICROSECONDS[name]
                break
        return Call("timestampadd", (Constant(unit), Constant(IntLiteral(amount)), value))

    return form


_LARGE_FIRST = ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")


def _negative(given: _Arguments) -> Expression:
    """-INTERVAL 1 MONTH, and the opposite of microseconds."""
    (moved,) = given
    if isinstance(moved, Call) and moved.function == "interval":
        months = moved.arguments[0]
        assert isinstance(months, Constant)
        assert isinstance(months.value, int)
        return Call("interval", (Constant(IntLiteral(-months.value)), moved.arguments[1]))
    if isinstance(moved, Constant) and isinstance(moved.value, IntLiteral):
        return Constant(IntLiteral(-moved.value))
    return Call("negative", given)


_CHECKS: dict[str, tuple[int, Callable[[str], object]]] = {
    "like": (1, lambda pattern: like_pieces(pattern)),
    "rlike": (1, check_regex),
    "regexp_extract": (1, check_regex),
    "regexp_replace": (1, check_regex),
    "regexp_substr": (1, check_regex),
    "split": (1, check_delimiter),
    "get_json_object": (1, json_path),
    "date_part": (0, calendar.field_name),
    "timestampadd": (0, calendar.unit_of),
    "timestampdiff": (0, calendar.unit_of),
    "from_utc_timestamp": (1, calendar.check_zone),
    "to_utc_timestamp": (1, calendar.check_zone),
}
"""What is said of an argument that is a literal: which one, and what raises ExpressionError."""
_FORMS: dict[str, Callable[[_Arguments], Expression]] = {
    "like escape": _like_escape,
    "field": _field,
    "element": _element,
    "element_at": _at("element_at"),
    "try_element_at": _at("try_element_at"),
    "date_part": _date_part,
    "timestampadd": _with_unit("timestampadd"),
    "timestampdiff": _with_unit("timestampdiff"),
    "interval": _interval,
    "plus interval": _plus(1),
    "minus interval": _plus(-1),
    "negative": _negative,
}
