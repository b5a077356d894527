"""The check of what clients give back, of the number of deliveries, and of expiry.

- **expired**: no broker sends a message from the instant on at which it expires.
- **too soon**: a client that gave a message back, to come again after a delay, does not get it before.
- **miscounted**: whoever gives a message back gets it, on the same connection, with the next number of
  deliveries; a consumer that shares the queue, with a larger one. A message that was published after the
  only consumer had been told that it has its subscription comes to it for the first time. No queue sends a
  message more often than its subscription allows.

Connections keep the order, so what a client gets again on the connection on which it gave it back was sent
after the broker had heard of that. Another connection proves nothing: the broker may have sent everything
again before it heard of it, and after a restart it does so without the delays.
"""

from __future__ import annotations

from collections.abc import Sequence

from palio.protocol.wire.headers import DELIVERIES_TOLD
from palio.sim.brokers.expected import DeliveredMessage, ExpectedDeliveries
from palio.sim.kernel.verdicts import Violation

RESTARTS_COUNT = 2
"""What may have been sent before a restart counts as sent: so it comes for the second time at most, even
where one delivery is allowed."""


def check_expiry(expected: ExpectedDeliveries, received: DeliveredMessage) -> None:
    publication = received.published
    lasts_us = publication.spec.expires_us
    if lasts_us and received.arrival.sent_us >= publication.time_us + lasts_us:
        raise Violation("expired", f"{expected} was sent {publication}, which had expired")


def check_returned(
    expected: ExpectedDeliveries,
    received: DeliveredMessage,
    before: Sequence[DeliveredMessage],
    connected_us: int,
) -> None:
    """`before`: what has arrived of this message; `connected_us`: when the client's connection began."""
    told = received.arrival.deliveries
    if not received.arrival.is_queued:
        return
    most = expected.spec.deliveries_max
    if most and told > max(most, RESTARTS_COUNT):
        raise Violation("miscounted", f"{expected} got {received.published} {told} times of {most}")
    _check_first(expected, received, before, connected_us)
    same = (received.client, received.arrival.id)
    mine = [one for one in before if (one.client, one.arrival.id) == same]
    last = mine[-1] if mine else None
    if last is None or last.due_us is None or last.time_us < connected_us:
        return
    if received.time_us < last.due_us:
        early_us = last.due_us - received.time_us
        raise Violation("too soon", f"{expected} got {received.published} {early_us} us too soon")
    count = last.arrival.deliveries
    is_next = told == count + 1 or (told > count and bool(expected.spec.group))
    if not is_next and count < DELIVERIES_TOLD - 1:
        raise Violation(
            "miscounted",
            f"{expected} got {received.published} for the {told}th time after the {count}th",
        )


def _check_first(
    expected: ExpectedDeliveries,
    received: DeliveredMessage,
    before: Sequence[DeliveredMessage],
    connected_us: int,
) -> None:
    confirmed_us = expected.confirmed_us.get(received.client, 0)
    is_alone = not expected.spec.group and not before
    is_on_it = connected_us <= confirmed_us < received.published.time_us
    if is_alone and is_on_it and received.arrival.deliveries != 1:
        raise Violation(
            "miscounted",
            f"{expected} got {received.published} for the first time, and is told "
            f"{received.arrival.deliveries}",
        )
