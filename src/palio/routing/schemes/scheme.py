"""What every routing scheme is: Init, Hdr and Fwd of each processor (2006, 2.1).

    source v      h = Init_v(m), and ⟨h, m⟩ goes to Fwd_v(h, m)
    processor u   got ⟨h, m⟩, and sends ⟨Hdr_u(h), m⟩ to Fwd_u(h, m)

`deliver` is this generic process and knows no scheme. A scheme says what its functions are and what
they store; the predicates that Fwd asks are compiled into forwarding tables, whose interfaces are
the next hops. A processor that hands messages to its own applications asks its own predicate.

Messages that match nothing downstream stop where they are. Receivers are the processors that were
given a predicate, senders by default all: what is stored for others is not stored at all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar

from palio.errors import InvalidTopology, PalioError
from palio.matching.table import ForwardingTable
from palio.model.language import parse
from palio.model.message import Message, as_message
from palio.model.predicate import Predicate
from palio.routing.schemes.delivery import Delivery, Vertex
from palio.routing.schemes.disjunctions import Disjunctions
from palio.routing.schemes.memory import Amount, Memory, identifier_bits
from palio.routing.topology import Topology
from palio.routing.trees import Node

_NAIVE_FILTERS_MAX = 64  # compiling for the kernels takes a millisecond: too long for a few


class Hops:
    """A forwarding table whose interfaces are processors."""

    def __init__(self, net: Topology, predicates: Mapping[int, Predicate]) -> None:
        self._nodes = {str(i): net.nodes[i] for i in predicates}
        entries = {str(i): p for i, p in predicates.items()}
        few = sum(map(len, predicates.values())) <= _NAIVE_FILTERS_MAX
        self._table = ForwardingTable.compile(entries, "naive" if few else "pivot")

    def matching(self, message: Message) -> list[Node]:
        """The processors whose predicate matches, in the order in which they were given."""
        return [self._nodes[name] for name in self._table.forward(message)]


class Scheme(ABC):
    """A routing scheme on a network with the predicates of its receivers."""

    name: ClassVar[str]

    def __init__(
        self,
        net: Topology,
        predicates: Mapping[Node, Predicate | str],
        senders: Iterable[Node] | None = None,
    ) -> None:
        self.net = net
        self.predicates = {x: parse(p) for x, p in predicates.items()}
        self.senders = net.nodes if senders is None else tuple(sorted(set(senders)))
        for node in (*self.predicates, *self.senders):
            net.number(node)
        self._disjunctions = Disjunctions({net.number(x): p for x, p in self.predicates.items()})
        self._sending = frozenset(self.senders)

    @abstractmethod
    def init(self, v: Node, message: Message) -> Any:
        """Init_v: the header of a new message."""

    @abstractmethod
    def hdr(self, u: Node, header: Any) -> Any:
        """Hdr_u: the header of the packets that u makes of one with this header."""

    @abstractmethod
    def fwd(self, u: Node, header: Any, message: Message) -> list[Node]:
        """Fwd_u: the neighbours that get the message next."""

    @abstractmethod
    def stored(self) -> dict[Node, Amount]:
        """What the three functions of each processor store, without the sender's own identifier."""

    @abstractmethod
    def formula_bits(self, alpha: float = 1.0) -> float | None:
        """What the paper says that the whole scheme stores, by default without advantage."""

    def deliver(self, source: Node, message: Message | Mapping[str, object]) -> Delivery:
        """The delivery tree of a message: all packets that it causes."""
        self.net.number(source)
        if source not in self._sending:
            raise InvalidTopology(f"processor {source!r} is none of the senders; name it there")
        known = as_message(message)
        header = self.init(source, known)
        vertices = [Vertex(source, header, 0.0, None)]
        sending: list[tuple[int, Any, int, int]] = [(0, header, 0, 0)]
        for at, sent, units, hops in sending:  # which grows meanwhile
            u = vertices[at].processor
            if hops >= len(self.net):
                raise PalioError(f"{self.name}: packets go round in circles at processor {u!r}")
            for w in self.fwd(u, vertices[at].header, known):
                late = units + self.net.units(u, w)
                vertices.append(Vertex(w, sent, self.net.length(late), at))
                sending.append((len(vertices) - 1, self.hdr(w, sent), late, hops + 1))
        seen = {vertex.processor for vertex in vertices}
        receivers = seen.intersection(self.interests.matching(known))
        return Delivery(self.net, self.predicates, known, tuple(vertices), frozenset(receivers))

    def memory(self) -> Memory:
        """What all processors store, by the node and in total."""
        name = Amount(identifier_bits=identifier_bits(len(self.net)))
        stored = self.stored()
        nodes = {
            x: stored.get(x, Amount()) + (name if x in self._sending else Amount())
            for x in self.net.nodes
        }
        alpha = self._disjunctions.advantage(self.degree_max)
        return Memory.of(nodes, self.formula_bits(), alpha, self.formula_bits(alpha))

    @cached_property
    def interests(self) -> Hops:
        """The own predicates of all receivers: one table stands for those of each."""
        return Hops(self.net, self._disjunctions.parts)

    @property
    def predicate_bits(self) -> float:
        """M_p: the bits of a receiver's predicate, on average."""
        amounts = [
            self._disjunctions.amount(1 << i).predicate_bits for i in self._disjunctions.parts
        ]
        return sum(amounts) / len(amounts) if amounts else 0.0

    @property
    def degree_max(self) -> int:
        """Delta: how many neighbours the best-connected processor has."""
        return max(len(self.net.neighbours(x)) for x in self.net.nodes)
