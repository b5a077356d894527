"""What the MQTT connections of a broker have done, for operators."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class MqttCounts:
    published: int = 0
    """Messages that clients published, wills too."""
    refused: int = 0
    """Of these: by a grant or a limit."""
    delivered: int = 0
    dropped: int = 0
    """Messages that were not delivered: too much waited for a client, or it takes no packet of that size."""
