"""The deadlines of one connection."""

from __future__ import annotations

_SECOND = 1_000_000


class Deadlines:
    """In microseconds; None: there is none."""

    __slots__ = ("_silence_us", "end_us", "heard_us", "will_us")

    def __init__(self, now_us: int, connect_s: int) -> None:
        self.heard_us = now_us
        self._silence_us = 0
        self.will_us: int | None = None
        """When the will of a client that is away is published."""
        self.end_us: int | None = now_us + connect_s * _SECOND
        """When the session of a client that is away ends, or the handshake must be complete."""

    def welcome(self, keep_alive_s: int) -> None:
        self._silence_us, self.end_us = keep_alive_s * _SECOND * 3 // 2, None

    def away(self, now_us: int, will_s: int | None, expiry_s: int) -> None:
        """The client is gone."""
        self._silence_us = 0
        self.end_us = now_us + expiry_s * _SECOND
        if will_s is not None:
            self.will_us = now_us + min(will_s, expiry_s) * _SECOND

    def clear(self) -> None:
        self._silence_us, self.will_us, self.end_us = 0, None, None

    @property
    def next_us(self) -> int | None:
        times = [at for at in (self.will_us, self.end_us) if at is not None]
        if self._silence_us:
            times.append(self.heard_us + self._silence_us)
        return min(times) if times else None

    def is_silent(self, now_us: int) -> bool:
        """Nothing came for one and a half keep alives (3.1.2.10)."""
        return bool(self._silence_us) and now_us >= self.heard_us + self._silence_us

    def takes_will(self, now_us: int) -> bool:
        """Whether the will is due; True once."""
        if self.will_us is None or now_us < self.will_us:
            return False
        self.will_us = None
        return True

    def is_over(self, now_us: int) -> bool:
        return self.end_us is not None and now_us >= self.end_us
