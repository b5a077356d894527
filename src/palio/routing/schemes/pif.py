"""PIF, per-interface forwarding: a predicate for each next hop, whatever the source (2006, 3.3).

    F*_u(w) = the disjunction of F_u(v, w) of PSF over all sources v
    Init_v(m) = v       Hdr_u(v) = v       Fwd_u(v, m) = {w | w in child_u(v) and m in F*_u(w)}

A message stays in the tree of its source, but it may follow a link because of somebody whom other
sources reach over it: the delivery tree contains that of PSF and may be larger.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from palio.model.message import Message
from palio.model.predicate import Predicate
from palio.routing.schemes.hops import PerInterfaceHops
from palio.routing.schemes.memory import Amount, identifier_bits, pif_bits
from palio.routing.schemes.scheme import Hops, Scheme
from palio.routing.trees import Node


class PIF(Scheme):
    name = "PIF"

    def init(self, v: Node, message: Message) -> Node:
        return v

    def hdr(self, u: Node, header: Node) -> Node:
        return header

    def fwd(self, u: Node, header: Node, message: Message) -> list[Node]:
        children = self.net.tree(header).children(u)
        return [w for w in self._entries(u).matching(message) if w in children] if children else []

    def predicate(self, u: Node, w: Node) -> Predicate:
        """F*_u(w)."""
        return self._disjunctions.of(self._behind[self.net.number(u)].get(self.net.number(w), 0))

    @cached_property
    def _behind(self) -> list[dict[int, int]]:
        """For each u and w the receivers in T_v/(u, w) of any sender v."""
        receivers = self._disjunctions.receivers
        hops = PerInterfaceHops(self.net, self.senders)
        return [
            {w: mask & receivers for w, mask in own.items() if mask & receivers}
            for own in hops.behind
        ]

    @cached_property
    def _tables(self) -> dict[Node, Hops]:
        return {}

    def _entries(self, u: Node) -> Hops:
        table = self._tables.get(u)
        if table is None:
            behind = sorted(self._behind[self.net.number(u)].items())
            table = Hops(self.net, {w: self._disjunctions.of(mask) for w, mask in behind})
            self._tables[u] = table
        return table

    def stored(self) -> dict[Node, Amount]:
        nodes: defaultdict[Node, Amount] = defaultdict(Amount)
        for u, behind in zip(self.net.nodes, self._behind, strict=True):
            for mask in behind.values():
                nodes[u] += self._disjunctions.amount(mask)
        child = Amount(identifier_bits=identifier_bits(len(self.net)))
        for tree in self.net.trees(self.senders):  # child_u(v)
            for x in tree.order[1:]:
                nodes[self.net.nodes[tree.parents[x]]] += child
        return nodes

    def formula_bits(self, alpha: float = 1.0) -> float:
        return pif_bits(
            len(self.net),
            len(self.senders),
            len(self.predicates),
            self.degree_max,
            self.predicate_bits,
            alpha,
        )
