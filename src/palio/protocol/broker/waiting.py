"""Live messages that wait for subscriptions without credit, bounded in number and in bytes.

    message ──▶ one copy ─┬─▶ queue of a subscription     at most `messages_max`, and `queue_bytes`
                          ├─▶ queue of a subscription
                          └─▶ accounts: one for each identity, and the total

A message counts once for each identity that it waits for, and once in the total; each place in a queue
counts a little more. The oldest make room: of the subscription, of the identity, and when the total is
too large, of the identities that hold most. A subscription that must not miss messages (`ends`) is over
instead.

The oldest message of an identity is the first in the queues of all its subscribers that wait for it,
because messages join all queues in one order. So making room never searches a queue.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from enum import StrEnum

from palio.protocol.broker.settings import WaitingBounds
from palio.protocol.broker.subscriber import Subscriber, WaitingMessage

PLACE_BYTES = 128
"""What a place in a queue counts, besides the message."""
_ROOM = 64
"""When the total is too large, this fraction of it is freed at once: it takes a look at all accounts."""


class Overflow(StrEnum):
    """Which bound was reached."""

    MESSAGES = "messages"
    """Of messages for one subscription."""
    BYTES = "bytes"
    """Of bytes for one subscription."""
    IDENTITY = "identity"
    """Of bytes for all subscriptions of one identity."""
    TOTAL = "total"
    """Of bytes for all subscriptions."""


class _Account:
    """What waits for the subscribers of one identity, the oldest first."""

    __slots__ = ("bytes", "identity", "messages")

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.bytes = 0
        self.messages: OrderedDict[WaitingMessage, None] = OrderedDict()


class WaitingMessages:
    def __init__(self, messages_max: int, bounds: WaitingBounds) -> None:
        self.bytes = 0
        """The total."""
        self.dropped: Counter[Overflow] = Counter()
        self.overflowed: list[tuple[Subscriber, str]] = []
        """Subscribers that are over because too much waited, with the reason; whoever ends them clears
        the list."""
        self._messages_max, self._bounds = messages_max, bounds
        self._accounts: dict[str, _Account] = {}
        self._links: dict[int, dict[Subscriber, None]] = {}
        """By link: the subscribers that messages wait for."""

    def of(self, link: int) -> list[Subscriber]:
        """The subscribers of a link that messages wait for."""
        return list(self._links.get(link, ()))

    def add(self, one: Subscriber, message: WaitingMessage) -> None:
        """Let a message wait for a subscriber, and make room."""
        account = self._accounts.get(one.identity)
        if account is None:
            account = self._accounts[one.identity] = _Account(one.identity)
        holders = message.holders
        if one.identity not in holders:
            if not holders:
                self.bytes += message.size
            holders[one.identity] = {}
            account.messages[message] = None
            account.bytes += message.size
        holders[one.identity][one] = None
        account.bytes += PLACE_BYTES
        self.bytes += PLACE_BYTES
        if not one.waiting:
            self._links.setdefault(one.link, {})[one] = None
        one.waiting.append(message)
        one.waiting_bytes += message.size
        bounds = self._bounds
        while len(one.waiting) > self._messages_max:
            self._shorten(one, Overflow.MESSAGES)
        while one.waiting_bytes > bounds.queue_bytes:
            self._shorten(one, Overflow.BYTES)
        self._shrink(account, bounds.identity_bytes, Overflow.IDENTITY)
        if self.bytes > bounds.total_bytes:
            self._make_room(bounds.total_bytes - bounds.total_bytes // _ROOM)

    def take(self, one: Subscriber) -> WaitingMessage:
        """The oldest message for a subscriber; it waits no longer."""
        message = one.waiting.popleft()
        one.waiting_bytes -= message.size
        if not one.waiting:
            self._end_wait(one)
        holders, account = message.holders, self._accounts[one.identity]
        own = holders[one.identity]
        del own[one]
        account.bytes -= PLACE_BYTES
        self.bytes -= PLACE_BYTES
        if not own:
            del holders[one.identity], account.messages[message]
            account.bytes -= message.size
            if not account.messages:
                del self._accounts[one.identity]
            if not holders:
                self.bytes -= message.size
        return message

    def _end_wait(self, one: Subscriber) -> None:
        own = self._links[one.link]
        del own[one]
        if not own:
            del self._links[one.link]

    def clear(self, one: Subscriber) -> None:
        """A subscriber is gone, and so is what waits for it."""
        while one.waiting:
            self.take(one)

    def _shorten(self, one: Subscriber, bound: Overflow) -> None:
        """Drop the oldest message of a subscriber, or end it."""
        if one.ends:
            one.is_over = True
            self.overflowed.append((one, self._reason(bound)))
            self.clear(one)
        else:
            self.take(one)
            self.dropped[bound] += 1

    def _reason(self, bound: Overflow) -> str:
        bounds = self._bounds
        if bound is Overflow.MESSAGES:
            return f"more than {self._messages_max} messages waited for this subscription"
        if bound is Overflow.BYTES:
            return f"more than {bounds.queue_bytes:,} bytes waited for this subscription"
        if bound is Overflow.IDENTITY:
            return (
                f"more than {bounds.identity_bytes:,} bytes waited for the clients of this identity"
            )
        return f"more than {bounds.total_bytes:,} bytes waited for the clients of this broker"

    def _shrink(self, account: _Account, bytes_max: int, bound: Overflow) -> None:
        """Drop the oldest messages of an identity."""
        while account.bytes > bytes_max and account.messages:
            oldest = next(iter(account.messages))
            for one in list(oldest.holders[account.identity]):
                self._shorten(one, bound)

    def _make_room(self, bytes_max: int) -> None:
        """Drop the oldest messages of those that hold most, each down to a half."""
        while self.bytes > bytes_max:
            for account in sorted(self._accounts.values(), key=lambda x: -x.bytes):
                too_many = self.bytes - bytes_max
                if too_many <= 0:
                    return
                half = account.bytes // 2
                self._shrink(account, max(account.bytes - too_many, half), Overflow.TOTAL)
