"""What an expression costs, for bounds: steps of about a microsecond, in the worst case.

x + y > 3             2 steps, whatever the message
lower(s)              1, and 15 for each KiB of the message's attributes
s RLIKE '[ab]{90}'    1, and 15 for each KiB and state of its automaton
exists(a, t -> ...)   1, and for each KiB 500 times those of the body: so many elements it may have
array_contains(a, 1)  1: a message looks up its elements once, for all that ask
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from palio.model.caches import cached, text_bytes
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.evaluation import OVER_ELEMENTS
from palio.model.expressions.names import attributes_of, expression_of, is_computed
from palio.model.expressions.number_functions import Computed
from palio.model.expressions.patterns import like_pieces
from palio.model.expressions.regex_functions import REGEX_MAX, classes_of
from palio.model.expressions.text_functions import LENGTH_MAX
from palio.model.expressions.tree import (
    AttributeOf,
    Call,
    Constant,
    Expression,
    Lambda,
    Variable,
)
from palio.model.predicate import Filter

ELEMENTS_PER_KIB = 500
_TEXT, _STATE, _JSON, _ARRAY = 15, 15, 200, 1_000  # steps for a KiB
_UNICODE = 1_000  # of a class such as \pL, which is compiled anew where messages come one by one
_ELEMENT, _SEARCH = 3, 40  # steps of a call for an element
_LONGEST = LENGTH_MAX // 1024  # KiB that a function can make of a short text
_PAD_MAX = 1024  # characters: a text that is padded to no more is no long one
_QUICK = frozenset(
    "equal not_equal less less_or_equal greater greater_or_equal same in between nullif least greatest "
    "add subtract multiply divide mod div negative pmod abs round bround floor ceil power sqrt sign exp "
    "expm1 sin cos tan asin acos atan sinh cosh tanh cbrt degrees radians rint ln log10 log2 log1p log "
    "atan2 hypot e pi factorial isnan nanvl bit_and bit_or bit_xor bit_not shiftleft shiftright "
    "shiftrightunsigned bit_count year quarter month day hour minute second dayofweek weekday dayofyear "
    "weekofyear dayname monthname last_day make_date date_add date_sub add_months datediff months_between "
    "unix_seconds unix_millis unix_micros unix_date timestamp_seconds timestamp_millis timestamp_micros "
    "date_from_unix_date and or not case coalesce".split()
) | {"is null", "case of"}
_COMPARING = frozenset(
    "equal not_equal less less_or_equal greater greater_or_equal same in between nullif least greatest".split()
) | {"case of"}
"""What reads arrays too, as far as they are the same."""
_OF_ARRAYS = frozenset(
    "array size element get element_at try_element_at field array_contains array_position arrays_overlap "
    "is_array leaves objects array_min array_max array_join array_distinct array_compact array_union "
    "array_except array_intersect split concat_ws".split()
)
_LIKE = frozenset(("like", "like escape", "like any", "like all"))
_REGEX = frozenset("rlike regexp_extract regexp_substr regexp_replace".split())
_JOINING = frozenset("concat concat_ws array array_join array_union".split())
_COUNTS = re.compile(r"\{([0-9]{1,9})(?:,([0-9]{0,9}))?\}")


class Cost(NamedTuple):
    """Steps for a message, and more for each KiB of its attributes."""

    steps: int = 0
    per_kib: int = 0

    def of(self, messages: int, size: int) -> int:
        """The steps for so many messages of so many bytes together."""
        return self.steps * messages + self.per_kib * size // 1024

    def plus(self, other: Cost, sign: int = 1) -> Cost:
        return Cost(self.steps + sign * other.steps, self.per_kib + sign * other.per_kib)


@cached(4096, text_bytes)
def cost_of(name: str) -> Cost:
    """Of an expression, by its name."""
    return Cost(1) if member_array(name) is not None else _cost(expression_of(name))


def member_array(name: str) -> str | None:
    """The array of `array_contains(array, literal)`, which tables look up by its elements."""
    found = expression_of(name)
    if not isinstance(found, Call) or found.function != "array_contains":
        return None
    array, element = found.arguments
    if not isinstance(array, AttributeOf) or not isinstance(element, Constant):
        return None
    return array.name


def cost_of_all(names: Iterable[str]) -> Cost:
    total = Cost()
    for name in names:
        total = total.plus(cost_of(name))
    return total


def calls_of(names: Iterable[str]) -> int:
    """How many functions and operators these expressions call."""
    return sum(calls_in(expression_of(name)) for name in names)


def computed_names(filters: Iterable[Filter]) -> tuple[str, ...]:
    """The names of expressions that filters ask for, each once."""
    names = (c.name for found in filters for c in found.constraints)
    return tuple(dict.fromkeys(name for name in names if is_computed(name)))


def calls_in(expression: Expression) -> int:
    """How many functions and operators it calls; those of a lambda once."""
    if isinstance(expression, Lambda):
        return calls_in(expression.body)
    return 1 + sum(map(calls_in, expression.arguments)) if isinstance(expression, Call) else 0


def _cost(expression: Expression) -> Cost:
    if not isinstance(expression, Call):
        return Cost()
    sizes = list(map(_size, expression.arguments))
    together = max(sizes, default=0) if expression.function in _COMPARING else sum(sizes)
    size = max(_size(expression), together)
    found = Cost(1 + _compiled(expression), _own(expression) * min(size, _LONGEST))
    if size >= _LONGEST:  # long whatever the message is
        found = Cost(found.steps + found.per_kib, 0)
    for argument in expression.arguments:
        if isinstance(argument, Lambda):
            found = found.plus(Cost(0, _of_lambda(argument.body)))
        else:
            found = found.plus(_cost(argument))
    return found


def _size(expression: Expression) -> int:
    """How many times as long as the attributes of a message its text may be."""
    if isinstance(expression, AttributeOf | Variable):
        return 1
    if isinstance(expression, Lambda):
        return 0
    if not isinstance(expression, Call):
        return 0
    if _is_growing(expression):
        return _LONGEST
    sizes = list(map(_size, expression.arguments))
    largest = sum(sizes) if expression.function in _JOINING else max(sizes, default=0)
    return 0 if expression.function in _QUICK - _CHOOSING else largest


_CHOOSING = frozenset(("nullif", "least", "greatest", "case", "case of", "coalesce"))


def _is_growing(call: Call) -> bool:
    """May it make a long text of short ones?"""
    constants = [one.value for one in call.arguments if isinstance(one, Constant)]
    if call.function in ("lpad", "rpad", "space"):
        return not any(one <= _PAD_MAX for one in _numbers(constants))
    if call.function in ("replace", "regexp_replace"):
        texts = [str(one) for one in constants]
        return len(texts) < 2 or len(texts[-1]) > len(texts[-2])
    return call.function in ("repeat", "array_join", "transform")


def _numbers(constants: list[Computed | None]) -> list[int]:
    return [int(one) for one in constants if isinstance(one, int) and not isinstance(one, bool)]


def _of_lambda(body: Expression) -> int:
    """For a KiB of elements; what the body reads besides is read anew for each."""
    cost = _cost(body)
    steps = max(1, cost.steps) * _ELEMENT + _automata(body) * _SEARCH
    again = ELEMENTS_PER_KIB // 2 if attributes_of(body) else 1
    return ELEMENTS_PER_KIB * steps + again * cost.per_kib


def _automata(expression: Expression) -> int:
    """How many calls begin a search by an automaton, which takes long even in a short text."""
    if isinstance(expression, Lambda):
        return _automata(expression.body)
    if not isinstance(expression, Call):
        return 0
    own = expression.function in _REGEX | _LIKE
    return own + sum(map(_automata, expression.arguments))


def _own(call: Call) -> int:
    """For a KiB, without its arguments."""
    function = call.function
    if function in _COMPARING:
        return _TEXT * max(0, sum(map(_may_be_array, call.arguments)) - 1)
    if function in _QUICK:
        return 0
    if function in _LIKE:
        return _TEXT + sum(_STATE * _like_states(one) for one in call.arguments[1:])
    if function in _REGEX:
        return _TEXT + _STATE * _regex_states(call.arguments[1])
    if function in ("get_json_object", "json_array_length"):
        return _JSON
    return _ARRAY if function in _OF_ARRAYS or function in OVER_ELEMENTS else _TEXT


def _may_be_array(expression: Expression) -> bool:
    if isinstance(expression, Call):
        return expression.function not in _QUICK - _CHOOSING
    return not isinstance(expression, Constant)


def _compiled(call: Call) -> int:
    """Steps for a message, however short it is."""
    if call.function not in _REGEX or not isinstance(call.arguments[1], Constant):
        return 0
    return _UNICODE * classes_of(str(call.arguments[1].value))


def _like_states(pattern: Expression) -> int:
    """Of the automaton, where a pattern needs one."""
    if not isinstance(pattern, Constant):
        return REGEX_MAX
    try:
        pieces = like_pieces(str(pattern.value))
    except ExpressionError:
        return 0
    return len(str(pattern.value)) if any(None in piece for piece in pieces[1:-1]) else 0


def _regex_states(pattern: Expression) -> int:
    if not isinstance(pattern, Constant):
        return 2 * REGEX_MAX
    text = str(pattern.value)
    counts = [int(one) for found in _COUNTS.findall(text) for one in found if one]
    return min(2 * REGEX_MAX, len(text) * max(counts, default=1))
