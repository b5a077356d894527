"""The routing schemes of the 2006 paper on any network: PSF, iPS, PIF, DRP.

topology, predicates ──scheme──▶ Scheme ──deliver──▶ Delivery ──is_ideal, ...──▶ True or False
                                   └─────memory────▶ Memory
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from palio.errors import InvalidTopology
from palio.model.predicate import Predicate
from palio.routing.schemes.drp import DRP
from palio.routing.schemes.ips import IPS
from palio.routing.schemes.pif import PIF
from palio.routing.schemes.psf import PSF
from palio.routing.schemes.scheme import Scheme
from palio.routing.topology import Topology
from palio.routing.trees import Node

SCHEMES: dict[str, type[Scheme]] = {"PSF": PSF, "iPS": IPS, "PIF": PIF, "DRP": DRP}


def scheme(
    name: str,
    net: Topology,
    predicates: Mapping[Node, Predicate | str],
    *,
    senders: Iterable[Node] | None = None,
    **options: Any,
) -> Scheme:
    """A routing scheme on a network: PSF, iPS, PIF or DRP.

    Receivers are the nodes with a predicate (or its SQL text), senders by default all nodes. DRP
    takes `unicast`, a function from (processor, receiver) to the next hop, instead of its own.

    >>> net = Topology.from_edges([(1, 2, 1.0), (2, 3, 2.5)])
    >>> tree = scheme("PSF", net, {3: "x > 0"}).deliver(source=1, message={"x": 1})
    >>> tree.processors, tree.packets, tree.latency
    ({1, 2, 3}, 2, {3: 3.5})
    """
    if name not in SCHEMES:
        raise InvalidTopology(f"no scheme {name!r}; there are {', '.join(SCHEMES)}")
    if options and (name != "DRP" or set(options) != {"unicast"}):
        raise InvalidTopology(
            f"{name} takes no option {', '.join(sorted(options))}; only DRP has one, `unicast`"
        )
    return SCHEMES[name](net, predicates, senders, **options)
