"""What a broker allows its MQTT clients."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class PayloadContent(StrEnum):
    """When the members of a payload that is a JSON object are attributes."""

    AUTO = "auto"
    """If the content type is application/json, or ends with +json."""
    JSON = "json"
    """Always, if it is a JSON object."""
    NONE = "none"


class MqttSettings(msgspec.Struct, frozen=True):
    payload: PayloadContent = PayloadContent.AUTO
    payload_bytes_max: int = 32 << 10
    """Larger payloads give no attributes."""
    packet_bytes_max: int = 4 << 20
    receive_maximum: int = 1000
    """QoS 1 and 2 messages of a client that are not acknowledged yet."""
    topic_alias_maximum: int = 100
    """Aliases that a client may set, and that this broker sets for a client."""
    keepalive_s_max: int = 0
    """0: clients choose."""
    session_expiry_s_max: int = 7 * 86_400
    sessions_max: int = 10_000
    """Sessions that wait for their clients."""
    levels_max: int = 32
    condition_bytes_max: int = 4 << 10
    subscriptions_max: int = 1000
    """Topic filters of one client."""
    credit: int = 1000
    """Messages that the core sends ahead for one subscription."""
    waiting_bytes_max: int = 16 << 20
    """Messages that wait for the acknowledgements of a client; what comes then is dropped, if it was live."""
    connect_s: int = 10
    denied_filters: tuple[str, ...] = ()
    """Topic filters that nobody may subscribe to, as they are written."""
