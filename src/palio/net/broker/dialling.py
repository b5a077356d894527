"""Dials a neighbour again and again, as long as there is no link with it.

The wait doubles after each failure, up to a bound. Each wait is drawn at random between half of it
and all of it, so that brokers that lost each other do not dial at the same moments. A connection that
lasted resets the wait to the shortest. While the neighbour is linked (it may have dialled), the
dialler does nothing. A neighbour with a standby has several endpoints: they are dialled in turn, and
the wait is after each round.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence
from random import Random

from palio.net.broker.host import BrokerHost
from palio.net.config.values import NeighbourAddress, Times
from palio.net.endpoint import Endpoint
from palio.net.listeners.native_connection import NativeConnection
from palio.net.monitoring.logs import log_event


class Dialler:
    """`tls`: None for connections without TLS."""

    def __init__(
        self,
        host: BrokerHost,
        name: str,
        address: NeighbourAddress,
        tls: ssl.SSLContext | None,
        times: Times,
        random: Random,
    ) -> None:
        self._host, self._name, self._address = host, name, address
        self._tls, self._times, self._random = tls, times, random
        self._told: set[tuple[Endpoint, str]] = set()

    async def run(self, endpoints: Sequence[Endpoint]) -> None:
        """Dial until cancelled."""
        loop = asyncio.get_running_loop()
        shortest, longest = self._times.redial_us_min / 1e6, self._times.redial_us_max / 1e6
        wait = shortest
        while True:
            if self._host.unready_reason or self._host.is_linked(self._name):
                await asyncio.sleep(shortest)
                continue
            for endpoint in endpoints:
                connection = await self._connect(endpoint)
                if connection is None:
                    continue
                began = loop.time()
                await asyncio.shield(connection.closed)
                if loop.time() - began > longest:
                    wait = shortest
                if self._host.is_linked(self._name):  # it has dialled meanwhile
                    break
            await asyncio.sleep(wait * self._random.uniform(0.5, 1))
            wait = min(2 * wait, longest)

    async def _connect(self, endpoint: Endpoint) -> NativeConnection | None:
        name = self._address.tls_name or endpoint.host
        made: list[NativeConnection] = []

        def make() -> NativeConnection:
            made.append(NativeConnection(self._host, self._host.limits.congested_bytes, self._name))
            return made[0]

        try:
            async with asyncio.timeout(self._times.dial_us_max / 1e6):
                _, connection = await asyncio.get_running_loop().create_connection(
                    make,
                    endpoint.host,
                    endpoint.port,
                    ssl=self._tls,
                    server_hostname=name if self._tls is not None else None,
                )
        except BaseException as error:
            # The time may be over, or the dialler cancelled, when the connection was just made: uvloop
            # then closes it without telling the protocol.
            for one in made:
                one.lose()
            if not isinstance(error, OSError):  # TimeoutError and ssl.SSLError are such
                raise
            self._failed(endpoint, _reason(error))
            return None
        self._told.clear()
        log_event(logging.INFO, "neighbour dialled", neighbour=self._name, address=endpoint)
        return connection

    def _failed(self, endpoint: Endpoint, reason: str) -> None:
        self._host.counts.dial_failures += 1
        # One warning for each reason: a neighbour that is down for a day is one line, not thousands.
        level = logging.DEBUG if (endpoint, reason) in self._told else logging.WARNING
        self._told.add((endpoint, reason))
        log_event(level, "neighbour cannot be reached", neighbour=self._name, address=endpoint,
                  reason=reason)  # fmt: skip


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS fails: {error.reason or error}"
    return error.strerror or str(error) or "no answer in time"
