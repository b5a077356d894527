"""The routing policies by their names in broker.toml. A new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable

from palio.protocol.policies.drp import DRPPolicy
from palio.protocol.policies.ips import IPSPolicy
from palio.protocol.policies.pif import PIFPolicy
from palio.protocol.policies.policy import RoutingPolicy
from palio.protocol.policies.psf import PSFPolicy
from palio.protocol.policies.subscription_forwarding import SubscriptionForwardingPolicy
from palio.routing.router import Router

POLICIES: dict[str, Callable[[str, Router], RoutingPolicy]] = {
    "forwarding": SubscriptionForwardingPolicy,
    "PSF": PSFPolicy,
    "iPS": IPSPolicy,
    "PIF": PIFPolicy,
    "DRP": DRPPolicy,
}
