"""Reading the section [sinks] of broker.toml: where events may be pushed to, and how."""

from __future__ import annotations

from dataclasses import dataclass

from palio.errors import InvalidValue
from palio.net.config.sections import Section, texts
from palio.protocol.cloudevents.delivery import DeliveryPolicy
from palio.protocol.cloudevents.sinks import SinkRules

_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """`origin` is the DNS name that sinks are asked to allow."""

    origin: str
    rules: SinkRules
    policy: DeliveryPolicy
    asks: bool
    """Whether a sink is asked before the first event (the webhook handshake)."""
    timeout_us: int
    connections_max: int
    subscriptions_max: int
    identity_subscriptions_max: int


def read_sinks(top: Section, name: str) -> SinkSettings | None:
    """`name`: of the broker."""
    if not top.has("sinks"):
        return None
    section, usual = top.section("sinks"), DeliveryPolicy()
    try:
        rules = SinkRules(
            hosts=texts(section, "hosts"),
            networks=texts(section, "networks"),
            allows_http=section.truth("http", False),
        )
    except InvalidValue as error:
        section.wrong("networks", error.reason)
    found = SinkSettings(
        origin=section.text("origin", name),
        rules=rules,
        policy=DeliveryPolicy(
            attempts_max=section.count("attempts", usual.attempts_max),
            first_delay_s=section.duration_us("retry", _SECOND) / _SECOND,
            delay_max_s=section.duration_us("retry_max", 600 * _SECOND) / _SECOND,
        ),
        asks=section.truth("handshake", True),
        timeout_us=section.duration_us("timeout", 10 * _SECOND),
        connections_max=section.count("connections", 100),
        subscriptions_max=section.count("subscriptions", 1000),
        identity_subscriptions_max=section.count("identity_subscriptions", 100),
    )
    section.finish()
    if not found.origin.isascii() or not found.origin.isprintable() or " " in found.origin:
        section.wrong("origin", "it must be the DNS name of this broker")
    if not top.has("http"):
        section.wrong("origin", "subscriptions with sinks are made over HTTP: add [http]")
    return found
