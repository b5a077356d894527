"""Requests about the whole broker or network: explanations, topology, quenching, forgetting a broker, queues.
All but quenching need the grant `admin`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias, cast

import msgspec

from palio.protocol.broker.access import Access, check_admin
from palio.protocol.broker.effects import CommittedAct, Output
from palio.protocol.broker.explain import Explaining
from palio.protocol.broker.flooding import Flooding
from palio.protocol.broker.links import Link
from palio.protocol.broker.orphans import Orphans
from palio.protocol.broker.quench import Quenching
from palio.protocol.broker.queue_acts import QueueActs
from palio.protocol.broker.queue_lists import QueueLists
from palio.protocol.broker.scheduler import Slices, WorkList
from palio.protocol.policies.link_state import LinkStateDatabase
from palio.protocol.wire.control import Done, Explain, Forget, Quench, Show
from palio.protocol.wire.parts import shown_parts
from palio.protocol.wire.queue_control import ListQueues, ListSubscriptions, QueueRequest

OperationRequest: TypeAlias = Quench | Explain | Show | Forget


class Operations:
    def __init__(
        self,
        explaining: Explaining,
        quenching: Quenching,
        database: LinkStateDatabase,
        flooding: Flooding,
        queues: tuple[QueueLists, QueueActs, Orphans],
        output: Output,
        work: WorkList,
    ) -> None:
        self.explaining = explaining
        self.quenching = quenching
        self._database = database
        self._flooding = flooding
        self._lists, self._acts, self.orphans = queues
        self._output = output
        self._work = work

    def answer(self, link: Link, request: OperationRequest, now_us: int) -> Slices:
        assert link.identity is not None
        if isinstance(request, Quench):
            yield from self.quenching.ask(link, request, now_us)
        elif isinstance(request, Explain):
            yield from self.explaining.begin(link, request, now_us)
        elif isinstance(request, Show):
            check_admin(link.identity, "see the network")
            places = self._database.places()
            if request.memory:
                known = self._database.memories()
                known[self._database.me] = self._database.own.memory_now()
                places = tuple(
                    msgspec.structs.replace(place, memory=known[place.broker]) for place in places
                )
            for part in shown_parts(request.id, places):
                self._output.say(link.number, part)
        else:
            check_admin(link.identity, "forget a broker")
            self._flooding.forget(request.broker, now_us)
            self._output.say(link.number, Done(request.id))

    def answer_queues(self, link: Link, request: QueueRequest, now_us: int) -> Slices:
        """Answer a request about queues or subscriptions."""
        if isinstance(request, ListQueues | ListSubscriptions):
            self._lists.answer(link, request, now_us)
        else:
            yield from self._acts.act(link, request, now_us)

    def acted(self, act: Hashable) -> None:
        """Something that was asked for is committed."""
        self._acts.acted(cast(CommittedAct, act))

    def follow(self, access: Access, now_us: int) -> None:
        """Identities and grants are new, or the broker starts."""
        self._acts.access = access
        self.orphans.follow(access, now_us)

    def leave(self, link: Link) -> None:
        """Forget what a client that left has asked for."""
        self.explaining.leave(link)
        self.quenching.leave(link)

    @property
    def deadline_us(self) -> int | None:
        known = (
            self.quenching.deadline_us,
            self.explaining.deadline_us,
            self.orphans.deadline_us,
        )
        return min((at for at in known if at is not None), default=None)

    def wake(self, now_us: int) -> None:
        self.explaining.wake(now_us)
        if self.quenching.is_due(now_us):
            self._work.add(self.quenching.tell(now_us))
        self.orphans.wake(now_us)
