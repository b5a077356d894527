"""The end-to-end check of brokers: it sees what applications see, and raises a Violation.

- **unpublished**: what arrives was published, by whom it says, with these attributes, headers and body.
- **uninterested**: it matches the predicate; what comes out of a queue is durable, and was not known
  to be stored before the subscription began; and what a client publishes live goes to none of its
  own subscriptions that it asks for later on the same connection.
- **twice**: nothing comes twice for one subscription of a session, out of the queue or live. A
  member of a group, or a subscription that was left and taken up again, may get what another had,
  and then it is told so; unless it was sent the message first, slept, and finds it when it wakes. What
  a client has given back or rejected may come again, and everybody is told so.
- **order**: messages of one publisher come out of a queue in order, if one client has it to itself;
  except those that are delayed.
- **early**: nobody gets a delayed message before its time.
- **expired**, **too soon**, **miscounted**: see `return_check.py`.
- **lost**, once all is healed and quiet: a durable subscription that blocks has got every durable
  message that was acknowledged, matches, does not expire, and was published when the subscription was known to be
  there (or after its start time, if that was asked for), and has not given it back, unless it became a
  dead letter; not so a group that a member has ever
  forgotten, since nobody knows when the others were told. And of the probes, which are published
  after that, every live subscription too has got each that matches, exactly once; a group as a whole.
"""

from __future__ import annotations

from palio.protocol.wire.control import Subscribed
from palio.sim.brokers.core_view import ArrivedMessage, client_of, publisher_of
from palio.sim.brokers.dead_letter_check import DeadLetterChecker
from palio.sim.brokers.expected import DeliveredMessage, ExpectedDeliveries, PublishedMessage
from palio.sim.brokers.last_value_check import LastValueChecker
from palio.sim.brokers.plans import DEAD_LETTERS, MessageSpec, SubscriptionSpec
from palio.sim.brokers.return_check import check_expiry, check_returned
from palio.sim.kernel.verdicts import Violation


