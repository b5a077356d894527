"""DRP in a broker: dynamic receiver partitioning (2006, 3.4).

The broker where a message is published matches it and writes the receivers into the route. Brokers
on the path do not match it: they partition the receivers by next hop. Only a receiver matches it
against its own subscriptions. Very many receivers are written into several copies of the message, so
that no routing header is larger than brokers take.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from palio.protocol.policies.policy import (
    ROUTE_READER,
    ROUTE_WRITER,
    Hops,
    broken_route,
    wrong_scheme,
)
from palio.protocol.policies.scheme_policy import SchemePolicy
from palio.routing.schemes.hops import partition

RECEIVERS_BYTES_MAX = 32 << 10
"""Of the receivers in one routing header: half of what a header may have (`Limits.header`)."""
NAME_BYTES_MAX = 805
"""Of the name of a broker in a header."""


class DRPPolicy(SchemePolicy):
    is_source_routed = True

    def is_receiver(self, route: bytes) -> bool:
        _, receivers = self._decode(route, "a neighbour")
        return self._me in receivers

    def next_hops(
        self, route: bytes, interested: Collection[str], came_from: str | None, count: int = 1
    ) -> Hops:
        if came_from is None:
            left, receivers = len(self._hop_of), sorted(self._hop_of.keys() & interested)
        else:
            written, named = self._decode(route, came_from)
            left = min(written, len(self._hop_of))  # a larger number is wrong, whoever wrote it
            receivers = sorted(named)
        parts = partition(receivers, self._hop_of)
        unknown = [x for x in receivers if x not in self._hop_of and x != self._me]
        self.dropped["unknown"] += count * len(unknown)
        if came_from is not None:
            self.dropped["astray"] += count * len(parts.pop(came_from, ()))
        if parts and not left:
            self.dropped["spent"] += count
            return []
        return [
            (hop, ROUTE_WRITER.encode((left - 1, some)))
            for hop, names in parts.items()
            for some in _by_frame(names)
        ]

    def _decode(self, route: bytes, came_from: str) -> tuple[int, tuple[str, ...]]:
        try:
            left, header = ROUTE_READER.decode(route)
        except (ValueError, RecursionError) as error:  # ValueError: all that msgspec raises
            raise broken_route(came_from, error) from None
        if isinstance(header, str):
            raise wrong_scheme(came_from, "DRP")
        return left, header


def _by_frame(names: Sequence[str]) -> list[Sequence[str]]:
    """Receivers, as many together as one routing header takes."""
    if len(names) * NAME_BYTES_MAX <= RECEIVERS_BYTES_MAX:
        return [names]
    groups: list[Sequence[str]] = []
    group: list[str] = []
    size = 0
    for name in names:
        name_bytes = 5 + len(name.encode())
        if group and size + name_bytes > RECEIVERS_BYTES_MAX:
            groups.append(group)
            group, size = [], 0
        group.append(name)
        size += name_bytes
    return [*groups, group]
