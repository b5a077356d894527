"""iPS, improved per-source forwarding: one entry for sources that look alike (2006, 3.2).

    I_u(v)    = who stands for v's class of indistinguishable sources at u
    F_u(i, w) = as in PSF, for representatives i only
    R_u(i)    = 1 where nobody below u can tell the class of i from u itself
    Init_v(m) = v       Hdr_u(v) = u if R_u(I_u(v)), else v       Fwd_u(v, m) = {w | m in F_u(I_u(v), w)}

A message takes the way it takes in PSF. On a tree every header is the last hop, the domain of F_u
is N(u), I_u is the identity and R_u is 1.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

from palio.model.message import Message
from palio.model.predicate import Predicate
from palio.routing.schemes.hops import IndistinguishableHops
from palio.routing.schemes.memory import Amount, identifier_bits, ips_tree_bits
from palio.routing.schemes.scheme import Hops, Scheme
from palio.routing.schemes.sources import Entries
from palio.routing.trees import Node

_TABLES = 1 << 16


class IPS(Scheme):
    name = "iPS"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._hops = IndistinguishableHops(self.net)
        self._classes = self._hops.classes
        self._table = lru_cache(_TABLES)(self._compiled)

    def init(self, v: Node, message: Message) -> Node:
        return v

    def hdr(self, u: Node, header: Node) -> Node:
        return self.net.nodes[self._hops.header(self.net.number(u), self.net.number(header))]

    def fwd(self, u: Node, header: Node, message: Message) -> list[Node]:
        entries = self._behind(self.net.number(u), self.net.number(header))
        return self._table(entries).matching(message)

    def representative(self, u: Node, v: Node) -> Node:
        """I_u(v)."""
        return self.net.nodes[self._classes.representative(self.net.number(u), self.net.number(v))]

    def rewrites(self, u: Node, v: Node) -> bool:
        """R_u(I_u(v))."""
        return self._is_rewritten(self.net.number(u), self.net.number(v))

    def domain(self, u: Node) -> frozenset[Node]:
        """The representatives of all sources but u itself, whose own messages have an entry too."""
        known = self._classes.representatives[self.net.number(u)]
        return frozenset(self.net.nodes[i] for i in known) - {u}

    def headers(self, u: Node) -> frozenset[Node]:
        """The headers that packets to u may have: what I_u must know."""
        return frozenset(self.net.nodes[i] for i in self._headers[self.net.number(u)])

    def predicate(self, u: Node, v: Node, w: Node) -> Predicate:
        """F_u(I_u(v), w)."""
        entries = dict(self._behind(self.net.number(u), self.net.number(v)))
        return self._disjunctions.of(entries.get(self.net.number(w), 0))

    def _is_rewritten(self, u: int, header: int) -> bool:
        return bool(self._classes.rewrites[u][self._classes.label[u, header]])

    def _behind(self, u: int, header: int) -> Entries:
        """The next hops of u for this header with the receivers behind each."""
        receivers = self._disjunctions.receivers
        entries = self._hops.entries(u, header)
        return tuple([(w, mask & receivers) for w, mask in entries if mask & receivers])

    def _compiled(self, entries: Entries) -> Hops:
        return Hops(self.net, {w: self._disjunctions.of(mask) for w, mask in entries})

    @cached_property
    def _headers(self) -> list[set[int]]:
        """Which headers reach each node, with those of its own messages."""
        found: list[set[int]] = [set() for _ in self.net.nodes]
        receivers = self._disjunctions.receivers
        for tree in self.net.trees(self.senders):
            sent = [-1] * len(self.net)  # the header with which each node passes messages on
            for x in tree.order:
                if not tree.masks[x] & receivers:
                    continue
                if x == tree.root:
                    header = sent[x] = x
                else:
                    header = sent[tree.parents[x]]
                    sent[x] = x if self._is_rewritten(x, header) else header
                found[x].add(header)
        return found

    def stored(self) -> dict[Node, Amount]:
        """Equal disjunctions for one next hop are stored once, as the paper's tree analysis has it;
        entries refer to them."""
        nodes: dict[Node, Amount] = {}
        name_bits = identifier_bits(len(self.net))
        for u, headers in enumerate(self._headers):
            stands_for = {h: self._classes.representative(u, h) for h in headers}
            found = [entry for i in set(stands_for.values()) for entry in self._behind(u, i)]
            amounts = (self._disjunctions.amount(mask) for _, mask in set(found))
            kept = sum(amounts, Amount())
            renamed = sum(h != i for h, i in stands_for.items())  # I_u, where not the identity
            rewritten = {i: self._is_rewritten(u, i) for i in stands_for.values() if i != u}
            varied = len(set(rewritten.values())) > 1  # R_u is no constant: a bit each
            bits = name_bits * (2 * renamed + len(found)) + len(rewritten) * varied
            nodes[self.net.nodes[u]] = replace(kept, entries=len(found), identifier_bits=bits)
        return nodes

    def formula_bits(self, alpha: float = 1.0) -> float | None:
        """The paper has a formula for trees only."""
        if len(self.net.edges) != len(self.net) - 1:
            return None
        return ips_tree_bits(len(self.net), len(self.predicates), self.predicate_bits, alpha)
