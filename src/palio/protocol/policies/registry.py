"""The routing policies by their names in broker.toml. A new one is a file and a line here."""

from __future__ import annotations

from palio.protocol.policies.drp import DRPPolicy
from palio.protocol.policies.ips import IPSPolicy
from palio.protocol.policies.pif import PIFPolicy
from palio.protocol.policies.policy import RoutingPolicy
from palio.protocol.policies.psf import PSFPolicy
from palio.protocol.policies.subscription_forwarding import (
    FORWARDING,
    SubscriptionForwardingPolicy,
)

POLICIES: dict[str, type[RoutingPolicy]] = {
    FORWARDING: SubscriptionForwardingPolicy,
    "PSF": PSFPolicy,
    "iPS": IPSPolicy,
    "PIF": PIFPolicy,
    "DRP": DRPPolicy,
}
