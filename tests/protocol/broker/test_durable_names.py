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


def test_groups_of_one_name_are_several_subscriptions() -> None:
    names = DurableNames()
    titles = [DurableName("ann", "q", group) for group in ("", "g", "h")]
    for version, title in enumerate(titles, 1):
        names.add(names.new_key(str(title)), title, version)
    assert [names.key_of(title) for title in titles] == ["ann/q", "ann/q:g", "ann/q:h"]
    assert names.key_of(DurableName("ann", "q:g")) is None, "this is another name"
    names.remove("ann/q:g")
    assert names.key_of(DurableName("ann", "q", "g")) is None
    assert names.key("ann/q:g") is None


def test_a_subscription_without_a_known_group_fits_any_until_it_has_one() -> None:
    names = DurableNames()
    names.add("ann/q", DurableName("ann", "q", None), 1)
    names.add("ann/q:g", DurableName("ann", "q", "g"), 2)
    assert names.is_open("ann/q")
    assert not names.is_open("ann/q:g")
    assert not names.is_open("ann/new")
    found = [names.key_of(DurableName("ann", "q", group)) for group in ("", "g", "h")]
    assert found == ["ann/q", "ann/q:g", "ann/q"]
    names.rename("ann/q", DurableName("ann", "q", "h"))
    found = [names.key_of(DurableName("ann", "q", group)) for group in ("", "g", "h")]
    assert found == [None, "ann/q:g", "ann/q"]
