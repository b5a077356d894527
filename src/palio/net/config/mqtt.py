"""Reading the section [mqtt] of broker.toml."""

from __future__ import annotations

from dataclasses import dataclass

from palio.net.config.sections import Section, texts
from palio.net.endpoint import Endpoint
from palio.protocol.mqtt.settings import MqttSettings, PayloadContent
from palio.protocol.wire.frames import Limits

_SECOND = 1_000_000
_U16 = 65_535
_PACKET_BYTES_MAX = 256 << 20


@dataclass(frozen=True, slots=True)
class MqttConfig:
    """Where MQTT clients connect to, and what they may do."""

    listen: Endpoint
    tls: bool
    settings: MqttSettings
    websocket: Endpoint | None = None
    """Where they connect to by WebSocket."""
    origins: tuple[str, ...] = ()
    """Of pages that may do so from a browser."""


def read_mqtt(top: Section, limits: Limits, has_tls: bool) -> MqttConfig | None:
    if not top.has("mqtt"):
        return None
    section, usual = top.section("mqtt"), MqttSettings()
    listen = section.endpoint("listen", Endpoint("127.0.0.1", 1883))
    tls = section.truth("tls", has_tls)
    settings = MqttSettings(
        payload=PayloadContent(
            section.choice("payload", [one.value for one in PayloadContent], usual.payload)
        ),
        payload_bytes_max=section.size("payload_bytes", usual.payload_bytes_max),
        packet_bytes_max=section.size("packet", min(usual.packet_bytes_max, limits.body)),
        receive_maximum=section.count("receive_maximum", usual.receive_maximum),
        topic_alias_maximum=section.count("topic_alias_maximum", usual.topic_alias_maximum, 0),
        keepalive_s_max=section.duration_us("max_keepalive", 0, never=True) // _SECOND,
        session_expiry_s_max=section.duration_us(
            "sessions_keep", usual.session_expiry_s_max * _SECOND
        )
        // _SECOND,
        sessions_max=section.count("sessions", usual.sessions_max),
        levels_max=section.count("levels", usual.levels_max),
        condition_bytes_max=section.size("condition", usual.condition_bytes_max),
        subscriptions_max=section.count("subscriptions", usual.subscriptions_max),
        waiting_bytes_max=section.size("waiting_bytes", usual.waiting_bytes_max),
        denied_filters=texts(section, "deny"),
    )
    websocket = section.endpoint("websocket", None) if section.has("websocket") else None
    origins = texts(section, "websocket_origins")
    section.finish()
    if tls and not has_tls:
        section.wrong("tls", "there is no [tls] with a certificate")
    for key, value in (
        ("receive_maximum", settings.receive_maximum),
        ("topic_alias_maximum", settings.topic_alias_maximum),
        ("max_keepalive", settings.keepalive_s_max),
    ):
        if value > _U16:
            section.wrong(key, f"MQTT knows numbers up to {_U16:,} here")
    if not 1024 <= settings.packet_bytes_max <= min(limits.body, _PACKET_BYTES_MAX):
        section.wrong("packet", "it is 1 KiB to 256 MiB, and not more than `body` in [limits]")
    if settings.session_expiry_s_max >= 1 << 32:
        section.wrong("sessions_keep", "MQTT knows 136 years at most")
    return MqttConfig(listen, tls, settings, websocket, origins)
