"""The client without asyncio: the same names, over an event loop in a thread of its own.

    with palio.blocking.connect("palio://127.0.0.1:7400") as client:
        client.publish({"price": 450}, body=b"...")
        for note in client.subscribe("price < 500", durable="desk-7", timeout=10):
            note.ack()

Any number of threads may share a client, and a subscription: each note goes to one of them. Every
call waits for the asynchronous client (`palio.net.client`). Ctrl-C interrupts the wait and cancels
the call there.
"""

from palio.net.blocking.client import BlockingClient as Client
from palio.net.blocking.connecting import connect
from palio.net.blocking.subscription import BlockingNote as Note
from palio.net.blocking.subscription import BlockingPatternSubscription as PatternSubscription
from palio.net.blocking.subscription import BlockingSubscription as Subscription

__all__ = ["Client", "Note", "PatternSubscription", "Subscription", "connect"]
