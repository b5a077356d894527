"""Explanations: where a message would go if it were published here, and why.

    client ─Explain─▶ broker ─┬─ what it does itself
                              └─ ExplainHop ─▶ next brokers, as the message would travel
                                 HopExplained ◀─ their answers, back to the first broker

Nothing is delivered. Each `HopExplained` tells the first broker which brokers come next. It answers
when all have replied, or after `SILENT_US` names those that have not. It adds the durable
subscriptions at brokers that the message would not visit live: it would store the message for them.

A hop names at most DELIVERS_MAX subscriptions, and says how many more there are; the one that is asked for
is always named. Reasons are cut. So what a broker sends stays small, however many subscriptions there are.
Comparing a message with every subscription takes long, so it is a job of the host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeAlias, TypeVar

import msgspec

from palio.errors import LimitExceeded, PalioError
from palio.model.message import Message
from palio.model.predicate import Predicate
from palio.protocol.broker.access import check_admin
from palio.protocol.broker.durable import HomeSubscriptions
from palio.protocol.broker.effects import BackgroundJob, Output
from palio.protocol.broker.links import Link, Links, close_code
from palio.protocol.broker.neighbours import NeighbourLinks
from palio.protocol.broker.scheduler import Slices, WorkList
from palio.protocol.broker.subscriptions import ClientSubscriptions
from palio.protocol.interfaces import NextHop, RemoteBroker
from palio.protocol.policies.link_state import LinkStateDatabase
from palio.protocol.policies.policy import Hops, RoutingPolicy
from palio.protocol.policies.unicast import Unicast
from palio.protocol.wire.codes import NeighbourRole
from palio.protocol.wire.control import Explain, ExplainHop, Hop, HopExplained
from palio.protocol.wire.handshake import own_name
from palio.protocol.wire.parts import ITEM_BYTES, cut, explained_parts, text_bytes
from palio.protocol.wire.publishers import split_key
from palio.routing.interest_table import InterestTable

T = TypeVar("T")

SILENT_US = 2_000_000
HOPS_MAX = 1000
REASONS_MAX = 5
DELIVERS_MAX = 500
"""Subscriptions that a hop names."""
DELIVERS_BYTES_MAX = 256 << 10
"""Bytes of their names and reasons."""
REASON_WIDTH = 400
"""Characters of a reason."""
SENDS_BYTES_MAX = 256 << 10
"""Bytes of the next brokers that a hop names."""
FROM_BELOW = "it is the master, which gets all messages from below"
"""Why a master gets a message."""
ATTRIBUTES_BYTES_MAX = 256 << 10
"""Of a message that is explained."""


_Named: TypeAlias = tuple[str, int | None, Predicate]
"""A subscription: the client and the id of a live one, the name of a durable one."""
_NAMED_AT_ONCE = 1000


class _Question:
    __slots__ = ("awaited", "deadline_us", "hops", "link", "request")

    def __init__(self, link: int, request: Explain, deadline_us: int, me: str) -> None:
        self.link = link
        self.request = request
        self.deadline_us = deadline_us
        self.hops: list[Hop] = []
        self.awaited = Counter({me: 1})
        """By broker: packets that are not explained yet; below 0: its answer has overtaken the one that
        names it."""


class Explaining:
    """`routing`: table, policy and unicast, which say where a message goes."""

    def __init__(
        self,
        routing: tuple[InterestTable, RoutingPolicy, Unicast],
        database: LinkStateDatabase,
        subscriptions: ClientSubscriptions,
        home: HomeSubscriptions,
        neighbours: NeighbourLinks,
        links: Links,
        output: Output,
        work: WorkList,
    ) -> None:
        self._table, self._policy, self._unicast = routing
        self._database = database
        self._subscriptions = subscriptions
        self._home = home
        self._neighbours = neighbours
        self._links = links
        self._output = output
        self._work = work
        self._questions: dict[int, _Question] = {}
        self._asked = 0

    def begin(self, link: Link, request: Explain, now_us: int) -> Slices:
        assert link.identity is not None
        check_admin(link.identity, "see explanations")
        if (
            text_bytes(request.attributes) > ATTRIBUTES_BYTES_MAX
            or len(request.subscription) > 2000
        ):
            raise LimitExceeded(
                f"an explanation is for a message of at most {ATTRIBUTES_BYTES_MAX:,} bytes, "
                "and for a subscription whose name has at most 2,000 characters"
            )
        message = Message.from_json(request.attributes)
        self._asked += 1
        number, me = self._asked, self._database.me
        self._questions[number] = _Question(link.number, request, now_us + SILENT_US, me)
        asked = ExplainHop(number, me, "", request.attributes, request.subscription)
        yield from self._explain(asked, message)

    def hear(self, link: Link, message: ExplainHop | HopExplained) -> None:
        if isinstance(message, ExplainHop):
            asked = msgspec.structs.replace(message, came_from=link.neighbour)
            self._work.add(self._explain_hop(link, asked, Message.from_json(asked.attributes)))
        else:
            self._send(message)

    def leave(self, link: Link) -> None:
        gone = [number for number, q in self._questions.items() if q.link == link.number]
        for number in gone:
            del self._questions[number]

    @property
    def deadline_us(self) -> int | None:
        return min((q.deadline_us for q in self._questions.values()), default=None)

    def wake(self, now_us: int) -> None:
        for number, question in list(self._questions.items()):
            if question.deadline_us > now_us:
                continue
            if not question.hops:  # this broker's own report is under way
                question.deadline_us = now_us + SILENT_US
            else:
                del self._questions[number]
                self._work.add(self._answer(question))

    def _explain_hop(self, link: Link, asked: ExplainHop, message: Message) -> Slices:
        """For a neighbour, whose messages do not wait meanwhile; a route that is invalid closes its
        link."""
        try:
            yield from self._explain(asked, message)
        except PalioError as error:
            self._links.close(link, close_code(error), str(error))

    def _explain(self, asked: ExplainHop, message: Message) -> Slices:
        """Report what this broker does with the message, and ask its next hops."""
        me, hops = self._database.me, _first(self._next_hops(asked, message))
        delivers: tuple[tuple[str, str], ...] = ()
        if not asked.came_from or self._policy.is_receiver(bytes(asked.route)):
            named: list[_Named] = []
            yield from self._name_all(named)
            job = BackgroundJob(lambda: _reasons(named, message, asked.subscription))
            yield job
            delivers = job.result()
        sends = tuple((name, self._reason(name)) for name, _ in hops)
        self._send(HopExplained(asked.id, asked.asker, Hop(me, asked.came_from, delivers, sends)))
        for name, route in hops:
            on = msgspec.structs.replace(asked, came_from=me, route=msgspec.Raw(route))
            self._neighbours.say(name, on)

    def _reason(self, name: str) -> str:
        """Why a next hop gets the message."""
        is_above = self._neighbours.role(name) is NeighbourRole.MASTER
        return FROM_BELOW if is_above else self._policy.reason

    def _next_hops(self, asked: ExplainHop, message: Message) -> Hops:
        found = self._table.interfaces_of(message)
        interested = tuple(one.name for one in found if isinstance(one, NextHop | RemoteBroker))
        came_from = asked.came_from or None
        hops = self._policy.next_hops(bytes(asked.route), interested, came_from, count=0)
        return [(name, route) for name, route in hops or () if name in self._neighbours]

    def _name_all(self, named: list[_Named]) -> Slices:
        """List all subscriptions here."""
        links, last = self._links.open, 0
        while part := list(islice(self._subscriptions.after(last), _NAMED_AT_ONCE)):
            last = part[-1][0]
            named += [
                (split_key(links[one.link].publisher)[0], one.id, one.predicate)
                for _, one in part
                if one.predicate is not None and not one.durable and one.link in links
            ]
            if len(part) == _NAMED_AT_ONCE:
                yield None
        named += [(name, None, predicate) for name, predicate in self._home]

    def _send(self, told: HopExplained) -> None:
        if told.asker == self._database.me:
            self._note(told)
            return
        hop = self._unicast.hop_of.get(told.asker)
        if hop is not None:
            self._neighbours.say(hop, told)

    def _note(self, told: HopExplained) -> None:
        question = self._questions.get(told.id)
        if question is None:
            return
        question.awaited[told.hop.broker] -= 1
        question.awaited.update([name for name, _ in told.hop.sends])
        question.hops.append(told.hop)
        if not any(question.awaited.values()) or len(question.hops) > HOPS_MAX:
            del self._questions[told.id]
            self._work.add(self._answer(question))

    def _answer(self, question: _Question) -> Slices:
        silent = tuple(name for name, count in question.awaited.items() if count > 0)
        first, *others = question.hops
        request = question.request
        elsewhere = self._elsewhere(question)
        job = BackgroundJob(lambda: bounded(_stored(elsewhere, request), request.subscription, str))
        yield job
        hops = (msgspec.structs.replace(first, delivers=first.delivers + job.result()), *others)
        for part in explained_parts(request.id, hops, silent):
            self._output.say(question.link, part)

    def _elsewhere(self, question: _Question) -> list[tuple[str, str, Predicate]]:
        """Durable subscriptions at other brokers that no hop reported: broker, name, predicate."""
        told = {(hop.broker, name) for hop in question.hops for name, _ in hop.delivers}
        return [
            (fact.broker, fact.name, Predicate(self._database.durable_filters(fact)))
            for fact in self._database.durables()
            if fact.broker != self._database.me and (fact.broker, fact.name) not in told
        ]


def _reasons(
    named: list[tuple[str, int | None, Predicate]], message: Message, subscription: str
) -> tuple[tuple[str, str], ...]:
    """The subscriptions that match, and why; for `subscription` also why not."""
    names = ((who if id is None else f"{who}#{id}", predicate) for who, id, predicate in named)
    return bounded(
        (
            (name, predicate)
            for name, predicate in names
            if predicate.matches(message) or is_named(name, subscription)
        ),
        subscription,
        lambda predicate: why(predicate, message),
    )


def _stored(
    elsewhere: list[tuple[str, str, Predicate]], request: Explain
) -> Iterator[tuple[str, str]]:
    """Why durable subscriptions at other brokers match, or do not."""
    message = Message.from_json(request.attributes)
    for broker, name, predicate in elsewhere:
        matches = predicate.matches(message)
        if matches or is_named(name, request.subscription):
            reason = cut(why(predicate, message), REASON_WIDTH)
            what = f"kept here until {broker} has it" if matches else "not sent"
            yield name, f"durable, at {broker}: {what}; {reason}"


def is_named(name: str, subscription: str) -> bool:
    """Whether `subscription` is this name, with or without the identity prefix."""
    return bool(subscription) and subscription in (name, own_name(name))


def bounded(
    found: Iterable[tuple[str, T]], subscription: str, reason: Callable[[T], str]
) -> tuple[tuple[str, str], ...]:
    """Names with their reasons: not too many, and how many others there are."""
    told: list[tuple[str, str]] = []
    left, others = DELIVERS_BYTES_MAX, 0
    for name, what in found:
        if (left > 0 and len(told) < DELIVERS_MAX) or is_named(name, subscription):
            told.append((name, cut(reason(what), 2 * REASON_WIDTH)))
            left -= sum(map(text_bytes, told[-1]))
        else:
            others += 1
    if others:
        told.append(("...", f"and {others:,} other subscriptions"))
    return tuple(told)


def _first(hops: Hops) -> Hops:
    """The next hops that an explanation names; practically all."""
    left, chosen = SENDS_BYTES_MAX, []
    for hop, route in hops:
        left -= ITEM_BYTES + 2 * text_bytes(hop)
        if left > 0:
            chosen.append((hop, route))
    return chosen


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
