"""Control messages about queues and subscriptions; all but ForgetDurable need the grant `admin`.

    client ──▶ broker                        broker ──▶ client
    ListQueues, ListSubscriptions            QueuesListed, SubscriptionsListed: a page
    PauseQueue, MoveQueue                    Done
    PurgeQueue, EndQueue                     Purged
    ForgetDurable                            Done

A list comes in pages that are small enough for any receiver: ask for the next one with `after`, the `next` of
the last page. What changes meanwhile may be missing; nothing comes twice. An act is committed before it is
answered. A queue has the name IDENTITY/NAME: the identity that owns it, and its name within that identity;
with a group, IDENTITY/NAME:GROUP.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from palio.protocol.wire.codes import Full, SubscriptionKind
from palio.protocol.wire.structs import ControlStruct, Number


class ListQueues(ControlStruct, frozen=True, tag="ListQueues"):
    """Ask for the durable subscriptions of this broker and their queues."""

    id: Number
    after: Number = 0
    name: str = ""
    """Only this one; empty: all."""


class QueueRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A durable subscription and its queue."""

    name: str
    """IDENTITY/NAME, or IDENTITY/NAME:GROUP."""
    identity: str
    predicate: str
    """A long one is cut, and ends with `...`."""
    messages: Number
    bytes: Number
    oldest_us: Number
    """The age of the oldest message; 0: there is none."""
    consumers: Number
    full: Full
    """What it does when it is full: what was asked for, within what the operator allows."""
    is_paused: bool
    group: str = ""
    """Whose members share it; empty: it has one consumer."""


class QueuesListed(ControlStruct, frozen=True, tag="QueuesListed"):
    id: Number
    rows: tuple[QueueRow, ...]
    next: Number = 0
    """`after` of the next page; 0: this is the last one."""


class ListSubscriptions(ControlStruct, frozen=True, tag="ListSubscriptions"):
    """Ask for the subscriptions of the clients that are connected."""

    id: Number
    after: Number = 0


class SubscriptionRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A subscription of a client."""

    identity: str
    client: str
    id: Number
    """Chosen by the client; unique within its connection."""
    kind: SubscriptionKind
    expression: str
    """The predicate, or the pattern; a long one is cut, and ends with `...`."""
    waiting: Number
    """Messages that wait for it; of a durable one, all in its queue."""
    credit: Number
    """How many more messages may be sent to it now."""
    name: str = ""
    """Of the queue of a durable one."""
    group: str = ""
    is_congested: bool = False
    """Too many bytes wait on its connection: it gets nothing for now."""


class SubscriptionsListed(ControlStruct, frozen=True, tag="SubscriptionsListed"):
    id: Number
    rows: tuple[SubscriptionRow, ...]
    next: Number = 0
    """As in QueuesListed."""


class PauseQueue(ControlStruct, frozen=True, tag="PauseQueue"):
    """Stop the delivery of a queue, which goes on filling; or go on with it."""

    id: Number
    name: str
    is_paused: bool


class PurgeQueue(ControlStruct, frozen=True, tag="PurgeQueue"):
    """Delete the messages that are in a queue now, those in flight too."""

    id: Number
    name: str


class EndQueue(ControlStruct, frozen=True, tag="EndQueue"):
    """End a durable subscription for good, with its queue; its consumers are told."""

    id: Number
    name: str


class MoveQueue(ControlStruct, frozen=True, tag="MoveQueue"):
    """Give a durable subscription, with its queue, to another identity; its consumers are told."""

    id: Number
    name: str
    identity: str


class ForgetDurable(ControlStruct, frozen=True, tag="ForgetDurable"):
    """End a durable subscription of the client's own identity for good, with its queue."""

    id: Number
    durable: str
    """Its name within the identity."""
    group: str = ""


class Purged(ControlStruct, frozen=True, tag="Purged"):
    """A queue was purged, or ended."""

    id: Number
    messages: Number
    """How many were deleted."""


QueueAct: TypeAlias = PauseQueue | PurgeQueue | EndQueue | MoveQueue
QueueRequest: TypeAlias = ListQueues | ListSubscriptions | QueueAct
QueueAnswer: TypeAlias = QueuesListed | SubscriptionsListed | Purged
