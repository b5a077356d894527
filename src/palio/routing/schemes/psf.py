"""PSF, per-source forwarding: a predicate for each source and next hop (2006, 3.1).

    F_u(v, w) = the disjunction of pred(x) over all x in T_v/(u, w)
    Init_v(m) = v       Hdr_u(v) = v       Fwd_u(v, m) = {w | m in F_u(v, w)}

A message follows the tree of its source, and only where somebody downstream is interested.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import Any

from palio.model.message import Message
from palio.model.predicate import Predicate
from palio.routing.schemes.hops import PerSourceHops
from palio.routing.schemes.memory import Amount, psf_bits
from palio.routing.schemes.scheme import Hops, Scheme
from palio.routing.trees import Node

_TABLES = 1 << 16


class PSF(Scheme):
    name = "PSF"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._hops = PerSourceHops(self.net)
        self._table = lru_cache(_TABLES)(self._compiled)

    def init(self, v: Node, message: Message) -> Node:
        return v

    def hdr(self, u: Node, header: Node) -> Node:
        return header

    def fwd(self, u: Node, header: Node, message: Message) -> list[Node]:
        return self.entries(u, header).matching(message)

    def predicate(self, u: Node, v: Node, w: Node) -> Predicate:
        """F_u(v, w)."""
        tree, at = self.net.tree(v), self.net.number(w)
        is_child = tree.parents[at] == self.net.number(u)
        return self._disjunctions.of(self._behind(tree.masks[at]) if is_child else 0)

    def entries(self, u: Node, v: Node) -> Hops:
        """F_u(v, ·), compiled; sources with the same sets behind the same links share it."""
        entries = self._hops.entries(self.net.number(u), self.net.number(v))
        behind = [(w, self._behind(mask)) for w, mask in entries]
        return self._table(tuple([entry for entry in behind if entry[1]]))

    def stored(self) -> dict[Node, Amount]:
        nodes: defaultdict[Node, Amount] = defaultdict(Amount)
        for tree in self.net.trees(self.senders):
            for x in tree.order[1:]:
                mask = self._behind(tree.masks[x])
                if mask:
                    nodes[self.net.nodes[tree.parents[x]]] += self._disjunctions.amount(mask)
        return nodes

    def formula_bits(self, alpha: float = 1.0) -> float:
        receivers = self._disjunctions.receivers
        hops = (
            (tree.masks[x] & receivers).bit_count()  # each receiver once for each link before it
            for tree in self.net.trees(self.senders)
            for x in tree.order[1:]
        )
        return psf_bits(len(self.net), len(self.senders), hops, self.predicate_bits, alpha)

    def _behind(self, mask: int) -> int:
        return mask & self._disjunctions.receivers

    def _compiled(self, behind: tuple[tuple[int, int], ...]) -> Hops:
        return Hops(self.net, {w: self._disjunctions.of(mask) for w, mask in behind})
