"""PSF, iPS and PIF in a broker: messages follow the tree of their source (2006, 3.1 to 3.3).

Every broker knows what every other one wants. So Fwd need not evaluate a disjunction for each next
hop: a message goes to w if one of the brokers behind w wants it. That is equivalent, and a change of
subscriptions changes nothing here.
"""

from __future__ import annotations

from collections.abc import Callable

from palio.protocol.policies.scheme_policy import SchemePolicy
from palio.protocol.policies.source_trees import SourceTrees
from palio.routing.packets import Send
from palio.routing.router import Router
from palio.routing.schemes.hops import TreeHops
from palio.routing.topology import Topology


class TreePolicy(SourceTrees, SchemePolicy):
    """`hops_of` makes the functions of the scheme for a network."""

    def __init__(
        self, name: str, me: str, router: Router, hops_of: Callable[[Topology], TreeHops]
    ) -> None:
        SchemePolicy.__init__(self, me, router)
        SourceTrees.__init__(self, name, me, hops_of)

    def on_topology(self, net: Topology | None) -> list[Send]:
        self.follow(net)
        return super().on_topology(net)
