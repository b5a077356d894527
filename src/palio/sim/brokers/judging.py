"""The judge: watches what applications see, and raises at the first thing that must not be.

- **unpublished**: what arrives was published, by whom it says, with these attributes and this body.
- **uninterested**: it matches the predicate; and what comes out of a queue is durable, and was not
  known to be stored before the subscription began.
- **twice**: nothing comes twice for one subscription of a session, out of the queue or live. A
  member of a group, or a subscription that was left and taken up again, may get what another had,
  and then it is told so; unless it was sent the message first, slept, and finds it when it wakes.
- **order**: messages of one publisher come out of a queue in order, if one client has it to itself.
- **lost**, once all is healed and quiet: a durable subscription that blocks has got every durable
  message that was acknowledged, matches, and was published when the subscription was known to be
  there (or after its start time, if that was asked for); not so a group that a member has ever
  forgotten, since nobody knows when the others were told. And of the probes, which are published
  after that, every live subscription too has got each that matches, exactly once; a group as a whole.
"""

from __future__ import annotations

from palio.protocol.client.session import Arrival
from palio.protocol.words import Subscribed
from palio.sim.brokers.plans import Sending, Want
from palio.sim.brokers.records import Desk, Publication, Receipt
from palio.sim.checkers import Violation


class Judge:
    """`losing`: the policies of queues that may have lost something in this run."""

    def __init__(self, losing: tuple[str, ...]) -> None:
        self._losing = losing
        self.publications: dict[tuple[str, int], Publication] = {}
        self.desks: dict[str, Desk] = {}
        self.deliveries = 0
        self.due = 0
        self._is_probing = False
        self._forgotten_groups: set[str] = set()
        self._unacknowledged: dict[str, dict[int, Publication]] = {}
        self._joined_us: dict[str, int] = {}
        self._late: dict[tuple[str, str], Desk] = {}
        """Clients that have yet to hear that a desk has ended: perhaps there is another by now."""

    # ---- what happens

    def joined(self, client: str, now_us: int) -> None:
        """A client has a new connection."""
        self._joined_us[client] = now_us

    def published(self, publisher: str, number: int, sending: Sending, now_us: int) -> None:
        found = Publication(publisher, number, now_us, sending)
        found.is_probe = self._is_probing
        self.publications[publisher, number] = found
        if sending.durable:
            self._unacknowledged.setdefault(publisher, {})[number] = found

    def acknowledged(self, publisher: str, number: int, now_us: int) -> None:
        waiting = self._unacknowledged.get(publisher, {})
        for n in [n for n in waiting if n <= number]:
            waiting.pop(n).acknowledged_us = now_us

    def wanted(self, client: str, id: int, want: Want, home: str, now_us: int) -> None:
        desk, since_us = self.desks.get(want.desk), now_us - (want.past_us or 0)
        if desk is None:
            desk = self.desks[want.desk] = Desk(want, home, client, since_us)
        elif desk.subscribed_us is None:  # the broker may never have heard of it
            desk.asked_us = since_us
        desk.members[client] = id

    def subscribed(self, client: str, want: Want, home: str, word: Subscribed, now_us: int) -> None:
        late = self._late.get((client, want.desk))
        if late is not None and word.version <= late.ended_us:  # made before that one ended
            return
        self._late.pop((client, want.desk), None)
        desk = self._desk(client, word.id, want, home)
        if desk.subscribed_us is None:
            desk.subscribed_us = now_us

    def _desk(self, client: str, id: int, want: Want, home: str) -> Desk:
        """Should another member have forgotten it, then this one has asked for it again."""
        desk = self.desks.get(want.desk)
        if desk is None:
            desk = self.desks[want.desk] = Desk(want, home, client, 0)
        desk.members.setdefault(client, id)
        return desk

    def left(self, client: str, want: Want) -> None:
        """A client has no more part in a desk; a live one without members is over."""
        self._late.pop((client, want.desk), None)
        desk = self.desks.get(want.desk)
        if desk is None or desk.members.pop(client, None) is None:
            return
        if not want.durable and not desk.members:
            del self.desks[want.desk]

    def over(self, client: str, id: int, want: Want, now_us: int) -> None:
        """A client forgets its subscription, or hears that it has ended: a live one for this client
        alone, a durable one for all, who hear of it sooner or later."""
        desk = self.desks.get(want.desk)
        if want.durable and desk is not None and desk.members.get(client) == id:
            del self.desks[want.desk]
            desk.ended_us = now_us
            self._late.update(((member, want.desk), desk) for member in desk.members)
            if want.group:
                self._forgotten_groups.add(want.desk)
        self.left(client, want)

    def arrived(self, client: str, want: Want, home: str, arrival: Arrival, now_us: int) -> None:
        late = self._late.get((client, want.desk))
        desk = late or self._desk(client, arrival.id, want, home)
        if desk.members[client] != arrival.id:
            raise Violation("uninterested", f"{client} got something for {desk}, which it left")
        header = arrival.header
        publication = self._known(desk, arrival)
        receipt = Receipt(
            client, arrival.id, publication, header.position > 0, header.again, now_us
        )
        self._check_interest(desk, receipt)
        self._check_once(desk, receipt)
        self._check_order(desk, receipt)
        self.deliveries += 1
        desk.receipts.setdefault((header.publisher, header.number), []).append(receipt)

    # ---- all the time

    def _known(self, desk: Desk, arrival: Arrival) -> Publication:
        header, letter = arrival.header, arrival.letter
        found = self.publications.get((header.publisher, header.number))
        if found is None:
            raise Violation("unpublished", f"{desk} got {header}, which nobody published")
        sent = found.sending
        if (letter.attributes, letter.body) != (sent.attributes.encode(), sent.body):
            raise Violation("unpublished", f"{desk} got {letter} instead of {found}")
        return found

    def _check_interest(self, desk: Desk, receipt: Receipt) -> None:
        found = receipt.publication
        if not desk.predicate.matches(found.message):
            raise Violation("uninterested", f"{desk} got {found}")
        if receipt.is_queued and not (found.sending.durable and desk.want.durable):
            raise Violation("uninterested", f"{desk} got {found} out of a queue")
        if desk.want.durable and found.sending.durable and not receipt.is_queued:
            raise Violation("uninterested", f"{desk} got {found} beside its queue")
        stored_us, is_alone = found.acknowledged_us, not desk.want.group
        if receipt.is_queued and is_alone and stored_us is not None and stored_us < desk.since_us:
            raise Violation("uninterested", f"{desk} got {found}, which is older than it")

    def _check_once(self, desk: Desk, receipt: Receipt) -> None:
        found, joined_us = receipt.publication, self._joined_us.get(receipt.client, 0)
        for before in desk.receipts.get((found.publisher, found.number), ()):
            is_same = (before.client, before.id) == (receipt.client, receipt.id)
            is_late = before.is_again and joined_us < before.time_us
            if is_same or not desk.want.durable or not (receipt.is_again or is_late):
                raise Violation(
                    "twice", f"{desk}: {receipt.client} got {found}, which {before.client} had"
                )

    def _check_order(self, desk: Desk, receipt: Receipt) -> None:
        found = receipt.publication
        if not receipt.is_queued or desk.want.group or receipt.is_again:
            return
        if found.number < desk.last.get(found.publisher, 0):
            raise Violation("order", f"{desk} got {found} after {desk.last[found.publisher]}")
        desk.last[found.publisher] = found.number

    # ---- in the end

    def begin_probing(self) -> None:
        """From now on nothing excuses anybody."""
        self._is_probing = True

    @property
    def unacknowledged(self) -> int:
        return sum(map(len, self._unacknowledged.values()))

    def check_lost(self) -> None:
        """All is quiet: what is not there by now never comes."""
        self.due = 0
        for desk in self.desks.values():
            for key, found in self.publications.items():
                if desk.predicate.matches(found.message) and self._is_due(desk, found):
                    self.due += 1
                    if key not in desk.receipts:
                        raise Violation("lost", f"{desk} never got {found}")

    def _is_due(self, desk: Desk, found: Publication) -> bool:
        is_queued = desk.want.durable and found.sending.durable
        if is_queued and desk.want.full in self._losing:
            return False
        if found.is_probe:
            return bool(desk.members) and desk.subscribed_us is not None
        if not is_queued or desk.from_us is None or desk.want.desk in self._forgotten_groups:
            return False
        return found.acknowledged_us is not None and found.time_us >= desk.from_us
