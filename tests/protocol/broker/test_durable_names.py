"""Names and keys of durable subscriptions."""

from __future__ import annotations

from palio.protocol.broker.durable_names import DurableName, DurableNames


def test_a_renamed_subscription_keeps_its_key() -> None:
    names = DurableNames()
    names.add("ann/q", DurableName("ann", "q"), 1)
    names.rename("ann/q", DurableName("bob", "q"))
    assert (names.key("bob/q"), names.key("ann/q")) == ("ann/q", None)
    assert (names.owners(), names.owned("bob"), names.owned("ann")) == (["bob"], ["ann/q"], [])
    new = names.new_key("ann/q")
    assert new != "ann/q"
    names.add(new, DurableName("ann", "q"), 2)
    assert names.key("ann/q") == new
    assert [key for _, key in names.after(0)] == ["ann/q", new]
    names.remove("ann/q")
    assert (names.key("bob/q"), names.key("ann/q")) == (None, new)
    assert names.new_key("bob/q") == "bob/q"
    assert names.shown("gone") == "gone"
