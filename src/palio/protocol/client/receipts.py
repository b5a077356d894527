"""Receipts: what of a durable subscription the application has, so that it gets nothing twice.

    position in the queue ──▶ number of the message
    given      not acknowledged yet; at most as many as the subscription's credit
    settled    acknowledged; the last ones only, in the order of their acknowledgement
    due        acknowledged, and the broker has yet to hear it

A broker sends again what it does not know to be acknowledged: after a lost connection, or after a
crash that lost the newest acknowledgements. What comes again is not given again; if it is settled,
it is acknowledged once more. Positions need not come in order (members of a group take from one
queue), so there is no floor below which all is known: settled positions are kept one by one, and
many more of them than a broker can forget. A known position with another number is another
message: the broker has lost its disk and counts anew.
"""

from __future__ import annotations

from collections import deque


class Receipts:
    """
    >>> receipts = Receipts(memory=100)
    >>> receipts.is_new(1, 70), receipts.is_new(1, 70), receipts.is_new(2, 71)
    (True, False, True)
    >>> receipts.acknowledge(2)
    >>> receipts.take()
    (2,)
    >>> receipts.is_new(2, 71), receipts.take()
    (False, (2,))
    """

    __slots__ = ("_due", "_given", "_memory", "_order", "_settled")

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._given: dict[int, int] = {}
        self._settled: dict[int, int] = {}
        self._order: deque[int] = deque()
        self._due: list[int] = []

    def __len__(self) -> int:
        """How many are given and not acknowledged."""
        return len(self._given)

    @property
    def is_due(self) -> bool:
        return bool(self._due)

    def is_new(self, position: int, number: int) -> bool:
        """Take a message that came; False: the application has had it."""
        if self._given.get(position) == number:
            return False
        if self._settled.get(position) == number:
            self._due.append(position)
            return False
        self._settled.pop(position, None)
        self._given[position] = number
        return True

    def acknowledge(self, position: int) -> None:
        """The application is done with it. Nothing happens when it has said so before."""
        number = self._given.pop(position, None)
        if number is None:
            return
        self._settled[position] = number
        self._order.append(position)
        self._due.append(position)
        if len(self._order) > self._memory:
            self._settled.pop(self._order.popleft(), None)

    def take(self) -> tuple[int, ...]:
        """The acknowledgements that are due; they count as said."""
        due, self._due = tuple(self._due), []
        return due
