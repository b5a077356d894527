"""PSF in a broker: per-source forwarding (2006, 3.1)."""

from __future__ import annotations

from palio.protocol.policies.tree_policy import TreePolicy
from palio.routing.router import Router
from palio.routing.schemes.hops import PerSourceHops


class PSFPolicy(TreePolicy):
    def __init__(self, me: str, router: Router) -> None:
        super().__init__("PSF", me, router, PerSourceHops)
