"""The syntax tree of CESQL, its types, and the table of its functions (CESQL 1.0, 2 and 3.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from palio.model.expressions.cesql_functions import CesqlValue

BOOLEAN, INTEGER, STRING = "Boolean", "Integer", "String"
ZERO: dict[str, CesqlValue] = {BOOLEAN: False, INTEGER: 0, STRING: ""}
ARITHMETIC = frozenset("+-*/%")
EQUALITY = frozenset({"=", "!="})
ORDERS = frozenset({"<", "<=", ">", ">="})
MANY = 1000
"""Arguments of a function that takes any number."""


@dataclass(frozen=True, slots=True)
class Signature:
    """`takes` are the types of the arguments, the last for all that follow; "" takes any type."""

    gives: str
    takes: tuple[str, ...]
    least: int
    most: int


FUNCTIONS = {
    "INT": Signature(INTEGER, ("",), 1, 1),
    "BOOL": Signature(BOOLEAN, ("",), 1, 1),
    "STRING": Signature(STRING, ("",), 1, 1),
    "ABS": Signature(INTEGER, (INTEGER,), 1, 1),
    "LENGTH": Signature(INTEGER, (STRING,), 1, 1),
    "CONCAT": Signature(STRING, (STRING,), 0, MANY),
    "CONCAT_WS": Signature(STRING, (STRING,), 1, MANY),
    "LOWER": Signature(STRING, (STRING,), 1, 1),
    "UPPER": Signature(STRING, (STRING,), 1, 1),
    "TRIM": Signature(STRING, (STRING,), 1, 1),
    "LEFT": Signature(STRING, (STRING, INTEGER), 2, 2),
    "RIGHT": Signature(STRING, (STRING, INTEGER), 2, 2),
    "SUBSTRING": Signature(STRING, (STRING, INTEGER, INTEGER), 2, 3),
}


@dataclass(frozen=True, slots=True)
class Literal:
    value: CesqlValue
    position: int


@dataclass(frozen=True, slots=True)
class CesqlAttribute:
    name: str
    position: int


@dataclass(frozen=True, slots=True)
class CesqlExists:
    name: str
    position: int


@dataclass(frozen=True, slots=True)
class Negation:
    """`NOT x`, which gives a Boolean, or `-x`, which gives an Integer."""

    operator: str
    operand: Node
    position: int


@dataclass(frozen=True, slots=True)
class CesqlOperation:
    """Arithmetic, a comparison, or XOR."""

    operator: str
    left: Node
    right: Node
    position: int


@dataclass(frozen=True, slots=True)
class CesqlJunction:
    """Operands joined by AND, or by OR, and evaluated from the left."""

    operator: str
    operands: tuple[Node, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Like:
    operand: Node
    pattern: str
    position: int


@dataclass(frozen=True, slots=True)
class In:
    operand: Node
    members: tuple[Node, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Invocation:
    """`signature` is None where there is no such function."""

    name: str
    arguments: tuple[Node, ...]
    position: int

    @property
    def signature(self) -> Signature | None:
        found = FUNCTIONS.get(self.name)
        if found is None or not found.least <= len(self.arguments) <= found.most:
            return None
        return found


Node: TypeAlias = (
    Literal
    | CesqlAttribute
    | CesqlExists
    | Negation
    | CesqlOperation
    | CesqlJunction
    | Like
    | In
    | Invocation
)


def parts_of(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Negation | Like):
        return (node.operand,)
    if isinstance(node, CesqlOperation):
        return (node.left, node.right)
    if isinstance(node, CesqlJunction):
        return node.operands
    if isinstance(node, In):
        return (node.operand, *node.members)
    return node.arguments if isinstance(node, Invocation) else ()


def type_of_value(value: CesqlValue) -> str:
    return BOOLEAN if isinstance(value, bool) else INTEGER if isinstance(value, int) else STRING


def type_of(node: Node) -> str | None:
    """What it gives; None for an attribute, whose type only a message knows."""
    if isinstance(node, Literal):
        return type_of_value(node.value)
    if isinstance(node, CesqlAttribute):
        return None
    if isinstance(node, Negation):
        return INTEGER if node.operator == "-" else BOOLEAN
    if isinstance(node, CesqlOperation):
        return INTEGER if node.operator in ARITHMETIC else BOOLEAN
    if isinstance(node, Invocation):
        return node.signature.gives if node.signature else BOOLEAN
    return BOOLEAN


def is_constant(node: Node) -> bool:
    return not isinstance(node, CesqlAttribute | CesqlExists) and all(
        map(is_constant, parts_of(node))
    )
