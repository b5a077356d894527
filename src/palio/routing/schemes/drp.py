"""DRP, dynamic receiver partitioning: the source names the receivers (2006, 3.4).

    unicast_u(w) = the neighbour of u on the shortest path from u to w
    Init_v(m)    = H_W for W = {w | m in pred(w)}: the receivers by next hop
    Hdr_u(H)     = H_W for W = H(u)
    Fwd_u(H, m)  = the domain of H at the source, else {unicast_u(w) | w in H(u)}

A processor that is in W itself has got the message, and leaves W. By default unicast_u follows T_u,
and since our trees fit each other, receivers that part never meet again: DRP then causes the
packets of PSF. `unicast` may be another function, and DRP is as good as it is: where several
shortest paths exist and different receivers follow different ones, a processor may see two packets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from palio.errors import InvalidTopology
from palio.model.message import Message
from palio.routing.schemes.hops import partition, unicast_hops
from palio.routing.schemes.memory import Amount, drp_bits, identifier_bits
from palio.routing.schemes.scheme import Scheme
from palio.routing.trees import Node

Partition: TypeAlias = Mapping[Node, frozenset[Node]]
Unicast: TypeAlias = Callable[[Node, Node], Node]


class DRP(Scheme):
    name = "DRP"

    def __init__(self, *arguments: Any, unicast: Unicast | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._given = unicast
        self._next: dict[Node, dict[Node, Node]] = {}

    def init(self, v: Node, message: Message) -> Partition:
        return self._partition(v, self.interests.matching(message))

    def hdr(self, u: Node, header: Partition) -> Partition:
        return self._partition(u, header.get(u, ()))

    def fwd(self, u: Node, header: Partition, message: Message) -> list[Node]:
        if u not in header:  # the origin
            return list(header)
        return list(self._partition(u, header[u]))

    def _partition(self, u: Node, receivers: Iterable[Node]) -> Partition:
        """H_W at u."""
        others = [w for w in receivers if w != u]
        found = partition(others, {w: self.unicast(u, w) for w in others})
        return {hop: frozenset(found[hop]) for hop in sorted(found)}

    def unicast(self, u: Node, w: Node) -> Node:
        """The neighbour of u that is next on the path to w."""
        if self._given is None:
            if u not in self._next:
                self._next[u] = unicast_hops(self.net, u)
            return self._next[u][w]
        hop = self._given(u, w)
        if hop not in self.net.neighbours(u):
            raise InvalidTopology(
                f"unicast({u!r}, {w!r}) gives {hop!r}, which is no neighbour of {u!r}; "
                f"there are {', '.join(map(repr, self.net.neighbours(u)))}"
            )
        return hop

    def stored(self) -> dict[Node, Amount]:
        bits = identifier_bits(len(self.net))
        pred = sum((self._disjunctions.amount(1 << x) for x in self._disjunctions.parts), Amount())
        nodes: dict[Node, Amount] = {}
        for u in self.net.nodes:
            others = len(self.predicates) - (u in self.predicates)
            nodes[u] = Amount(identifier_bits=bits * others)  # unicast_u
            if u in self._sending:
                nodes[u] += pred
        return nodes

    def formula_bits(self, alpha: float = 1.0) -> float:
        """DRP combines no predicates, so there is no advantage."""
        return drp_bits(len(self.net), len(self.senders), len(self.predicates), self.predicate_bits)
