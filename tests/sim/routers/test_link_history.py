"""How far a statement has come on a link."""

from __future__ import annotations

from palio.sim.routers.link_history import LinkSession


def test_how_far_a_statement_has_come() -> None:
    """The drawing in `palio.sim.routers.link_history`."""
    session = LinkSession()
    session.sent["u"] = [3, 8, 8, 20]
    session.delivered["u"] = [5, 11, 14]
    assert [session.passed("u", t) for t in (2, 3, 4, 6, 9, 15, 20)] == [2, 5, 5, 6, 14, 15, None]
    assert session.passed("v", 7) == 7
    assert not session.is_delivered("u")
