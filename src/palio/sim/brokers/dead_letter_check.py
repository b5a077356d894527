"""The check of dead letters: each message that a queue gives up is published once, as it was.

- **unpublished**: a dead letter tells of a message that was published, and has its attributes and body.
- **twice**: a queue gives up a message once.
- **miscounted**: it was delivered as often as its subscription allows, or somebody has rejected it.
- **lost**, once all is quiet: what an application rejected has become a dead letter. A queue may have
  lost it before that, if it drops messages or ends; a message may have expired; and somebody must have
  subscribed to dead letters before it was rejected.
"""

from __future__ import annotations

import json
from typing import TypeAlias

from palio.protocol.wire.codes import DeadReason
from palio.protocol.wire.message_headers import body_of
from palio.sim.brokers.core_view import ArrivedMessage, queue_name
from palio.sim.brokers.expected import PublishedMessage
from palio.sim.brokers.plans import DEAD_LETTERS, SubscriptionSpec
from palio.sim.kernel.verdicts import Violation

Key: TypeAlias = tuple[str, int]
"""Publisher and number."""


class DeadLetterChecker:
    """`publications`: all that was published; `losing`: the policies of queues that may have lost
    something in this run."""

    def __init__(self, publications: dict[Key, PublishedMessage], losing: tuple[str, ...]) -> None:
        self._publications = publications
        self._losing = losing
        self._dead_letters: dict[tuple[str, Key], Key] = {}
        """By queue and message."""
        self._rejected: dict[tuple[str, Key], int] = {}
        """Likewise: when."""
        self._sure: set[tuple[str, Key]] = set()
        """Those that the queue cannot have lost before they were dead letters."""
        self._forgotten: set[str] = set()
        """Queues that were forgotten: a successor may get a message again."""
        self._deliveries_max: dict[str, int] = {}
        """By queue."""
        self.collected_from_us: int | None = None
        """Since when somebody has a subscription for dead letters."""

    def asked(self, spec: SubscriptionSpec) -> None:
        """Somebody asks for a subscription."""
        if spec.durable:
            queue = queue_name(spec.durable_name, spec.group)
            self._deliveries_max[queue] = spec.deliveries_max

    def rejected(self, spec: SubscriptionSpec, message: ArrivedMessage, now_us: int) -> None:
        """An application will never process a message."""
        key = message.publisher, message.number
        self._rejected[queue_name(spec.durable_name, spec.group), key] = now_us
        is_kept = not {spec.full, DEAD_LETTERS.full} & {*self._losing}
        if is_kept and not self._publications[key].spec.expires_us:
            self._sure.add((queue_name(spec.durable_name, spec.group), key))

    def over(self, spec: SubscriptionSpec) -> None:
        """A durable subscription has ended."""
        self._forgotten.add(queue_name(spec.durable_name, spec.group))

    def arrived(self, dead_letter: ArrivedMessage) -> None:
        told = json.loads(dead_letter.attributes)
        key = told["dead_publisher"], told["dead_number"]
        published = self._publications.get(key)
        sent = None if published is None else published.spec
        if (
            sent is None
            or json.loads(sent.attributes) != told["original"]
            or body_of(dead_letter.payload) != sent.body
        ):
            raise Violation("unpublished", f"a dead letter {told} of {published}")
        queue, name = told["dead_queue"], (dead_letter.publisher, dead_letter.number)
        before = self._dead_letters.setdefault((queue, key), name)
        if before != name and queue not in self._forgotten:
            raise Violation("twice", f"{published} is a dead letter of {queue!r} twice")
        if told["dead_reason"] == DeadReason.REJECTED:
            is_right = (queue, key) in self._rejected
        else:
            is_right = told["deliveries"] == self._deliveries_max.get(queue, 0)
        if not is_right and queue not in self._forgotten:
            raise Violation("miscounted", f"{published} should be no dead letter: {told}")

    def may_have(self, spec: SubscriptionSpec, publication: PublishedMessage) -> bool:
        """Whether a message is a dead letter of a subscription, or may be one that nobody collected."""
        died = (
            queue_name(spec.durable_name, spec.group),
            (publication.publisher, publication.number),
        )
        if died in self._dead_letters or died in self._rejected:
            return True
        from_us = self.collected_from_us
        return spec.deliveries_max > 0 and (from_us is None or publication.time_us < from_us)

    def check_lost(self) -> None:
        for queue, key in sorted(self._sure):
            rejected_us = self._rejected[queue, key]
            is_collected = (
                self.collected_from_us is not None and self.collected_from_us < rejected_us
            )
            if (
                is_collected
                and queue not in self._forgotten
                and (queue, key) not in self._dead_letters
            ):
                published = self._publications[key]
                raise Violation(
                    "lost", f"{queue!r} rejected {published}, and there is no dead letter"
                )
