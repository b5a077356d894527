"""Frames that wait until the host writes them.

All parts of a session share one buffer, so frames leave in the order in which they were made.
"""

from __future__ import annotations

from palio.protocol.wire.control import ControlMessage
from palio.protocol.wire.frames import control_frame


class SendBuffer:
    __slots__ = ("frames", "is_ready")

    def __init__(self) -> None:
        self.is_ready = False
        """There is a connection, and the broker has said Welcome on it."""
        self.frames: list[bytes] = []

    def send(self, message: ControlMessage) -> None:
        """Send a control message, also during a handshake."""
        self.frames.append(control_frame(message))

    def send_if_ready(self, message: ControlMessage) -> None:
        """Send a control message if the connection is ready; otherwise the next one states it."""
        if self.is_ready:
            self.frames.append(control_frame(message))
