"""Explanations: where would a message go, published here, and why.

    client ─Explain─▶ broker ─┬─ what it does itself
                              └─ Asked ─▶ next brokers, as the message would travel ─▶ Told back

Nothing is delivered. The broker that was asked knows from each `Told` which brokers come next; it
answers when all have told, or names those that were silent for `SILENT_US`. It adds the durable
subscriptions at brokers that the message does not visit this way: it would keep it for them itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Predicate
from palio.protocol.access import check_admin
from palio.protocol.live import NOWHERE
from palio.protocol.onward import name_of, peer_of
from palio.protocol.words import Asked, Explain, Explained, Hop, Told

if TYPE_CHECKING:
    from palio.protocol.broker import Broker, Link

SILENT_US = 2_000_000
HOPS_MAX = 1000
REASONS_MAX = 5
_NO_TRAIL = b"\xc0"


class _Question:
    __slots__ = ("deadline_us", "hops", "link", "silent", "word")

    def __init__(self, link: int, word: Explain, deadline_us: int) -> None:
        self.link = link
        self.word = word
        self.deadline_us = deadline_us
        self.hops: list[Hop] = []
        self.silent: list[str] = []  # one entry for each packet that is not told of yet


class Explaining:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._questions: dict[int, _Question] = {}
        self._asked = 0

    def begin(self, link: Link, word: Explain) -> None:
        assert link.identity is not None
        check_admin(link.identity, "see explanations")
        Message.from_json(word.attributes)
        self._asked += 1
        deadline_us = self._broker.now_us + SILENT_US
        self._questions[self._asked] = _Question(link.number, word, deadline_us)
        me = self._broker.name
        self._tell(Asked(self._asked, me, "", word.attributes, word.subscription))

    def hear(self, link: Link, word: Asked | Told) -> None:
        if isinstance(word, Asked):
            self._tell(msgspec.structs.replace(word, came_from=link.name))
        elif word.asker == self._broker.name:
            self._note(word)
        else:
            self._send(word)

    def leave(self, link: Link) -> None:
        gone = [number for number, q in self._questions.items() if q.link == link.number]
        for number in gone:
            del self._questions[number]

    @property
    def deadline_us(self) -> int | None:
        return min((q.deadline_us for q in self._questions.values()), default=None)

    def wake(self, now_us: int) -> None:
        for number, question in list(self._questions.items()):
            if question.deadline_us <= now_us:
                self._answer(number, question)

    def _tell(self, asked: Asked) -> None:
        """Say what this broker does with the message, and ask those that it would send it to."""
        broker = self._broker
        message = Message.from_json(asked.attributes)
        sends = self._sends(asked, message)
        delivers = broker.clients.reasons(message, asked.subscription)
        reason = (
            "it wants the message"
            if broker.settings.is_forwarding
            else "the way to brokers that want it"
        )
        hop = Hop(
            broker.name,
            asked.came_from,
            tuple(delivers),
            tuple((name, reason) for name, _ in sends),
        )
        self._send(Told(asked.id, asked.asker, hop))
        for name, trail in sends:
            onward = msgspec.structs.replace(asked, came_from=broker.name, trail=msgspec.Raw(trail))
            broker.neighbours.say(name, onward)

    def _sends(self, asked: Asked, message: Message) -> list[tuple[str, bytes]]:
        broker = self._broker
        if broker.settings.is_forwarding:
            source = peer_of(asked.came_from) if asked.came_from else NOWHERE
            peers = broker.live.router.destinations(message, source)
            names = [name_of(peer) for peer in peers if name_of(peer) in broker.neighbours.names]
            return [(name, _NO_TRAIL) for name in names if peer_of(name) in peers]
        (wanting,) = broker.routes.interested([message.to_json().encode()])
        if not asked.came_from:
            return broker.routes.start(wanting)
        return broker.routes.onward(asked.trail, wanting, asked.came_from)

    def _send(self, told: Told) -> None:
        if told.asker == self._broker.name:
            self._note(told)
            return
        hop = self._broker.routes.hop(told.asker)
        if hop is not None:
            self._broker.neighbours.say(hop, told)

    def _note(self, told: Told) -> None:
        question = self._questions.get(told.id)
        if question is None:
            return
        if told.hop.broker in question.silent:
            question.silent.remove(told.hop.broker)
        question.hops.append(told.hop)
        question.silent += [name for name, _ in told.hop.sends]
        if not question.silent or len(question.hops) > HOPS_MAX:
            self._answer(told.id, question)

    def _answer(self, number: int, question: _Question) -> None:
        del self._questions[number]
        silent = tuple(dict.fromkeys(question.silent))
        first, *others = question.hops
        kept = tuple(self._kept(question))
        hops = (msgspec.structs.replace(first, delivers=first.delivers + kept), *others)
        answer = Explained(question.word.id, hops, silent)
        self._broker.output.say(question.link, answer)

    def _kept(self, question: _Question) -> Iterator[tuple[str, str]]:
        """Durable subscriptions elsewhere of which nobody has told, and why they get it (or not)."""
        broker, subscription = self._broker, question.word.subscription
        message = Message.from_json(question.word.attributes)
        told = {(hop.broker, name) for hop in question.hops for name, _ in hop.delivers}
        for fact in broker.landscape.durables():
            if fact.broker == broker.name or (fact.broker, fact.name) in told:
                continue
            predicate = parse(fact.durable.predicate)
            if predicate.matches(message):
                yield (
                    fact.name,
                    (
                        f"durable, at {fact.broker}: kept here until {fact.broker} has it; "
                        f"{why(predicate, message)}"
                    ),
                )
            elif is_named(fact.name, subscription):
                yield fact.name, f"durable, at {fact.broker}: not sent; {why(predicate, message)}"


def is_named(name: str, subscription: str) -> bool:
    """Is this the subscription that somebody calls so, with or without the identity before it?"""
    return bool(subscription) and (name == subscription or name.endswith(f"/{subscription}"))


def why(predicate: Predicate, message: Message) -> str:
    """Why a predicate selects a message, or does not, in one line."""
    verdicts = predicate.explain(message).filters
    held = next((verdict for verdict in verdicts if verdict.holds), None)
    if held is not None:
        reasons = ", ".join(one.reason for one in held.deciding)
        return f"{held.filter} holds" + (f": {reasons}" if reasons else "")
    failed = [f"{v.deciding[0].constraint} fails: {v.deciding[0].reason}" for v in verdicts]
    if len(failed) > REASONS_MAX:
        failed[REASONS_MAX:] = [f"and {len(failed) - REASONS_MAX} other filters fail"]
    return "; ".join(failed) or "it selects nothing"
