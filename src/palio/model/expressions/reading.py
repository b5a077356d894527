"""From sqlglot's tree to an expression, with slots where the text has literals.

A shape is parsed once; `filled` puts the literals of a text into its slots. What is neither in
`node_table.py` nor among the forms is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from palio.model.expressions import call_forms, node_forms
from palio.model.expressions.argument_counts import counted
from palio.model.expressions.filling import filled as filled
from palio.model.expressions.filling import first_slot as first_slot
from palio.model.expressions.filling import has_attributes as has_attributes
from palio.model.expressions.filling import slots_of as slots_of
from palio.model.expressions.foreign_reading import foreign_call
from palio.model.expressions.functions import FUNCTIONS
from palio.model.expressions.near_forms import near_form
from palio.model.expressions.node_forms import NotAnExpression as NotAnExpression
from palio.model.expressions.node_table import CALLS, IGNORED, OF_DATES, Arguments, looseness
from palio.model.expressions.refusals import CHANGING, NO_QUERY
from palio.model.expressions.tree import (
    LAMBDAS_MAX,
    LEVELS_MAX,
    AttributeOf,
    Call,
    Constant,
    Expression,
    Lambda,
    Slot,
    Variable,
)
from palio.model.expressions.words import PATH_MARK, path_of

_LEVELS = {exp.Paren: 0, exp.In: 2, exp.Any: 2, exp.All: 2}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)


def read_expression(
    node: Any, name_of: Callable[[Any], str | None], *, foreign: bool = False
) -> Expression:
    """The expression of a node; `name_of` says which attribute a node names. With `foreign`, what only
    Spark computes is an expression too."""
    return _ExpressionReader(name_of, foreign).read(node)


def read_interval(
    node: Any, name_of: Callable[[Any], str | None], *, foreign: bool = False
) -> Expression:
    """A difference of times, or an interval, in microseconds."""
    return _ExpressionReader(name_of, foreign).interval(node)


class _ExpressionReader:
    def __init__(self, name_of: Callable[[Any], str | None], foreign: bool) -> None:
        self._name_of, self._foreign = name_of, foreign
        self._variables: list[str] = []
        self._level = 0

    def read(self, node: Any) -> Expression:
        more = _LEVELS.get(type(node), 1)
        self._level += more
        if self._level > LEVELS_MAX:
            raise NotAnExpression(node, f"an expression is nested at most {LEVELS_MAX} levels deep")
        try:
            return self._read(node)
        except NotAnExpression as refused:
            can_be_foreign = self._foreign and not refused.is_wrong
            found = foreign_call(node, self.argument) if can_be_foreign else None
            if found is None:
                raise refused from None
            return found
        finally:
            self._level -= more

    def argument(self, node: Any) -> Expression:
        """Of a function that only Spark knows: a value, or a lambda of one or more variables."""
        if not isinstance(node, exp.Lambda):
            return self.read(node)
        level, count = len(self._variables), len(node.expressions)
        if level + count > LAMBDAS_MAX:
            raise NotAnExpression(node, f"lambdas have more than {LAMBDAS_MAX} variables")
        self._variables += [one.name for one in node.expressions]
        found = self.read(node.this)
        del self._variables[level:]
        for number in reversed(range(level, level + count)):
            found = Lambda(number, found)
        return found

    def _read(self, node: Any) -> Expression:
        kind = type(node)
        if self._variables and (found := self._of_variable(node)) is not None:
            return found
        if kind is exp.Paren:
            return self.read(node.this)
        if kind is exp.Literal:
            return Slot(_slot(node))
        if kind is exp.Null:
            return Constant(None)
        if kind is exp.Boolean:
            return Constant(bool(node.this))
        name = self._name_of(node)
        if name is not None:
            if name[:1] == "=":
                raise NotAnExpression(
                    node, "the name of an attribute that an expression reads does not begin with ="
                )
            return AttributeOf(name)
        if (found := _in_json(node)) is not None:
            return found
        if kind in _WITH_INTERVALS and any(map(is_interval, _operands(node))):
            return self._with_interval(node)
        if kind in CALLS:
            return self._call(node, *CALLS[kind])
        if kind is exp.Anonymous:
            return call_forms.named(self, node)
        form = node_forms.FORMS.get(kind)
        if form is None:
            changing = CHANGING.get(_CHANGING_NODES.get(kind, ""), "")
            reason = f"{_CHANGING_NODES[kind]} {changing}" if changing else near_form(node)
            is_wrong = False if kind is exp.HexString else None  # Spark takes it
            raise NotAnExpression(node, reason, is_wrong=is_wrong)
        return form(self, node)

    def _of_variable(self, node: Any) -> Expression | None:
        """t and t.price, where t is the variable of a lambda."""
        if isinstance(node, exp.Identifier) and node.this in self._variables:
            return Variable(len(self._variables) - 1 - self._variables[::-1].index(node.this))
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            inner = self._of_variable(node.this)
            if inner is not None:
                return Call("field", (inner, Constant(node.expression.this)))
        return None

    def _call(self, node: Any, function: str, keys: Arguments) -> Expression:
        if looseness(node.this) > looseness(node):
            raise NotAnExpression(node, "beside another operator this needs parentheses")
        extra = [key for key, value in node.args.items() if value and key not in keys]
        if any(key not in IGNORED for key in extra):
            raise NotAnExpression(node, near_form(node))
        found = [node.args.get(key) for key in keys]
        if isinstance(node, OF_DATES):
            found = [_unwrapped(one) for one in found]
        return self.called(node, function, [one for one in found if one is not None])

    def called(self, node: Any, function: str, nodes: list[Any]) -> Expression:
        known = FUNCTIONS.get(function)
        if known is not None and not known.least <= len(nodes) <= known.most:
            needs = counted(known.least, known.most)
            raise NotAnExpression(
                node, f"{function} takes {needs}, not {len(nodes)}", is_wrong=False
            )
        return Call(function, tuple(self.read(one) for one in nodes))

    def over_elements(self, node: Any, function: str, nodes: list[Any]) -> Expression:
        """exists(tags, t -> t = 'x')"""
        if nodes and isinstance(nodes[0], exp.Query):
            raise NotAnExpression(node, NO_QUERY)
        if len(nodes) != 2 or not isinstance(nodes[1], exp.Lambda):
            raise NotAnExpression(node, f"{function} takes an array and a lambda: tag -> tag = 'x'")
        array, body = self.read(nodes[0]), nodes[1]
        if len(body.expressions) != 1:
            is_wrong = function not in _WITH_POSITION
            reason = f"the lambda of {function} takes one variable"
            raise NotAnExpression(node, reason, is_wrong=is_wrong)
        level = len(self._variables)
        if level == LAMBDAS_MAX:
            raise NotAnExpression(node, f"lambdas are nested more than {LAMBDAS_MAX} deep")
        self._variables.append(body.expressions[0].name)
        found = self.read(body.this)
        self._variables.pop()
        return Call(function, (array, Lambda(level, found)))

    # ---- intervals, which are microseconds

    def _with_interval(self, node: Any) -> Expression:
        """A time and an interval, or a comparison with an interval."""
        function = CALLS[type(node)][0]
        if not isinstance(node, exp.Add | exp.Sub):
            return Call(function, tuple(map(self.interval, _operands(node))))
        left, right = node.this, node.expression
        if is_interval(left) and isinstance(node, exp.Add) and not is_interval(right):
            left, right = right, left
        if is_interval(left):
            raise NotAnExpression(
                node, "an interval is added to a time or compared with a difference"
            )
        kind = "plus interval" if isinstance(node, exp.Add) else "minus interval"
        return Call(kind, (self.read(left), self.interval(right)))

    def interval(self, node: Any) -> Expression:
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Interval):
            return self._of_interval(node)
        if isinstance(node, exp.Neg):
            return Call("negative", (self.interval(node.this),))
        if isinstance(node, exp.Mul) and is_interval(node):
            sides = (node.this, node.expression)
            parts = [self.interval(one) if is_interval(one) else self.read(one) for one in sides]
            return Call("multiply", tuple(parts))
        if isinstance(node, exp.Add | exp.Sub) and is_interval(node):
            return Call(CALLS[type(node)][0], tuple(map(self.interval, _operands(node))))
        if isinstance(node, exp.Sub):
            ends = (self.read(node.expression), self.read(node.this))
            return Call("timestampdiff", (Constant("MICROSECOND"), *ends))
        raise NotAnExpression(
            node, "an interval compares with a difference of times: due - at < INTERVAL 1 DAY"
        )

    def _of_interval(self, node: Any) -> Expression:
        """INTERVAL 1 DAY; the sign of INTERVAL -1 DAY may stand in the literal."""
        amount, unit = node.this, Constant(_unit_text(node.args.get("unit")))
        is_negative = isinstance(amount, exp.Neg)
        amount = amount.this if is_negative else amount
        if not isinstance(amount, exp.Literal):
            raise NotAnExpression(node, "the length of an interval is a literal")
        digits = amount.this.strip()
        if digits.startswith("-"):
            is_negative, digits = not is_negative, digits[1:].strip()
        if not digits.isascii() or not digits.isdigit():
            raise NotAnExpression(node, "this cannot be read")
        found = Call("interval", (Slot(int(digits)), unit))
        return Call("negative", (found,)) if is_negative else found


def _dotted(node: Any) -> str | None:
    if isinstance(node, exp.Column):
        parts = node.parts
        is_plain = all(isinstance(part, exp.Identifier) for part in parts)
        return ".".join(part.this for part in parts) if is_plain else None
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        before = _dotted(node.this)
        return None if before is None else f"{before}.{node.expression.this}"
    return None


def _in_json(node: Any) -> Expression | None:
    """body:a.b, a value within the JSON that an attribute holds."""
    name = _dotted(node)
    found = path_of(name) if name is not None else None
    if found is None:
        return None
    if PATH_MARK in found[1]:
        raise NotAnExpression(node, "a path has one colon: body:a.b[0]")
    return Call("get_json_object", (AttributeOf(found[0]), Constant(f"$.{found[1]}")))


_WITH_POSITION = ("transform", "filter")
"""Whose lambdas may have a second variable in Spark, the position."""
_WITH_INTERVALS = (exp.Add, exp.Sub, exp.Between, *_COMPARISONS)
_CHANGING_NODES: dict[type[Any], str] = {
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentUser: "current_user",
    exp.CurrentTime: "current_time",
    exp.SessionUser: "session_user",
}


def is_interval(node: Any) -> bool:
    """Is it written as one?"""
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    if isinstance(node, exp.Add | exp.Sub):
        return is_interval(node.this) and is_interval(node.expression)
    if isinstance(node, exp.Mul):
        return is_interval(node.this) or is_interval(node.expression)
    return isinstance(node, exp.Interval)


def _operands(node: Any) -> list[Any]:
    if isinstance(node, exp.Between):
        return [node.this, node.args["low"], node.args["high"]]
    return [node.this, node.expression]


def _unit_text(unit: Any) -> str:
    if isinstance(unit, exp.IntervalSpan):
        return f"{unit.this.name} TO {unit.expression.name}"
    return unit.name if unit is not None else ""


def _unwrapped(node: Any) -> Any:
    return node.this if isinstance(node, exp.TsOrDsToDate) else node


def _slot(node: Any) -> int:
    text = node.this
    if text.isascii() and text.isdigit():
        return int(text)
    raise NotAnExpression(node, "this cannot be read")
