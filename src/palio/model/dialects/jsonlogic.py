"""Rules of JSONLogic, read as predicates: a message is selected where the rule's result is truthy.

    rule --truth, falsity, value--> Palio's SQL --parse--> predicate

`truth` and `falsity` make conditions for exactly the messages for which a rule is truthy or falsy; NULL
is neither, so one is not the negation of the other. Constants are computed as JavaScript does;
attributes are not cast. Depth, number of values and length of the SQL are bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

from palio.errors import LimitExceeded
from palio.model.dialects import jsonlogic_arrays as arrays
from palio.model.dialects.documents import VALUES_MAX, RefusedRule, document_of, located, within
from palio.model.dialects.jsonlogic_budget import JsonLogicBudget
from palio.model.dialects.jsonlogic_constants import contains, string
from palio.model.dialects.jsonlogic_operations import OPERATIONS
from palio.model.dialects.jsonlogic_scopes import Scope, message_scope, whole_scope
from palio.model.dialects.jsonlogic_values import (
    NOTHING,
    JsonComputed,
    JsonConstant,
    JsonValue,
    among,
    boolean,
    compared,
    falsity_of,
    found_in,
    part_of,
    sql_of,
    truth_of,
)
from palio.model.dialects.translation import (
    FALSE,
    LIST_MAX,
    SQL_MAX,
    TRUE,
    Sql,
    all_of,
    any_of,
    called,
    complement,
    predicate_of,
)
from palio.model.language import FILTERS_MAX
from palio.model.predicate import Predicate


def read(rule: object, *, limit: int = FILTERS_MAX, shape_max: int = SQL_MAX) -> Predicate:
    """The predicate of a rule: a text in JSON, or what it says as dicts and lists.

    `limit` bounds the number of filters, `shape_max` the SQL without its literals. Raises ParseError, which points at the character of a text.

    >>> read('{"and": [{"==": [{"var": "dest"}, "MXP"]}, {"in": [{"var": "class"}, ["Y", "M"]]}]}')
    Predicate(dest = 'MXP' AND class IN ('M', 'Y'))
    """
    document, text = document_of(rule, "rule")
    try:
        return predicate_of(_condition(document, message_scope, text), text, limit, shape_max)
    except LimitExceeded:  # a test of an attribute can be several constraints, or one expression
        return predicate_of(_condition(document, whole_scope, text), text, limit, shape_max)


def _condition(document: Any, scope: Scope, text: str) -> Sql:
    try:
        return _Rules().truth(document, scope)
    except RefusedRule as error:
        raise located(error, text) from None


_Read = TypeVar("_Read", Sql, JsonValue)
_Truth: TypeAlias = "Callable[[_Rules, list[Any], Scope], Sql]"
_Computing: TypeAlias = "Callable[[_Rules, list[Any], Scope], JsonValue]"


class _Rules:
    """Translates one rule, within a budget."""

    def __init__(self) -> None:
        self._budget = JsonLogicBudget()

    def truth(self, rule: Any, scope: Scope) -> Sql:
        """Holds for exactly the messages for which the rule is truthy."""
        return self._condition(rule, scope, _TRUTHS, truth_of)

    def falsity(self, rule: Any, scope: Scope) -> Sql:
        """Holds for exactly the messages for which the rule is falsy."""
        return self._condition(rule, scope, _FALSITIES, falsity_of)

    def _condition(
        self,
        rule: Any,
        scope: Scope,
        conditions: dict[str, _Truth],
        of_value: Callable[[JsonValue], Sql],
    ) -> Sql:
        self._budget.step()
        operator, arguments = _parts(rule)
        with within(*([operator] if operator else [])):
            if operator in conditions:
                return self._counted(conditions[operator](self, arguments, scope))
            if operator in _TRUTHS:
                return complement(self._counted(_TRUTHS[operator](self, arguments, scope)))
        return self._counted(of_value(self.value(rule, scope)))

    def value(self, rule: Any, scope: Scope) -> JsonValue:
        operator, arguments = _parts(rule)
        if not operator and not isinstance(rule, list):
            return JsonConstant(rule)
        self._budget.step()
        if isinstance(rule, list):
            array = arrays.listed((TRUE, one) for one in self._values(rule, scope))
            self._budget.made(array)
            return array
        if operator in _VALUES:
            with within(operator):
                found = _VALUES[operator](self, arguments, scope)
        elif operator in OPERATIONS:
            with within(operator):
                found = OPERATIONS[operator](self._values(arguments, scope))
        elif operator in _TRUTHS:
            return boolean(self.truth(rule, scope))
        else:
            raise RefusedRule(f"there is no operation {operator[:40]!r}; there are {_ALL}")
        if isinstance(found, JsonComputed):
            self._counted(found.sql)
        self._budget.made(found)
        return found

    def _counted(self, sql: Sql) -> Sql:
        return self._budget.written(sql)

    def _values(self, rules: list[Any], scope: Scope) -> list[JsonValue]:
        return [self._at(at, rule, scope, self.value) for at, rule in enumerate(rules)]

    def _at(self, at: int, rule: Any, scope: Scope, read: Callable[[Any, Scope], _Read]) -> _Read:
        with within(at):
            return read(rule, scope)

    # ---- logic

    def _every(
        self, rules: list[Any], scope: Scope, read: Callable[[Any, Scope], Sql]
    ) -> list[Sql]:
        return [self._at(at, rule, scope, read) for at, rule in enumerate(rules)]

    def and_(self, rules: list[Any], scope: Scope) -> Sql:
        return all_of(self._every(rules, scope, self.truth)) if rules else FALSE

    def and_not(self, rules: list[Any], scope: Scope) -> Sql:
        return any_of(self._every(rules, scope, self.falsity)) if rules else TRUE

    def or_(self, rules: list[Any], scope: Scope) -> Sql:
        return any_of(self._every(rules, scope, self.truth))

    def or_not(self, rules: list[Any], scope: Scope) -> Sql:
        return all_of(self._every(rules, scope, self.falsity))

    def not_(self, rules: list[Any], scope: Scope) -> Sql:
        return self._at(0, rules[0] if rules else None, scope, self.falsity)

    def is_true(self, rules: list[Any], scope: Scope) -> Sql:
        return self._at(0, rules[0] if rules else None, scope, self.truth)

    def _chosen(self, rules: list[Any], scope: Scope, read: Callable[[Any, Scope], Sql]) -> Sql:
        """if: condition, result, condition, result, ..., result otherwise."""
        found = read(None, scope)
        if len(rules) % 2:
            found = self._at(len(rules) - 1, rules[-1], scope, read)
        for at in range(len(rules) - 2 - len(rules) % 2, -1, -2):
            chosen = self._at(at + 1, rules[at + 1], scope, read)
            if chosen == found:
                continue
            holds = self._at(at, rules[at], scope, self.truth)
            first = all_of([holds, chosen])
            if chosen == TRUE or found == FALSE:  # what is otherwise need not exclude it
                found = any_of([first, found])
            else:
                fails = self._at(at, rules[at], scope, self.falsity)
                found = any_of([first, all_of([fails, found])])
            self._counted(found)
        return found

    def if_(self, rules: list[Any], scope: Scope) -> Sql:
        return self._chosen(rules, scope, self.truth)

    def if_not(self, rules: list[Any], scope: Scope) -> Sql:
        return self._chosen(rules, scope, self.falsity)

    # ---- comparisons

    def sides(self, rules: list[Any], scope: Scope, most: int) -> list[JsonValue]:
        if not 2 <= len(rules) <= most:
            raise RefusedRule(f"it takes {'two values' if most == 2 else 'two or three values'}")
        return self._values(rules, scope)

    def in_(self, rules: list[Any], scope: Scope) -> Sql:
        return any_of(self._membership(rules, scope, VALUES_MAX))

    def in_not(self, rules: list[Any], scope: Scope) -> Sql:
        return all_of(map(complement, self._membership(rules, scope, LIST_MAX)))

    def _membership(self, rules: list[Any], scope: Scope, count_max: int) -> list[Sql]:
        """Conditions of which one holds; a list of constants is divided into such of so many."""
        needle, haystack = self.sides(rules, scope, 2)
        if isinstance(haystack, JsonConstant) and isinstance(haystack.value, str):
            if isinstance(needle, JsonConstant):
                return [TRUE if contains(needle.value, haystack.value) else FALSE]
            return [part_of(needle, haystack.value)]
        if isinstance(haystack, JsonComputed):
            return [found_in(needle, haystack)]
        known, parts = [], []
        for is_in, one in arrays.elements_of(haystack) or ():
            if is_in == TRUE and isinstance(one, JsonConstant):
                known.append(one.value)
            else:
                parts.append(all_of([is_in, compared("===", needle, one)]))
        return [*among(needle, known, count_max), *parts]

    # ---- values

    def var(self, rules: list[Any], scope: Scope) -> JsonValue:
        """A name that depends on a condition is one name or the other."""
        if rules and _parts(rules[0])[0] in ("if", "?:"):
            operator, branches = _parts(rules[0])
            chosen = [
                {"var": [one, *rules[1:]]} if at % 2 or at == len(branches) - 1 else one
                for at, one in enumerate(branches)
            ]
            return self.value({operator: chosen}, scope)
        given = [*self._values(rules[:2], scope), NOTHING, NOTHING]
        path, default = given[0], given[1]
        if not isinstance(path, JsonConstant) or isinstance(path.value, list | dict | bool):
            raise RefusedRule("the name of an attribute is written in the rule")
        name = "" if path.value is None else string(path.value)
        if isinstance(default, JsonConstant) and not isinstance(default.value, list | dict):
            return scope(name, default.value)
        found = scope(name, None)
        if not isinstance(found, JsonComputed):
            return default if found == NOTHING else found
        return JsonComputed(called("coalesce", found.sql, sql_of(default)))

    def chosen_value(self, rules: list[Any], scope: Scope) -> JsonValue:
        """if, where its result is needed."""
        found: JsonValue = NOTHING
        if len(rules) % 2:
            found = self._at(len(rules) - 1, rules[-1], scope, self.value)
        for at in range(len(rules) - 2 - len(rules) % 2, -1, -2):
            holds = self._at(at, rules[at], scope, self.truth)
            chosen = self._at(at + 1, rules[at + 1], scope, self.value)
            found = self._either(holds, chosen, found)
        return found

    def _either(self, holds: Sql, chosen: JsonValue, other: JsonValue) -> JsonValue:
        if holds in (TRUE, FALSE) or chosen == other:
            return other if holds == FALSE else chosen
        if arrays.is_written(chosen) or arrays.is_written(other):
            fails = complement(holds)
            pairs = ((holds, chosen), (fails, other))
            return arrays.listed(
                (all_of([own, is_in]), one)
                for own, side in pairs
                for is_in, one in arrays.elements_of(side) or ()
            )
        kinds = {_kind(side) for side in (chosen, other) if side != NOTHING}
        sides = sql_of(chosen).text, sql_of(other).text
        sql = Sql(f"CASE WHEN {holds.text} THEN {sides[0]} ELSE {sides[1]} END")
        self._counted(sql)
        is_plain = len(kinds) == 1 and kinds != {"boolean"}
        return JsonComputed(sql, kinds.pop() if is_plain else "any")

    def and_value(self, rules: list[Any], scope: Scope) -> JsonValue:
        """The first falsy value, or the last one."""
        found = self._at(len(rules) - 1, rules[-1], scope, self.value) if rules else NOTHING
        for at in range(len(rules) - 2, -1, -1):
            fails = self._at(at, rules[at], scope, self.falsity)
            found = self._either(fails, self._at(at, rules[at], scope, self.value), found)
        return found

    def or_value(self, rules: list[Any], scope: Scope) -> JsonValue:
        """The first truthy value, or the last one."""
        found = self._at(len(rules) - 1, rules[-1], scope, self.value) if rules else NOTHING
        for at in range(len(rules) - 2, -1, -1):
            holds = self._at(at, rules[at], scope, self.truth)
            found = self._either(holds, self._at(at, rules[at], scope, self.value), found)
        return found

    def merge(self, rules: list[Any], scope: Scope) -> JsonValue:
        return arrays.merged(self._values(rules, scope))

    def missing(self, rules: list[Any], scope: Scope) -> JsonValue:
        names = self._values(rules, scope)
        is_array = len(names) == 1 and arrays.is_written(names[0])
        return arrays.missing(names[0] if is_array else arrays.merged(names), scope)

    def missing_some(self, rules: list[Any], scope: Scope) -> JsonValue:
        return arrays.missing_some(self._values(rules, scope), scope)

    def too_few(self, rules: list[Any], scope: Scope) -> Sql:
        return arrays.is_some_missing(self._values(rules, scope), scope)


def _parts(rule: Any) -> tuple[str, list[Any]]:
    """The operator of a rule and its arguments; what is no rule has none."""
    if not isinstance(rule, dict) or not rule:
        return "", []
    if len(rule) > 1:
        raise RefusedRule("an operation is an object with one key; join several by and")
    ((operator, arguments),) = rule.items()
    return operator, list(arguments) if isinstance(arguments, list | tuple) else [arguments]


def _kind(value: JsonValue) -> str:
    if isinstance(value, JsonComputed):
        return value.kind
    plain = value.value if isinstance(value, JsonConstant) else None
    if isinstance(plain, bool):
        return "boolean"
    return "string" if isinstance(plain, str) else "number"


def _comparison(operator: str) -> _Truth:
    def holds(rules: _Rules, arguments: list[Any], scope: Scope) -> Sql:
        sides = rules.sides(arguments, scope, 3 if operator in ("<", "<=") else 2)
        return all_of(compared(operator, a, b) for a, b in pairwise(sides))

    return holds


def _opposite(operator: str) -> _Truth:
    holds = _comparison(operator)
    return lambda rules, arguments, scope: complement(holds(rules, arguments, scope))


_TRUTHS: dict[str, _Truth] = {
    "and": _Rules.and_,
    "or": _Rules.or_,
    "!": _Rules.not_,
    "!!": _Rules.is_true,
    "if": _Rules.if_,
    "?:": _Rules.if_,
    **{operator: _comparison(operator) for operator in ("==", "===", "<", "<=", ">", ">=")},
    "!=": _opposite("=="),
    "!==": _opposite("==="),
    "in": _Rules.in_,
    "some": arrays.some,
    "all": arrays.every,
    "none": arrays.none,
    "missing_some": _Rules.too_few,
}
_FALSITIES: dict[str, _Truth] = {
    "and": _Rules.and_not,
    "or": _Rules.or_not,
    "!": _Rules.is_true,
    "!!": _Rules.not_,
    "if": _Rules.if_not,
    "?:": _Rules.if_not,
    "!=": _comparison("=="),
    "!==": _comparison("==="),
    "in": _Rules.in_not,
    "none": arrays.some,
}
"""Of all others the complement is taken."""
_VALUES: dict[str, _Computing] = {
    "var": _Rules.var,
    "if": _Rules.chosen_value,
    "?:": _Rules.chosen_value,
    "and": _Rules.and_value,
    "or": _Rules.or_value,
    "merge": _Rules.merge,
    "missing": _Rules.missing,
    "missing_some": _Rules.missing_some,
    "filter": arrays.filtered,
    "map": arrays.mapped,
    "reduce": arrays.reduced,
}
_ALL = ", ".join(sorted(_TRUTHS.keys() | _VALUES.keys() | OPERATIONS.keys()))
