"""The states of a connection; connection.py says how they follow each other."""

from __future__ import annotations

from enum import Enum


class State(Enum):
    CONNECTING = "connecting"
    WELCOMING = "welcoming"
    READY = "ready"
    ENDING = "ending"
    AWAY = "away"
    RESTORING = "restoring"
    ENDED = "ended"


CONNECTING, WELCOMING, READY, ENDING, AWAY, RESTORING, ENDED = State
