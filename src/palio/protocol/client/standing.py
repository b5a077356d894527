"""A subscription as a session keeps it, over all its connections.

    from a queue   receipts say what the application has; acknowledgements make room for more
    live           allowed ──broker sends──▶ waiting ──host consumes──▶ ... ──Credit──▶ allowed

A durable subscription gets both: durable messages from its queue, the others live. waiting +
allowed is never more than the credit that was asked for, except after a reconnect into a queue
that is not empty: nobody can subscribe with no credit, and for a durable one it is the room of the
queue as well. That is made up for before anything is paid again.
"""

from __future__ import annotations

import msgspec

from palio.protocol import words
from palio.protocol.client.receipts import Receipts
from palio.protocol.frames import Deliver


class Standing:
    """What is kept of one subscription."""

    __slots__ = (
        "_allowed",
        "_receipts",
        "_waiting",
        "_word",
        "forget",
        "is_held",
        "is_leaving",
        "subscribed",
    )

    def __init__(self, word: words.Subscribe, receipts_max: int) -> None:
        memory = max(receipts_max, 4 * word.credit)
        self._word = word
        self._receipts = Receipts(memory) if word.durable else None
        self._waiting = 0
        self._allowed = word.credit
        self.is_held = False
        """The broker has yet to be asked: it is about to forget one of the same name."""
        self.is_leaving = False
        self.forget = False
        self.subscribed: words.Subscribed | None = None
        """The broker's last answer."""

    @property
    def durable(self) -> str:
        return self._word.durable

    @property
    def must_return(self) -> bool:
        """Leaving for good: a lost connection is not enough to be gone."""
        return bool(self.forget and self._word.durable)

    @property
    def unacknowledged(self) -> int:
        return 0 if self._receipts is None else len(self._receipts)

    @property
    def is_due(self) -> bool:
        """There is something to tell the broker."""
        return self._is_credit_due or (self._receipts is not None and self._receipts.is_due)

    @property
    def _is_credit_due(self) -> bool:
        return self._owed * 2 >= self._word.credit

    @property
    def _owed(self) -> int:
        """What may come on top of what is allowed."""
        return self._word.credit - self._waiting - self._allowed

    def admit(self, header: Deliver) -> bool:
        """A message came. False: the application has had it."""
        if self._receipts is not None and header.position:
            return self._receipts.is_new(header.position, header.number)
        self.admit_live()
        return True

    def admit_live(self) -> None:
        """A message or a compound came that nobody acknowledges."""
        self._waiting += 1
        self._allowed -= 1

    def consume(self, count: int) -> None:
        """The application has taken so many that nobody acknowledges."""
        self._waiting -= count

    def acknowledge(self, position: int) -> None:
        """The application is done with a message."""
        if self._receipts is not None:
            self._receipts.acknowledge(position)

    def take(self) -> list[words.Acknowledge | words.Credit]:
        """What is due; it counts as said."""
        said: list[words.Acknowledge | words.Credit] = []
        if self._receipts is not None and self._receipts.is_due:
            said.append(words.Acknowledge(self._word.id, self._receipts.take()))
        if self._is_credit_due:
            said.append(words.Credit(self._word.id, self._owed))
            self._allowed += self._owed
        return said

    def restated(self) -> words.Subscribe:
        """For a new connection: what waits here is not to come on top of the credit."""
        if self._receipts is not None:
            self._allowed = self._word.credit
            return self._word
        self._allowed = max(1, self._word.credit - self._waiting)
        return msgspec.structs.replace(self._word, credit=self._allowed)
