"""The metrics of an MQTT listener."""

from __future__ import annotations

from collections.abc import Iterator

from palio.net.monitoring.measures import Measure
from palio.protocol.mqtt.counts import MqttCounts
from palio.protocol.mqtt.retained import RetainedMessages
from palio.protocol.mqtt.sessions import Sessions

_COUNTERS = {
    "published": ("mqtt_published", "Messages that MQTT clients published, wills too"),
    "refused": ("mqtt_refused", "Of these: refused, by a grant or a limit"),
    "delivered": ("mqtt_delivered", "Messages sent to MQTT clients"),
    "dropped": (
        "mqtt_dropped",
        "Messages that were not sent: too much waited for the client, or its packets are smaller",
    ),
}
assert set(_COUNTERS) == set(MqttCounts.__dataclass_fields__)


def mqtt_measures(sessions: Sessions, retained: RetainedMessages) -> Iterator[Measure]:
    for field, (name, text) in _COUNTERS.items():
        yield Measure(name, "counter", text, {}, getattr(sessions.counts, field))
    for name, text, value in (
        ("mqtt_sessions", "Sessions of MQTT clients, connected or away", len(sessions)),
    ):
        yield Measure(name, "gauge", text, {}, float(value))
    text = "Messages that were not retained, because there was no room"
    yield Measure("mqtt_retained_dropped", "counter", text, {}, retained.dropped)
