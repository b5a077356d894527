"""iPS in a broker: improved per-source forwarding (2006, 3.2)."""

from __future__ import annotations

from palio.protocol.policies.tree_policy import TreePolicy
from palio.routing.router import Router
from palio.routing.schemes.hops import IndistinguishableHops


class IPSPolicy(TreePolicy):
    def __init__(self, me: str, router: Router) -> None:
        super().__init__("iPS", me, router, IndistinguishableHops)
