"""Keepalive: when a client pings its broker, and how long it waits for a sign of life.

    begin ──▶ waits for Welcome ──welcome──▶ pings every third of the broker's keepalive ──stop──▶ off

A pause of this process does not count as silence of the broker: what the broker sent during the
pause is still to be read.
"""

from __future__ import annotations

from palio.protocol.client.events import CloseCause, Closing


class Keepalive:
    __slots__ = (
        "_handshake_us_max",
        "_is_on",
        "_is_welcome",
        "_ping_us",
        "_silence_us_max",
        "heard_us",
    )

    def __init__(self, handshake_us_max: int) -> None:
        self._handshake_us_max = handshake_us_max
        self._silence_us_max = 0
        """What the last Welcome said; 0: the broker asks for no keepalive."""
        self._ping_us = 0
        self._is_on = False
        self._is_welcome = False
        self.heard_us = 0
        """When the broker sent something for the last time."""

    def begin(self, now_us: int) -> None:
        """A connection is open; Welcome must come in time."""
        self._is_on = True
        self._is_welcome = False
        self.heard_us = now_us

    def welcome(self, silence_us_max: int, now_us: int) -> None:
        """The broker has said Welcome, with its keepalive."""
        self._is_welcome = True
        self._silence_us_max = silence_us_max
        self._ping_us = now_us + silence_us_max // 3

    def stop(self) -> None:
        """The connection has ended, or is about to."""
        self._is_on = False

    @property
    def deadline_us(self) -> int | None:
        """When `check` and `takes_ping` must be asked next."""
        if not self._is_on:
            return None
        if not self._is_welcome:
            return self.heard_us + self._handshake_us_max
        if not self._silence_us_max:
            return None
        return min(self._ping_us, self.heard_us + self._silence_us_max)

    def check(self, now_us: int) -> Closing | None:
        """Has the broker been silent for too long?"""
        deadline_us = self.deadline_us
        if deadline_us is None:
            return None
        late_us = now_us - deadline_us
        if self._silence_us_max and late_us > self._silence_us_max // 3:
            self.heard_us += late_us
        if not self._is_welcome:
            if now_us < self.heard_us + self._handshake_us_max:
                return None
            seconds = self._handshake_us_max / 1e6
            return Closing(CloseCause.NO_WELCOME, f"no Welcome within {seconds:g} s")
        if now_us < self.heard_us + self._silence_us_max:
            return None
        seconds = self._silence_us_max / 1e6
        return Closing(CloseCause.SILENCE, f"the broker was silent for {seconds:g} s")

    def takes_ping(self, now_us: int) -> bool:
        """Is a ping due? If so, it counts as sent."""
        is_due = (
            self._is_on
            and self._is_welcome
            and self._silence_us_max > 0
            and now_us >= self._ping_us
        )
        if is_due:
            self._ping_us = now_us + self._silence_us_max // 3
        return is_due
