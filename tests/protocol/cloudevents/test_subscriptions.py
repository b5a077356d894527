"""Subscriptions of the Subscriptions API: what is selected, what is refused, whose they are."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

import palio
from palio.protocol.cloudevents.sinks import SinkRules
from palio.protocol.cloudevents.subscriptions import (
    EventSubscriptions,
    InvalidSubscription,
    TooManySubscriptions,
    UnknownSubscription,
    read_subscription,
)

RULES = SinkRules()
LEAST: dict[str, Any] = {"sink": "https://example.com/in", "protocol": "HTTP"}


def test_defaults() -> None:
    made = read_subscription(json.dumps(LEAST).encode(), "s1", RULES)
    assert made.shown() == {
        "id": "s1",
        **LEAST,
        "config": {"mode": "structured"},
        "protocolsettings": {"method": "POST"},
    }
    assert made.predicate == palio.parse("TRUE")
    assert read_subscription(made.stored(), "s1", RULES) == made


def test_no_credential() -> None:
    made = read_subscription({**LEAST, "sinkcredential": None}, "s1", RULES)
    assert "sinkcredential" not in made.shown()
    assert read_subscription(made.stored(), "s1", RULES) == made


def test_what_it_selects() -> None:
    given = {
        **LEAST,
        "id": "mine",
        "source": "/a",
        "types": ["t", "u"],
        "filters": [{"any": [{"prefix": {"subject": "x"}}, {"sql": "n > 5"}]}],
    }
    made = read_subscription(given, "s1", RULES)
    assert made.id == "s1"
    event = {"source": "/a", "type": "u", "subject": "xy"}
    assert made.predicate.matches(event)
    assert made.predicate.matches({**event, "subject": "y", "n": "6"})
    assert not made.predicate.matches({**event, "type": "v"})
    assert not made.predicate.matches({**event, "source": "/b"})
    assert not made.predicate.matches({**event, "subject": "y"})


def test_credentials_and_headers() -> None:
    given = {
        **LEAST,
        "protocolsettings": {"method": "PUT", "headers": {"X-Key": "a b"}},
        "sinkcredential": {"credentialtype": "PLAIN", "identifier": "ann", "secret": "hush"},
    }
    made = read_subscription(given, "s1", RULES)
    assert made.method == "PUT"
    assert made.headers == (("X-Key", "a b"), ("Authorization", "Basic YW5uOmh1c2g="))
    assert "hush" not in json.dumps(made.shown())
    assert "ann" not in json.dumps(made.shown())
    token = {"credentialtype": "ACCESSTOKEN", "accesstoken": "t0k", "accesstokentype": "Bearer"}
    made = read_subscription({**LEAST, "sinkcredential": token}, "s1", RULES)
    assert made.headers == (("Authorization", "Bearer t0k"),)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"sink": None}, ""),
        ({"protocol": None}, ""),
        ({"protocol": "MQTT5"}, "protocol"),
        ({"protocol": "http"}, "protocol"),
        ({"sink": "https://127.0.0.1/"}, "sink"),
        ({"sink": "http://example.com/"}, "sink"),
        ({"colour": "red"}, "colour"),
        ({"source": ""}, "source"),
        ({"types": "t"}, "types"),
        ({"types": ["t", ""]}, "types[1]"),
        ({"filters": {"exact": {"a": "b"}}}, "filters"),
        ({"filters": [{"regex": {}}]}, "filters"),
        ({"filters": [{"sql": "id ="}]}, "filters"),
        ({"config": {"mode": "batched"}}, "config.mode"),
        ({"config": {"interval": 5}}, "config.interval"),
        ({"protocolsettings": {"method": "DELETE"}}, "protocolsettings.method"),
        ({"protocolsettings": {"headers": {"Host": "x"}}}, "protocolsettings.headers.Host"),
        ({"protocolsettings": {"headers": {"ce-id": "x"}}}, "protocolsettings.headers.ce-id"),
        ({"protocolsettings": {"headers": {"X": "a\r\nY: b"}}}, "protocolsettings.headers.X"),
        ({"sinkcredential": {"credentialtype": "REFRESHTOKEN"}}, "sinkcredential.credentialtype"),
        ({"sinkcredential": {"credentialtype": "PLAIN"}}, "sinkcredential.identifier"),
    ],
)
def test_what_is_refused(change: dict[str, Any], place: str) -> None:
    given = {name: value for name, value in {**LEAST, **change}.items() if value is not None}
    with pytest.raises(InvalidSubscription) as caught:
        read_subscription(given, "s1", RULES)
    assert caught.value.place == place


def test_they_belong_to_an_identity() -> None:
    numbers = count(1)
    all_ = EventSubscriptions(RULES, lambda: f"s{next(numbers)}", identity_max=2)
    first = all_.read(LEAST)
    for made in (first, all_.read(LEAST)):
        all_.check_room("ann")
        all_.add("ann", made)
    with pytest.raises(TooManySubscriptions):
        all_.check_room("ann")
    assert [one.id for one in all_.query("ann")] == ["s1", "s2"]
    assert all_.query("bob") == []
    for act in (all_.retrieve, all_.delete):
        with pytest.raises(UnknownSubscription):
            act("bob", first.id)
    changed = all_.read({**LEAST, "source": "/x"}, first.id)
    all_.add("ann", changed)
    assert all_.retrieve("ann", first.id) is changed
    assert all_.delete("ann", first.id) is changed
    assert [one.id for one in all_.query("ann")] == ["s2"]
    assert all_.read(changed.stored(), "s1") == changed


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b" " * 300_000])
def test_what_is_no_document(text: bytes) -> None:
    with pytest.raises(InvalidSubscription):
        read_subscription(text, "s1", RULES)
