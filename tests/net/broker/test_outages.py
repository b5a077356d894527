"""Outages that overlap."""

from __future__ import annotations

from palio.net.broker.outages import OF_COMMITS, Outages
from palio.net.listeners.listener import Dismissal
from palio.net.storage.store import LeaseExpired, StoreFull, StoreUnreachable
from palio.protocol.wire.codes import CloseCode


def test_an_outage_lasts_until_each_kind_is_over() -> None:
    outages = Outages()
    assert outages.current is None
    lease = outages.begin(LeaseExpired("not renewed"))
    outages.begin(StoreUnreachable("away"))
    assert outages.begin(StoreFull("full")) == Dismissal(CloseCode.STORE_FULL, "full")
    outages.end(*OF_COMMITS)
    assert outages.current == lease == Dismissal(CloseCode.LEASE_EXPIRED, "not renewed")
    outages.end(LeaseExpired)
    assert outages.current is None
