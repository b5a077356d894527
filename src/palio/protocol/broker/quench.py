"""Quenching: publishers learn what subscribers want, and need not send anything else.

A publisher that asks gets the reduced filters of all live and durable subscriptions of the network,
limited to what it may publish, and without the constants of filters that it may not subscribe to itself
(disclosure.py). They are sent at once, then on change, at most every QUENCH_US. With more than
WANTED_MAX filters or WANTED_BYTES_MAX it is told to send everything. While nobody asks or nothing changes,
nothing is computed and there is no deadline. Reducing takes long, so it is a job of the host; its
result is kept until something changes.
"""

from __future__ import annotations

from palio.model.predicate import Filter, Predicate
from palio.model.reduction import reduce
from palio.protocol.broker.access import Identity, check_quench, of_concern
from palio.protocol.broker.disclosure import Disclosure, disclosed
from palio.protocol.broker.effects import BackgroundJob, Output
from palio.protocol.broker.links import Link
from palio.protocol.broker.scheduler import Slices
from palio.protocol.policies.demand import NetworkDemand
from palio.protocol.policies.link_state import LinkStateDatabase
from palio.protocol.wire.control import Done, Quench, Wanted
from palio.protocol.wire.parts import text_bytes
from palio.routing.interest_table import InterestTable
from palio.routing.router import Router

QUENCH_US = 200_000
WANTED_MAX = 1000
"""The most filters that are sent to a publisher."""
WANTED_BYTES_MAX = 256 << 10
"""The most bytes of their text."""


class Quenching:
    def __init__(
        self,
        router: Router,
        table: InterestTable,
        database: LinkStateDatabase,
        output: Output,
        disclosure: Disclosure,
    ) -> None:
        self._router = router
        self._table = table
        self._database = database
        self._demand = NetworkDemand(database)
        self._output = output
        self._disclosure = disclosure
        self.told: dict[int, tuple[Link, str | None]] = {}
        """Links of publishers that asked, and what each was told last."""
        self.deadline_us: int | None = None
        self._known = (0, 0)
        """The versions of the table and of the database that were looked at last."""
        self._next_us = 0
        """Not before then again."""
        self._texts: dict[Identity, str | None] = {}
        """What publishers of each identity are told."""
        self._texts_of = (-1, -1)
        """The versions that `_texts` is about."""

    def ask(self, link: Link, request: Quench, now_us: int) -> Slices:
        """A client turns quenching on or off."""
        assert link.identity is not None
        check_quench(link.identity)
        self._output.say(link.number, Done(request.id))
        self.leave(link)
        if request.on:
            self.told[link.number] = link, ""
            self._known = self._table.version, self._database.version
            yield from self.tell(now_us)

    def leave(self, link: Link) -> None:
        self.told.pop(link.number, None)

    def follow(self, now_us: int) -> None:
        """Notice changes of subscriptions; to be called after every change while anybody is told."""
        known = self._table.version, self._database.version
        if known != self._known:
            self._known = known
            if self.deadline_us is None:
                self.deadline_us = max(now_us, self._next_us)

    def is_due(self, now_us: int) -> bool:
        return self.deadline_us is not None and now_us >= self.deadline_us

    def tell(self, now_us: int) -> Slices:
        """Tell all who asked, if it is not what they know."""
        self.deadline_us, self._next_us = None, now_us + QUENCH_US
        identities = [link.identity for link, _ in self.told.values()]
        asking = dict.fromkeys(one for one in identities if one is not None)
        if not asking:
            return
        if self._texts_of != self._known:
            self._texts_of, self._texts = self._known, {}
        texts = self._texts
        new = [identity for identity in asking if identity not in texts]
        if new:
            filters = self._filters()
            job = BackgroundJob(lambda: _texts(filters, new, self._disclosure))
            yield job
            texts.update(job.result())
        for link, told in list(self.told.values()):
            text = texts.get(link.identity, told) if link.identity is not None else told
            if told != text:
                self.told[link.number] = link, text
                self._output.say(link.number, Wanted(text))

    def _filters(self) -> list[Filter] | None:
        """The filters of all subscriptions; None: too many."""
        others = self._demand.reduced()
        if others is None:
            return None
        filters: dict[Filter, None] = dict.fromkeys(self._router.subscriptions)
        for fact in self._database.durables():
            filters.update(dict.fromkeys(self._database.durable_filters(fact)))
            if len(filters) > WANTED_MAX:
                return None
        filters.update(dict.fromkeys(others))
        return None if len(filters) > WANTED_MAX else list(filters)


def _texts(
    filters: list[Filter] | None, asking: list[Identity], level: Disclosure
) -> dict[Identity, str | None]:
    """What the publishers of each identity are told; None: to send everything."""
    if filters is None:
        return dict.fromkeys(asking)
    wanted = list(reduce(Predicate(tuple(filters))))
    return {identity: _text(wanted, identity, level) for identity in asking}


def _text(wanted: list[Filter], identity: Identity, level: Disclosure) -> str | None:
    shown = disclosed(of_concern(identity, wanted), identity, level)
    if shown is None:
        return None
    text = str(reduce(Predicate(tuple(shown))))
    return text if text_bytes(text) <= WANTED_BYTES_MAX else None