class EndToEndChecker:
    """`losing`: the policies of queues that may have lost something in this run. `drops`: live messages may
    have been dropped."""

    def __init__(self, losing: tuple[str, ...], drops: bool = False) -> None:
        self._losing = losing
        self.publications: dict[tuple[str, int], PublishedMessage] = {}
        self.dead_letters = DeadLetterChecker(self.publications, losing)
        self.last_values = LastValueChecker(self.publications, drops)
        self.expected: dict[str, ExpectedDeliveries] = {}
        self.deliveries = 0
        self.due = 0
        self._is_probing = False
        self._counts: dict[str, int] = {}
        self._forgotten_groups: set[str] = set()
        self._unacknowledged: dict[str, dict[int, PublishedMessage]] = {}
        self._connected_us: dict[str, int] = {}
        self._last: dict[str, int] = {}
        """The last number of each publisher."""
        self._late: dict[tuple[str, str], ExpectedDeliveries] = {}
        """Clients that have yet to hear that a subscription has ended; its name may be in use again."""

    # ---- what happens

    def connected(self, client: str, now_us: int) -> None:
        """A client has a new connection."""
        self._connected_us[client] = now_us

    def published(self, publisher: str, number: int, spec: MessageSpec, now_us: int) -> None:
        count = self._counts[publisher] = self._counts.get(publisher, 0) + 1
        name = f"{client_of(publisher)}#{count}"
        publication = PublishedMessage(name, publisher, number, now_us, spec, self._is_probing)
        self.publications[publisher, number] = publication
        self._last[publisher] = number
        if spec.durable:
            self._unacknowledged.setdefault(publisher, {})[number] = publication

    def name_of(self, publisher: str, number: int) -> str:
        """A message, as the trace calls it."""
        publication = self.publications.get((publisher, number))
        return f"{publisher} number {number}" if publication is None else publication.name

    def acknowledged(self, publisher: str, number: int, now_us: int) -> None:
        waiting = self._unacknowledged.get(publisher, {})
        for n in [n for n in waiting if n <= number]:
            waiting.pop(n).acknowledged_us = now_us

    def asked(self, client: str, id: int, spec: SubscriptionSpec, home: str, now_us: int) -> None:
        expected, since_us = self.expected.get(spec.name), now_us - (spec.past_us or 0)
        if expected is None:
            expected = self.expected[spec.name] = ExpectedDeliveries(spec, home, client, since_us)
        elif expected.subscribed_us is None:  # the broker may never have heard of it
            expected.asked_us = since_us
        expected.members[client] = id
        expected.confirmed_us.pop(client, None)
        self.dead_letters.asked(spec)
        expected.asked_after[client] = self._last.get(publisher_of(client), 0)

    def subscribed(
        self, client: str, spec: SubscriptionSpec, home: str, event: Subscribed, now_us: int
    ) -> None:
        late = self._late.get((client, spec.name))
        if late is not None and event.version <= late.ended_us:  # made before that one ended
            return
        self._late.pop((client, spec.name), None)
        expected = self._of_subscription(client, event.id, spec, home)
        expected.confirmed_us[client] = now_us
        if expected.subscribed_us is None:
            expected.subscribed_us = now_us
            if spec == DEAD_LETTERS:
                self.dead_letters.collected_from_us = now_us

    def _of_subscription(
        self, client: str, id: int, spec: SubscriptionSpec, home: str
    ) -> ExpectedDeliveries:
        """If another member has forgotten it, this one has asked for it anew."""
        expected = self.expected.get(spec.name)
        if expected is None:
            expected = self.expected[spec.name] = ExpectedDeliveries(spec, home, client, 0)
        expected.members.setdefault(client, id)
        return expected

    def left(self, client: str, spec: SubscriptionSpec) -> None:
        """A client leaves a subscription; a live one without members is over."""
        self._late.pop((client, spec.name), None)
        expected = self.expected.get(spec.name)
        if expected is None or expected.members.pop(client, None) is None:
            return
        if not spec.durable and not expected.members:
            del self.expected[spec.name]

    def over(self, client: str, id: int, spec: SubscriptionSpec, now_us: int) -> None:
        """A client forgets its subscription, or hears that it has ended: a live one for this client
        alone, a durable one for all, who hear of it sooner or later."""
        expected = self.expected.get(spec.name)
        if spec.durable:
            self.dead_letters.over(spec)
        if spec.durable and expected is not None and expected.members.get(client) == id:
            del self.expected[spec.name]
            expected.ended_us = now_us
            self._late.update(((member, spec.name), expected) for member in expected.members)
            if spec.group:
                self._forgotten_groups.add(spec.name)
        self.left(client, spec)

    def arrived(
        self, client: str, spec: SubscriptionSpec, home: str, arrival: ArrivedMessage, now_us: int
    ) -> DeliveredMessage:
        late = self._late.get((client, spec.name))
        expected = late or self._of_subscription(client, arrival.id, spec, home)
        if expected.members[client] != arrival.id:
            raise Violation("uninterested", f"{client} got something for {expected}, which it left")
        published = self._published(expected, arrival)
        received = DeliveredMessage(client, arrival, published, now_us)
        before = expected.received.setdefault((published.publisher, published.number), [])
        self._check_interest(expected, received)
        self._check_once(expected, received, before)
        self._check_order(expected, received)
        check_expiry(expected, received)
        check_returned(expected, received, before, self._connected_us.get(client, 0))
        self.last_values.arrived(expected, received)
        self.deliveries += 1
        before.append(received)
        return received

    # ---- all the time

    def _published(self, expected: ExpectedDeliveries, arrival: ArrivedMessage) -> PublishedMessage:
        publication = self.publications.get((arrival.publisher, arrival.number))
        if publication is None:
            raise Violation("unpublished", f"{expected} got {arrival}, which nobody published")
        sent = publication.spec
        if (arrival.attributes, arrival.payload) != (
            sent.attributes.encode(),
            sent.headers + sent.body,
        ):
            raise Violation("unpublished", f"{expected} got {arrival} instead of {publication}")
        return publication

    def _check_interest(self, expected: ExpectedDeliveries, received: DeliveredMessage) -> None:
        publication = received.published
        if not expected.predicate.matches(publication.message):
            raise Violation("uninterested", f"{expected} got {publication}")
        arrival = received.arrival
        if arrival.is_queued and not (publication.spec.durable and expected.spec.durable):
            raise Violation("uninterested", f"{expected} got {publication} out of a queue")
        if received.time_us < publication.time_us + publication.spec.delay_us:
            raise Violation("early", f"{expected} got {publication} before its time")
        if expected.spec.durable and publication.spec.durable and not arrival.is_queued:
            raise Violation("uninterested", f"{expected} got {publication} beside its queue")
        stored_us, is_alone = publication.acknowledged_us, not expected.spec.group
        if (
            arrival.is_queued
            and is_alone
            and not publication.spec.delay_us
            and stored_us is not None
            and stored_us < expected.since_us
        ):
            raise Violation("uninterested", f"{expected} got {publication}, which is older than it")
        if is_alone and self._is_earlier(expected, received):
            raise Violation("uninterested", f"{expected} got {publication}, which came before it")

    def _is_earlier(self, expected: ExpectedDeliveries, received: DeliveredMessage) -> bool:
        """The client published it live before it asked for the subscription, on one connection, so
        the broker knew of the message first."""
        publication, client = received.published, received.client
        return (
            not publication.spec.durable
            and publication.publisher == publisher_of(client)
            and publication.number <= expected.asked_after.get(client, 0)
            and publication.time_us >= self._connected_us.get(client, 0)
        )

    def _check_once(
        self,
        expected: ExpectedDeliveries,
        received: DeliveredMessage,
        all_before: list[DeliveredMessage],
    ) -> None:
        connected_us, again = self._connected_us.get(received.client, 0), received.arrival
        for one in all_before:
            is_same = (one.client, one.arrival.id) == (received.client, again.id)
            is_late = one.arrival.is_redelivered and connected_us < one.time_us
            may_come = one.is_returned if is_same else expected.spec.durable
            if not may_come or not (again.is_redelivered or (is_late and not is_same)):
                raise Violation(
                    "twice",
                    f"{expected}: {received.client} got {received.published}, which {one.client} had",
                )

    def _check_order(self, expected: ExpectedDeliveries, received: DeliveredMessage) -> None:
        publication = received.published
        arrival = received.arrival
        if not arrival.is_queued or expected.spec.group or arrival.is_redelivered:
            return
        if publication.spec.delay_us:
            return
        if publication.number < expected.last.get(publication.publisher, 0):
            raise Violation(
                "order",
                f"{expected} got {publication} after {expected.last[publication.publisher]}",
            )
        expected.last[publication.publisher] = publication.number

    # ---- in the end

    def begin_probing(self) -> None:
        """From now on every message must arrive."""
        self._is_probing = True

    def check_lost(self) -> None:
        """Check that nothing is missing; called when the network is quiet."""
        self.due = 0
        self.dead_letters.check_lost()
        for expected in self.expected.values():
            for key, publication in self.publications.items():
                if expected.predicate.matches(publication.message) and self._is_due(
                    expected, publication
                ):
                    self.due += 1
                    is_processed = any(
                        not one.is_returned for one in expected.received.get(key, ())
                    )
                    if not is_processed and not self.dead_letters.may_have(
                        expected.spec, publication
                    ):
                        raise Violation("lost", f"{expected} never got {publication}")

    def _is_due(self, expected: ExpectedDeliveries, publication: PublishedMessage) -> bool:
        is_queued = expected.spec.durable and publication.spec.durable
        if publication.spec.expires_us:
            return False
        if is_queued and expected.spec.full in self._losing:
            return False
        if publication.is_probe:
            return bool(expected.members) and expected.subscribed_us is not None
        if (
            not is_queued
            or expected.from_us is None
            or expected.spec.name in self._forgotten_groups
        ):
            return False
        return publication.acknowledged_us is not None and publication.time_us >= expected.from_us
