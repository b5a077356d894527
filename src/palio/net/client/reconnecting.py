"""When to dial: at first, and again whenever the connection is lost.

The wait before a dial starts at 0.05 s, doubles after each failure up to 5 s (1 s if the broker has
several addresses, which are dialled in turn), and is drawn at random below that, so that many clients
do not dial at the same moment. A connection that lasted only shortly does not reset the wait to its
start: two clients with one name, which take the connection from each other, must not do so in a busy
loop.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

from palio.errors import RefusedByBroker, Unreachable
from palio.net.client.link import BrokerLink
from palio.net.client.status import ClientStatus

log = logging.getLogger("palio.client")

BACKOFF_S = 0.05
BACKOFF_S_MAX = 5.0
STEADY_S = 2.0
"""A connection that lasted longer resets the wait."""
BACKOFF_S_MAX_OF_SEVERAL = 1.0
"""With several addresses: somebody takes over soon, and should be found soon."""
UNSTEADY_S_MAX = 1.0
"""The longest wait after a connection that did not."""


async def dial_in_turn(link: BrokerLink, status: ClientStatus) -> None:
    """Dial each address of the broker once, the one that was used last first.

    A broker that refuses counts more than one that does not answer: it says why.
    """
    failures: list[Unreachable | RefusedByBroker] = []
    for _ in status.addresses:
        try:
            await link.dial()
            return
        except (Unreachable, RefusedByBroker) as error:
            failures.append(error)
            status.try_next_address()
    for failure in failures:
        if isinstance(failure, RefusedByBroker) or len(failures) == 1:
            raise failure
    raise Unreachable("; ".join(map(str, failures)))


async def dial_first(link: BrokerLink, status: ClientStatus, wait: float) -> None:
    """Make the first connection. Keep trying for `wait` seconds while no broker answers."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait
    delay = BACKOFF_S
    while True:
        try:
            await dial_in_turn(link, status)
            return
        except Unreachable:
            if loop.time() + delay > deadline:
                raise
        await asyncio.sleep(delay * random.uniform(0.5, 1.0))
        delay = min(2 * delay, _longest_s(status))


def _longest_s(status: ClientStatus) -> float:
    return BACKOFF_S_MAX if len(status.addresses) == 1 else BACKOFF_S_MAX_OF_SEVERAL


async def keep_connected(
    link: BrokerLink, status: ClientStatus, fail: Callable[[RefusedByBroker], None]
) -> None:
    """Dial whenever the connection is lost. A broker that refuses for `max_wait` is a failure."""
    loop = asyncio.get_running_loop()
    delay = BACKOFF_S
    while True:
        connected_at = loop.time()
        await link.wait_until_lost()
        lost_at = loop.time()
        is_steady = lost_at - connected_at > STEADY_S
        delay = BACKOFF_S if is_steady else min(delay, UNSTEADY_S_MAX)
        await asyncio.sleep(delay * random.random())
        while True:
            delay = min(2 * delay, _longest_s(status))
            try:
                await dial_in_turn(link, status)
                log.info("connected to %s again", status.address)
                break
            except Unreachable as error:
                status.trouble = str(error)
            except RefusedByBroker as error:
                status.trouble = str(error)
                if loop.time() - lost_at > status.max_wait:
                    fail(error)
                    return
            await asyncio.sleep(delay / 2 * random.uniform(0.5, 1.0))
