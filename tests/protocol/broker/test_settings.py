"""Settings that a broker cannot work with are refused at the start."""

from __future__ import annotations

import pytest

from palio.errors import PalioError
from palio.protocol.broker.settings import ROUTINGS, Neighbour, Settings
from palio.protocol.wire.codes import NeighbourRole
from tests.protocol.exchange import ANYBODY

SECRET = bytes(32)


@pytest.mark.parametrize("weight", [0.0, -1.0, 0.0009, 1_000_001.0, float("nan"), float("inf")])
def test_a_link_weighs_something(weight: float) -> None:
    """Were it refused when the neighbour joins, the link would be half there."""
    with pytest.raises(PalioError, match="the link to 'b' has weight"):
        Settings("a", ANYBODY, {"b": Neighbour(SECRET, weight)})


def test_a_link_has_credit() -> None:
    with pytest.raises(PalioError, match="needs credit"):
        Settings("a", ANYBODY, link_credit=0)


MASTER = Neighbour(SECRET, role=NeighbourRole.MASTER)
SLAVE = Neighbour(SECRET, role=NeighbourRole.SLAVE)
PEER = Neighbour(SECRET)


@pytest.mark.parametrize("routing", [name for name in ROUTINGS if name != "forwarding"])
@pytest.mark.parametrize("neighbour", [MASTER, SLAVE])
def test_roles_need_subscription_forwarding(neighbour: Neighbour, routing: str) -> None:
    with pytest.raises(PalioError, match=r"\[neighbours.b\] role = '\w+' goes with .*'forwarding'"):
        Settings("a", ANYBODY, {"b": neighbour}, routing)


def test_one_master() -> None:
    with pytest.raises(PalioError, match=r"broker 'a' has 2 masters, b and c; .*: change role"):
        Settings("a", ANYBODY, {"b": MASTER, "c": MASTER}, "forwarding")


def test_with_advertisements_a_slave_has_no_peers() -> None:
    Settings("a", ANYBODY, {"b": MASTER, "c": SLAVE}, "forwarding", advertisements=True)
    Settings("a", ANYBODY, {"b": PEER, "c": SLAVE}, "forwarding", advertisements=True)
    Settings("a", ANYBODY, {"b": MASTER, "c": PEER}, "forwarding")
    with pytest.raises(PalioError, match="the master 'b' and the peer 'c'"):
        Settings("a", ANYBODY, {"b": MASTER, "c": PEER}, "forwarding", advertisements=True)
