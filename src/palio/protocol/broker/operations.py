"""Requests about the whole network: explanations, topology, quenching, forgetting a broker. All but
quenching need the grant `admin`."""

from __future__ import annotations

from typing import TypeAlias

from palio.protocol.broker.access import check_admin
from palio.protocol.broker.effects import Output
from palio.protocol.broker.explain import Explaining
from palio.protocol.broker.flooding import Flooding
from palio.protocol.broker.links import Link
from palio.protocol.broker.quench import Quenching
from palio.protocol.policies.link_state import LinkStateDatabase
from palio.protocol.wire.control import Done, Explain, Forget, Quench, Show
from palio.protocol.wire.parts import shown_parts

OperationRequest: TypeAlias = Quench | Explain | Show | Forget


class Operations:
    def __init__(
        self,
        explaining: Explaining,
        quenching: Quenching,
        database: LinkStateDatabase,
        flooding: Flooding,
        output: Output,
    ) -> None:
        self.explaining = explaining
        self.quenching = quenching
        self._database = database
        self._flooding = flooding
        self._output = output

    def answer(self, link: Link, request: OperationRequest, now_us: int) -> None:
        assert link.identity is not None
        if isinstance(request, Quench):
            self.quenching.ask(link, request, now_us)
        elif isinstance(request, Explain):
            self.explaining.begin(link, request, now_us)
        elif isinstance(request, Show):
            check_admin(link.identity, "see the network")
            for part in shown_parts(request.id, self._database.places()):
                self._output.say(link.number, part)
        else:
            check_admin(link.identity, "forget a broker")
            self._flooding.forget(request.broker, now_us)
            self._output.say(link.number, Done(request.id))

    def leave(self, link: Link) -> None:
        """Forget what a client that left has asked for."""
        self.explaining.leave(link)
        self.quenching.leave(link)

    @property
    def deadline_us(self) -> int | None:
        known = (self.quenching.deadline_us, self.explaining.deadline_us)
        return min((at for at in known if at is not None), default=None)

    def wake(self, now_us: int) -> None:
        self.explaining.wake(now_us)
        self.quenching.wake(now_us)
