"""What a scheme stores, measured; and what the 2006 paper says that it stores.

Measured is what the functions Init, Hdr and Fwd of every processor need: predicates as reduced
disjunctions, and identifiers of processors. A predicate takes, for each constraint, its name in
UTF-8, an operator (4 bits), a type (3 bits) and the value (64 bits for numbers and times, 1 for a
bool, UTF-8 for strings, the sum for a set). An identifier takes the logarithm of n, rounded up.

The formulas take M_p, the bits of a receiver's predicate, and alpha, the disjunction advantage;
with alpha = 1 they bound what is measured from above, for those in O() up to a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log2

from palio.model.predicate import Constraint, Filter
from palio.routing.trees import Node

_OPERATOR_BITS, _TYPE_BITS, _NUMBER_BITS = 4, 3, 64


@dataclass(frozen=True, slots=True)
class Amount:
    """How much is stored. An entry says which predicate holds for a header and a next hop; a
    disjunction is one predicate, and entries of one processor may share it (iPS)."""

    entries: int = 0
    predicates: int = 0
    constraints: int = 0
    predicate_bits: int = 0
    identifier_bits: int = 0

    @property
    def bits(self) -> int:
        return self.predicate_bits + self.identifier_bits

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.entries + other.entries,
            self.predicates + other.predicates,
            self.constraints + other.constraints,
            self.predicate_bits + other.predicate_bits,
            self.identifier_bits + other.identifier_bits,
        )


@dataclass(frozen=True, slots=True)
class Memory:
    """What a whole scheme stores, and what each of its processors does."""

    total: Amount
    nodes: Mapping[Node, Amount]
    formula_bits: float | None
    """The paper's formula for this scheme and network, with alpha = 1; if it has one."""
    alpha: float
    """The disjunction advantage of r predicates in Delta disjunctions (2006, 3.2)."""
    advantage_formula_bits: float | None
    """The formula with this alpha."""

    @classmethod
    def of(
        cls,
        nodes: Mapping[Node, Amount],
        formula_bits: float | None,
        alpha: float,
        advantage_formula_bits: float | None,
    ) -> Memory:
        total = sum(nodes.values(), Amount())
        return cls(total, nodes, formula_bits, alpha, advantage_formula_bits)

    @property
    def entries(self) -> int:
        return self.total.entries

    @property
    def predicates(self) -> int:
        return self.total.predicates

    @property
    def constraints(self) -> int:
        return self.total.constraints

    @property
    def bits(self) -> int:
        return self.total.bits


def identifier_bits(nodes: int) -> int:
    """The bits that tell so many processors apart."""
    return max(1, (nodes - 1).bit_length())


def filter_bits(conjunction: Filter) -> int:
    return sum(map(_constraint_bits, conjunction))


def _constraint_bits(constraint: Constraint) -> int:
    value = constraint.value
    values = value if isinstance(value, tuple) else () if value is None else (value,)
    operands = sum(
        8 * len(v.encode()) if isinstance(v, str) else 1 if isinstance(v, bool) else _NUMBER_BITS
        for v in values
    )
    return 8 * len(constraint.name.encode()) + _OPERATOR_BITS + _TYPE_BITS + operands


def psf_bits(
    nodes: int, senders: int, hops: Iterable[int], predicate_bits: float, alpha: float = 1.0
) -> float:
    """s log n + M_p * sum of dist(v, x) over senders and receivers, in hops (2006, 3.1).

    The paper has it with alpha = 1; with another alpha the predicates take so much less.
    """
    return senders * log2(nodes) + predicate_bits * alpha * sum(hops)


def psf_average_bits(
    nodes: int,
    senders: int,
    receivers: int,
    predicate_bits: float,
    distance: float,
    alpha: float = 1.0,
) -> float:
    """s log n + s r M_p d, with d the average distance (2006, 3.1); alpha as in `psf_bits`."""
    return senders * log2(nodes) + senders * receivers * predicate_bits * distance * alpha


def ips_tree_bits(nodes: int, receivers: int, predicate_bits: float, alpha: float = 1.0) -> float:
    """n r M_p alpha(r / Delta), for networks that are trees (2006, 3.2)."""
    return nodes * receivers * predicate_bits * alpha


def pif_bits(
    nodes: int,
    senders: int,
    receivers: int,
    degree: int,
    predicate_bits: float,
    alpha: float = 1.0,
) -> float:
    """n (s Delta log n + r M_p alpha(r / Delta)), the sum over n processors of their parts.

    The paper prints n r M_p in the brackets, once n too much: it gives O(r M_p alpha) for the F* of
    one processor (2006, 3.3).
    """
    return nodes * (senders * degree * log2(nodes) + receivers * predicate_bits * alpha)


def drp_bits(nodes: int, senders: int, receivers: int, predicate_bits: float) -> float:
    """n r log n + s r M_p (2006, 3.4)."""
    return nodes * receivers * log2(nodes) + senders * receivers * predicate_bits
