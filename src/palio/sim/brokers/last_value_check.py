"""The check of last values: brokers agree on them, and who subscribed with them has them.

- **older**, all the time: of the values of a key that one client publishes, a subscription with last values
  gets none after a newer one; except those that are delayed.
- **last**, once all is quiet: all brokers hold the same value of each key. It is the latest that its publisher
  published and knows to be stored, except where that was delayed; and a key that has values, none of which
  forgets it or expires, has one. Each subscription with last values has got those that it selects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from palio.protocol.wire.last_values import key_of
from palio.protocol.wire.message_headers import RETAIN, headers_of
from palio.sim.brokers.expected import DeliveredMessage, ExpectedDeliveries, PublishedMessage
from palio.sim.kernel.verdicts import Violation

HeldValues: TypeAlias = dict[bytes, tuple[str, int]]
"""What a broker would give to a new subscriber: publisher and number, by key."""


def key_of_message(publication: PublishedMessage) -> bytes | None:
    """The key of which a message is the last value; None: it is none."""
    names = headers_of(publication.spec.headers).get(RETAIN)
    return key_of(names, publication.message) if isinstance(names, str) else None


class LastValueChecker:
    """`publications`: all that was published. `drops`: live messages may have been dropped in this run."""

    def __init__(
        self, publications: Mapping[tuple[str, int], PublishedMessage], drops: bool
    ) -> None:
        self._publications = publications
        self._drops = drops
        self._newest: dict[tuple[str, int, bytes, str], int] = {}
        """The last number, by client, id of its subscription, key and publisher."""

    def arrived(self, expected: ExpectedDeliveries, received: DeliveredMessage) -> None:
        publication = received.published
        key = key_of_message(publication) if expected.spec.last else None
        if key is None or publication.spec.delay_us:
            return
        place = received.client, received.arrival.id, key, publication.publisher
        if publication.number < self._newest.get(place, 0):
            raise Violation("older", f"{expected} got {publication} after a newer value")
        self._newest[place] = publication.number

    def check(self, held: Mapping[str, HeldValues], expected: Iterable[ExpectedDeliveries]) -> None:
        """Check what brokers hold, and what subscriptions have; called when the network is quiet."""
        first = next(iter(held))
        for broker, values in held.items():
            if values != held[first]:
                keys = [
                    key for key in values | held[first] if values.get(key) != held[first].get(key)
                ]
                of = [self._shown(values.get(keys[0])), self._shown(held[first].get(keys[0]))]
                raise Violation("last", f"{broker} and {first} hold {of[0]} and {of[1]}")
        last = {key: self._publications[name] for key, name in held[first].items()}
        self._check_latest(last)
        for one in expected:
            if one.spec.last and one.members and one.subscribed_us is not None:
                self._check_given(one, last)

    def _check_latest(self, last: Mapping[bytes, PublishedMessage]) -> None:
        ends: set[bytes] = set()
        stored: dict[bytes, list[PublishedMessage]] = {}
        for publication in self._publications.values():
            key = key_of_message(publication)
            if key is None:
                continue
            if publication.spec.forget or publication.spec.expires_us:
                ends.add(key)
            if publication.acknowledged_us is not None and not publication.spec.delay_us:
                stored.setdefault(key, []).append(publication)
        for key, own in stored.items():
            found = last.get(key)
            if found is None and key not in ends:
                raise Violation("last", f"the key of {own[-1]} has no last value")
            if found is None or found.spec.delay_us:
                continue
            for other in own:
                if other.publisher == found.publisher and other.number > found.number:
                    raise Violation("last", f"{found} is held, and {other} is newer")

    def _check_given(self, one: ExpectedDeliveries, last: Mapping[bytes, PublishedMessage]) -> None:
        if self._drops:
            return
        for found in last.values():
            is_wanted = one.predicate.matches(found.message) and not found.spec.expires_us
            if is_wanted and (found.publisher, found.number) not in one.received:
                raise Violation("last", f"{one} has not got {found}, the last value of its key")

    def _shown(self, name: tuple[str, int] | None) -> str:
        return "nothing" if name is None else str(self._publications.get(name, name))
