"""The client of the live network: `connect` and the types that it returns.

`palio.connect` is the same function. `palio.blocking` is the client for programs without asyncio.
"""

from palio.net.client.client import Client
from palio.net.client.connecting import connect
from palio.net.client.publishing import Outgoing
from palio.net.client.subscription import Note, PatternSubscription, Subscription
from palio.protocol.wire.queue_control import QueueRow, SubscriptionRow

__all__ = [
    "Client",
    "Note",
    "Outgoing",
    "PatternSubscription",
    "QueueRow",
    "Subscription",
    "SubscriptionRow",
    "connect",
]
