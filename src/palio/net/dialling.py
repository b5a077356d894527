"""Dialling a neighbour, again and again, as long as there is no link with it.

After a failure the wait doubles, up to a bound; each wait is drawn between half of it and all of
it, so that brokers that lost each other do not call at the same moments. A connection that lasted
begins anew with the shortest. While the neighbour is linked (it may have dialled), nobody dials.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from random import Random

from palio.net.broker_connection import BrokerConnection
from palio.net.config import Times, Way
from palio.net.host import Host
from palio.net.logs import told
from palio.net.sections import Endpoint


class Dialler:
    def __init__(
        self,
        host: Host,
        name: str,
        way: Way,
        context: ssl.SSLContext | None,
        times: Times,
        random: Random,
    ) -> None:
        self._host, self._name, self._way = host, name, way
        self._context, self._times, self._random = context, times, random
        self._trouble = ""

    async def run(self, endpoint: Endpoint) -> None:
        """Until it is cancelled."""
        loop = asyncio.get_running_loop()
        shortest, longest = self._times.redial_us_min / 1e6, self._times.redial_us_max / 1e6
        wait = shortest
        while True:
            if not self._host.is_taking or self._host.core.is_linked(self._name):
                await asyncio.sleep(shortest)
                continue
            connection = await self._connected(endpoint)
            if connection is not None:
                began = loop.time()
                await asyncio.shield(connection.closed)
                if loop.time() - began > longest:
                    wait = shortest
            await asyncio.sleep(wait * self._random.uniform(0.5, 1))
            wait = min(2 * wait, longest)

    async def _connected(self, endpoint: Endpoint) -> BrokerConnection | None:
        name = self._way.tls_name or endpoint.host
        try:
            async with asyncio.timeout(self._times.dial_us_max / 1e6):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: BrokerConnection(self._host, self._name),
                    endpoint.host,
                    endpoint.port,
                    ssl=self._context,
                    server_hostname=name if self._context is not None else None,
                )
        except (OSError, TimeoutError) as error:  # ssl.SSLError is an OSError
            self._fail(endpoint, _reason(error))
            return None
        self._trouble = ""
        told(logging.INFO, "neighbour dialled", neighbour=self._name, address=endpoint)
        return connection

    def _fail(self, endpoint: Endpoint, reason: str) -> None:
        self._host.counts.dial_failures += 1
        # Once for each reason: a neighbour that is down for a day is one line, not thousands.
        level = logging.DEBUG if reason == self._trouble else logging.WARNING
        self._trouble = reason
        told(level, "neighbour cannot be reached", neighbour=self._name, address=endpoint,
             reason=reason)  # fmt: skip


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS fails: {error.reason or error}"
    return error.strerror or str(error) or "no answer in time"
