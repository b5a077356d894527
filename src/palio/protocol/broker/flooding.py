"""Link-state flooding: how brokers learn of each other's links, interests and durable subscriptions.

    a link is up          Digest both ways; then the LinkStates that the other end lacks
    a state changes       LinkStates to all neighbours; received ones to all but their sender
    a base is missing     Missing; the answer is the whole LinkState

The durable subscriptions of other brokers are in the store under `known/<broker>`, so a restart keeps
them. They are put when they change, and committed with the next seal of the message store.
"""

from __future__ import annotations

import msgspec

from palio.protocol.broker.effects import Output
from palio.protocol.broker.links import Link
from palio.protocol.broker.neighbours import NeighbourLinks
from palio.protocol.broker.remote_durable import RemoteSubscriptions
from palio.protocol.durability.storage import Store, decoded
from palio.protocol.policies.link_state import LinkStateDatabase
from palio.protocol.wire.control import Digest, LinkState, LinkStates, Missing
from palio.protocol.wire.frames import control_frame

_KNOWN = "known/"
_state_decoder = msgspec.msgpack.Decoder(LinkState)


class Flooding:
    def __init__(
        self,
        database: LinkStateDatabase,
        neighbours: NeighbourLinks,
        remote: RemoteSubscriptions,
        output: Output,
        store: Store,
    ) -> None:
        self._database = database
        self._remote = remote
        self._neighbours = neighbours
        self._output = output
        self._store = store

    def restore(self, now_us: int) -> None:
        """Re-register the stored durable subscriptions of other brokers."""
        for key, kept in self._store.scan(_KNOWN):
            self._database.restore(decoded(_state_decoder, key, kept))
        for fact in self._database.durables():
            if fact.broker != self._database.me:
                self._remote.learn(fact, now_us)

    def greet(self, link: Link) -> None:
        """Send a new neighbour the digest of this database."""
        self._output.say(link.number, self._database.digest())
        self._database.set_links(self._neighbours.weights)

    def leave(self) -> None:
        """A link to a neighbour is down."""
        self._database.set_links(self._neighbours.weights)

    def answer(self, link: Link, message: Digest | Missing) -> None:
        """Send the link states that a neighbour lacks."""
        states = (
            self._database.newer_than(message)
            if isinstance(message, Digest)
            else self._database.whole(message.brokers)
        )
        for some in states:
            self._output.say(link.number, some)

    def hear(self, link: Link, message: LinkStates, now_us: int) -> None:
        """Process link states of a neighbour, and flood those that are new. The states before an
        invalid one are processed like any others: the neighbour would not send them again."""
        new, missing = [], []
        try:
            for state in message.states:
                heard = self._database.hear(state, now_us)
                if heard.is_missing:
                    missing.append(state.broker)
                if heard.is_new:
                    new.append(state)
                if heard.removed or heard.added:
                    self._keep(state.broker)
                    gone = [(fact, False) for fact in heard.removed]
                    self._remote.change(gone + [(fact, True) for fact in heard.added], now_us)
        finally:
            if missing:
                self._output.say(link.number, Missing(tuple(missing)))
            if new:
                self._flood(LinkStates(tuple(new)), link.neighbour)

    def forget(self, broker: str, now_us: int) -> None:
        """Remove the durable subscriptions of a broker that will not return."""
        state, facts = self._database.forget(broker, now_us)
        self._keep(broker)
        self._flood(LinkStates((state,)))
        self._remote.change([(fact, False) for fact in facts], now_us)

    def announce(self, now_us: int) -> None:
        """Flood what has changed at this broker."""
        state = self._database.news(now_us)
        if state is not None:
            self._flood(LinkStates((state,)))

    def _flood(self, states: LinkStates, but: str = "") -> None:
        self._neighbours.write_all(control_frame(states), but)

    def _keep(self, broker: str) -> None:
        """Store the durable subscriptions of another broker."""
        facts = self._database.facts(broker)
        self._store.put(f"{_KNOWN}{broker}", msgspec.msgpack.encode(facts))
