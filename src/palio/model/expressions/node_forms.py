"""The forms of expressions: nodes of sqlglot's tree that are no plain calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from sqlglot import exp

from palio.model.expressions.functions import FUNCTIONS
from palio.model.expressions.near_forms import near_form
from palio.model.expressions.node_table import CAST_TYPES
from palio.model.expressions.simplifying import field_of
from palio.model.expressions.tree import Call, Constant, Expression, Slot


class NotAnExpression(Exception):
    """A node that no expression has. One that is wrong is wrong for Spark too; others it may compute."""

    def __init__(self, node: Any, reason: str = "", *, is_wrong: bool | None = None) -> None:
        super().__init__(reason)
        self.node, self.reason = node, reason
        self.is_wrong = bool(reason) if is_wrong is None else is_wrong


class NodeReader(Protocol):
    """What reads the parts of a form."""

    def read(self, node: Any) -> Expression: ...

    def called(self, node: Any, function: str, nodes: list[Any]) -> Expression: ...

    def over_elements(self, node: Any, function: str, nodes: list[Any]) -> Expression: ...


Form: TypeAlias = Callable[[NodeReader, Any], Expression]


def listed(reader: NodeReader, node: Any) -> Expression:
    """this, and more in expressions."""
    function = {exp.Coalesce: "coalesce", exp.Least: "least", exp.Greatest: "greatest"}[type(node)]
    return reader.called(node, function, [node.this, *node.expressions])


def concat(reader: NodeReader, node: Any) -> Expression:
    return reader.called(node, "concat", node.expressions)


def trim(reader: NodeReader, node: Any) -> Expression:
    function = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
        node.args.get("position") or "", "trim"
    )
    characters = node.args.get("expression")
    return reader.called(node, function, [node.this, *([characters] if characters else [])])


def if_(reader: NodeReader, node: Any) -> Expression:
    otherwise = node.args.get("false") or exp.Null()
    return Call("case", tuple(map(reader.read, (node.this, node.args["true"], otherwise))))


def case(reader: NodeReader, node: Any) -> Expression:
    if node.this:
        return case_of(reader, node)
    parts: list[Expression] = []
    for branch in node.args["ifs"]:
        parts += [reader.read(branch.this), reader.read(branch.args["true"])]
    default = node.args.get("default")
    return Call("case", (*parts, reader.read(default) if default else Constant(None)))


def case_of(reader: NodeReader, node: Any) -> Expression:
    parts = [reader.read(node.this)]
    for branch in node.args["ifs"]:
        parts += [reader.read(branch.this), reader.read(branch.args["true"])]
    default = node.args.get("default")
    return Call("case of", (*parts, reader.read(default) if default else Constant(None)))


def is_null(reader: NodeReader, node: Any) -> Expression:
    if isinstance(node.expression, exp.Null):
        return Call("is null", (reader.read(node.this),))
    return Call("same", (reader.read(node.this), reader.read(node.expression)))


def nvl2(reader: NodeReader, node: Any) -> Expression:
    absent = Call("is null", (reader.read(node.this),))
    otherwise = node.args.get("false") or exp.Null()
    return Call("case", (absent, reader.read(otherwise), reader.read(node.args["true"])))


def differs(reader: NodeReader, node: Any) -> Expression:
    return Call("not", (Call("same", (reader.read(node.this), reader.read(node.expression))),))


def like(reader: NodeReader, node: Any) -> Expression:
    escape: tuple[Expression, ...] = ()
    if isinstance(node, exp.Escape):
        node, escape = node.this, (reader.read(node.expression),)
    if not isinstance(node, exp.Like | exp.ILike):
        raise NotAnExpression(node)
    value, right, is_opposite = reader.read(node.this), node.expression, node.args.get("negate")
    function = "like"
    if isinstance(right, exp.Any | exp.All):
        if escape:
            raise NotAnExpression(node, "ESCAPE does not stand behind LIKE ANY and LIKE ALL")
        # NOT LIKE ANY: one of the patterns does not match
        function = "like any" if isinstance(right, exp.Any) is not bool(is_opposite) else "like all"
        listed = right.this
        nodes = listed.expressions if isinstance(listed, exp.Tuple) else [listed]
        patterns = [reader.read(one) for one in nodes]
    else:
        patterns = [reader.read(right)]
    if isinstance(node, exp.ILike):
        value, patterns = Call("lower", (value,)), [Call("lower", (one,)) for one in patterns]
    found = Call("like escape" if escape else function, (value, *patterns, *escape))
    return Call("not", (found,)) if is_opposite else found


def in_(reader: NodeReader, node: Any) -> Expression:
    if any(value for key, value in node.args.items() if key not in ("this", "expressions")):
        raise NotAnExpression(node, near_form(node) or "IN takes a list of values here")
    if not node.expressions or isinstance(node.this, exp.Tuple):
        raise NotAnExpression(node, "IN takes a list of values here")
    return Call("in", tuple(map(reader.read, (node.this, *node.expressions))))


def array(reader: NodeReader, node: Any) -> Expression:
    return reader.called(node, "array", node.expressions)


def bracket(reader: NodeReader, node: Any) -> Expression:
    """tags[0] and m['k']"""
    if len(node.expressions) != 1:
        raise NotAnExpression(node, "an array has one index")
    inner, index = reader.read(node.this), node.expressions[0]
    if isinstance(index, exp.Literal) and index.is_string:
        return Call("field", (inner, reader.read(index)))
    return Call("element", (inner, reader.read(index)))


def dot(reader: NodeReader, node: Any) -> Expression:
    """m['k'].name and items[0].name"""
    if not isinstance(node.expression, exp.Identifier):
        raise NotAnExpression(node, near_form(node))
    return field_of(reader.read(node.this), node.expression.this)


def cast(reader: NodeReader, node: Any) -> Expression:
    wanted = node.args["to"].this.name
    function = f"cast as {CAST_TYPES.get(wanted, wanted)}"
    if function not in FUNCTIONS:
        near = "; compare hour(at) and minute(at)" if wanted == "TIME" else ""
        raise NotAnExpression(node, f"there is no CAST to {wanted}{near}", is_wrong=False)
    return Call(function, (reader.read(node.this),))


def trunc(reader: NodeReader, node: Any) -> Expression:
    unit = node.args["unit"].name  # of the shape: the slot of a literal
    if not unit.isdigit():
        raise NotAnExpression(node)
    return Call("date_trunc", (Slot(int(unit)), reader.read(node.this)))


def extract(reader: NodeReader, node: Any) -> Expression:
    """extract(YEAR FROM at)"""
    whole = node.expression
    while isinstance(whole, exp.Paren):
        whole = whole.this
    if isinstance(whole, exp.Sub) and not whole.find(exp.Interval):
        field = node.this.name.upper()
        raise NotAnExpression(
            node,
            f"extract takes a time, and this is a difference: timestampdiff({field}, start, end) is "
            "all of it in one unit",
            is_wrong=False,
        )
    return Call("date_part", (Constant(node.this.name), reader.read(node.expression)))


def collate(_reader: NodeReader, node: Any) -> Expression:
    raise NotAnExpression(
        node,
        "strings are compared by code points, so there is no COLLATE; without regard to case write "
        "lower(name) = 'ann'",
        is_wrong=False,
    )


FORMS: dict[type[Any], Form] = {
    exp.Coalesce: listed,
    exp.Least: listed,
    exp.Greatest: listed,
    exp.Concat: concat,
    exp.Trim: trim,
    exp.If: if_,
    exp.Case: case,
    exp.Is: is_null,
    exp.NullSafeNEQ: differs,
    exp.Nvl2: nvl2,
    exp.Like: like,
    exp.ILike: like,
    exp.Escape: like,
    exp.In: in_,
    exp.Array: array,
    exp.Bracket: bracket,
    exp.Dot: dot,
    exp.Cast: cast,
    exp.TryCast: cast,
    exp.TimestampTrunc: trunc,
    exp.Extract: extract,
    exp.Collate: collate,
}
