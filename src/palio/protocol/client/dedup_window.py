"""The dedup window of a durable subscription: it gives the application no message twice.

    position in the queue ──▶ number of the message
    delivered      not acknowledged yet; at most as many as the subscription's credit
    acknowledged   only the latest, in the order of their acknowledgement
    due            acknowledged, but the broker has not been told yet

A broker redelivers what it does not know to be acknowledged: after a lost connection, or after a
crash that lost the newest acknowledgements. A redelivered message is dropped here; if the
application has acknowledged it, the broker is told once more. Positions come in any order, since
the members of a group share one queue. So there is no lowest open position: the window remembers
single positions, many more than a broker can forget. A known position with another number is a
new message: the broker has lost its disk and starts its positions at 1.
"""

from __future__ import annotations

from collections import deque


class PositionWindow:
    """
    >>> window = PositionWindow(size=100)
    >>> window.is_new(1, 70), window.is_new(1, 70), window.is_new(2, 71)
    (True, False, True)
    >>> window.acknowledge(2)
    >>> window.take_due()
    (2,)
    >>> window.is_new(2, 71), window.take_due()
    (False, (2,))
    """

    __slots__ = ("_acknowledged", "_delivered", "_due", "_order", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._delivered: dict[int, int] = {}
        self._acknowledged: dict[int, int] = {}
        self._order: deque[int] = deque()
        self._due: list[int] = []

    @property
    def unacknowledged(self) -> int:
        """How many messages the application has and did not acknowledge."""
        return len(self._delivered)

    @property
    def is_due(self) -> bool:
        return bool(self._due)

    def is_new(self, position: int, number: int) -> bool:
        """Record a message that arrived. False: the application has had it."""
        if self._delivered.get(position) == number:
            return False
        if self._acknowledged.get(position) == number:
            self._due.append(position)
            return False
        self._acknowledged.pop(position, None)
        self._delivered[position] = number
        return True

    def acknowledge(self, position: int) -> None:
        """The application has processed the message. A repeated acknowledgement has no effect."""
        number = self._delivered.pop(position, None)
        if number is None:
            return
        self._acknowledged[position] = number
        self._order.append(position)
        self._due.append(position)
        if len(self._order) > self._size:
            self._acknowledged.pop(self._order.popleft(), None)

    def forget(self, position: int) -> bool:
        """The application gives the message back: it may come again. False: it does not have it."""
        return self._delivered.pop(position, None) is not None

    def take_due(self) -> tuple[int, ...]:
        """Hand over the positions that the broker must be told now."""
        due, self._due = tuple(self._due), []
        return due
