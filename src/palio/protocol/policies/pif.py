"""PIF in a broker: per-interface forwarding (2006, 3.3)."""

from __future__ import annotations

from palio.protocol.policies.tree_policy import TreePolicy
from palio.routing.router import Router
from palio.routing.schemes.hops import PerInterfaceHops


class PIFPolicy(TreePolicy):
    def __init__(self, me: str, router: Router) -> None:
        super().__init__("PIF", me, router, PerInterfaceHops)
