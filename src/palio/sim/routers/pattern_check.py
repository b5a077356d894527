"""The check of patterns: what clients get of them is true, and is all that there is.

Always:
- **uninterested**: a client gets a compound only of a watch that is in force.
- **untrue**: its messages were published, and a monitor that is fed with them alone finds just it.
- **twice**: a watch never gives the same compound again.

And when the network is quiet:
- **missed**: what a watch gave is what one monitor finds that is fed with all that was published
  since, in order; of one that was recalled, the beginning of it. Insisted on while the watch is
  *undisturbed*.

    young ──quiet──▶ undisturbed ──▶ disturbed

A watch is young from when it is asked for until the network is quiet, and must see no message that
it selects in that time, nor may one be on its way when it is asked for: it may reach some routers
before the watch does, and others after it. It is disturbed when advertisements change, since
patterns are then planned again and may start anew; when a router crashes or a link is cut; when a
message is published that it selects and nobody advertised; or when a router counts a message that
came too late: matching is exact only where nothing is late (`palio.routing.patterns.watching`).
Without lateness messages are taken as they come, and no watch is ever undisturbed.
"""

from __future__ import annotations

from enum import Enum

from palio.routing.packets import Publish
from palio.routing.patterns.automaton import stamp
from palio.routing.patterns.monitor import Monitor
from palio.routing.patterns.packets import Assembled, Compound, Unwatch, Watch
from palio.routing.patterns.pattern import Part, leaves
from palio.sim.kernel.verdicts import Violation
from palio.sim.routers.packet_text import described
from palio.sim.routers.plans import RouterPlan
from palio.sim.routers.subscription_history import Declaration, SubscriptionHistory


class Phase(Enum):
    YOUNG = "young"
    UNDISTURBED = "undisturbed"
    DISTURBED = "disturbed"


class WatchRecord:
    """One watch of one client: what it gave, and what it should have."""

    def __init__(self, client: str, declared: Declaration[Watch]) -> None:
        self.client = client
        self.declared = declared
        self.phase = Phase.YOUNG
        self.monitor = Monitor(declared.item.pattern)
        self.pending: list[Publish] = []
        self.expected: list[Compound] = []
        self.given: dict[tuple[Publish, ...], Compound] = {}
        self._parts = [
            leaf.predicate for leaf in leaves(declared.item.pattern.node) if isinstance(leaf, Part)
        ]

    def selects(self, publication: Publish) -> bool:
        return any(part.matches(publication.message) for part in self._parts)

    def __str__(self) -> str:
        return f"watch {self.declared.item.id} of {self.client}, {self.declared.item.pattern},"


class WatchChecker:
    def __init__(self, plan: RouterPlan) -> None:
        self._is_ordered = plan.patterns.lateness > 0
        self._watched: dict[tuple[str, int], WatchRecord] = {}
        self._published: dict[tuple[str, int], Publish] = {}
        self._on_the_way: list[Publish] = []
        self._late = 0

    def asked(self, client: str, packet: Watch | Unwatch, history: SubscriptionHistory) -> None:
        """A client has asked for a watch; `history` has it already."""
        if isinstance(packet, Watch):
            record = self._watched[client, packet.id] = WatchRecord(client, history.watches[-1])
            if not self._is_ordered or any(map(record.selects, self._on_the_way)):
                record.phase = Phase.DISTURBED

    def published(self, publication: Publish, is_known: bool) -> None:
        """`is_known`: the publisher's advertisements allow it."""
        self._published[publication.publisher, publication.number] = publication
        if not self._is_ordered:
            return
        self._on_the_way.append(publication)
        for record in self._watched.values():
            if record.phase is Phase.DISTURBED or not record.selects(publication):
                continue
            if record.phase is Phase.YOUNG or not is_known:
                record.phase = Phase.DISTURBED
            else:
                record.pending.append(publication)

    def disturbed(self) -> None:
        for record in self._watched.values():
            if record.phase is Phase.UNDISTURBED:
                record.phase = Phase.DISTURBED

    def assembled(self, client: str, packet: Assembled) -> None:
        record = self._watched.get((client, packet.id))
        what = f"{described(packet)} for {client}"
        if record is None or not record.declared.is_in_force:
            raise Violation("uninterested", f"{what}, who does not watch that")
        compound = packet.compound
        for message in compound.messages:
            if self._published.get((message.publisher, message.number)) != message:
                raise Violation("untrue", f"{what}: {described(message)} was never published")
        alone = Monitor(record.declared.item.pattern)
        if [match for m in compound.messages for match in alone.feed(m)] != [compound]:
            raise Violation("untrue", f"{what} is no match of {record.declared.item.pattern}")
        if compound.messages in record.given:
            raise Violation("twice", f"{what} again")
        record.given[compound.messages] = compound

    def check_missed(self, late: int) -> int:
        """The network is quiet; how many compounds were due. `late`: how many messages have been
        too late for a pattern, in all routers."""
        if late != self._late:
            self.disturbed()
        self._late = late
        self._on_the_way.clear()
        due = 0
        for record in self._watched.values():
            if record.phase is Phase.UNDISTURBED:
                due += self._compare(record)
            elif record.phase is Phase.YOUNG:
                record.phase = Phase.UNDISTURBED
        return due

    def _compare(self, record: WatchRecord) -> int:
        before = len(record.expected)
        for publication in sorted(record.pending, key=stamp):
            record.expected += record.monitor.feed(publication)
        record.pending.clear()
        given, expected = list(record.given.values()), record.expected
        if not record.declared.is_in_force:  # what was on its way then may be missing
            record.phase = Phase.DISTURBED
            expected = expected[: len(given)]
        if given != expected:
            at = next(
                (
                    i
                    for i, pair in enumerate(zip(given, expected, strict=False))
                    if pair[0] != pair[1]
                ),
                min(len(given), len(expected)),
            )
            raise Violation(
                "missed", f"{record} gave {_text(given, at)} where {_text(expected, at)} is due"
            )
        return len(expected) - before


def _text(compounds: list[Compound], at: int) -> str:
    if at >= len(compounds):
        return "nothing more"
    return " ".join(f"{m.publisher}#{m.number}" for m in compounds[at].messages)
