"""The durable subscriptions of other brokers, in the store, so that a restart keeps them.

    known/<broker>          epoch and number of the link state whose facts are all here
    known/<broker>/<name>   a durable subscription there

A fact is put or deleted in the same turn in which the message store learns of it, so both are in one commit.
The number follows when all facts of a link state are applied: after a crash in between, the older number
makes neighbours send the complete state, and what is missing is applied then.
"""

from __future__ import annotations

import msgspec

from palio.protocol.durability.storage import DamagedStore, Store, decoded
from palio.protocol.policies.broker_record import DurableFact
from palio.protocol.wire.control import Durable, LinkState

_FACTS = "known/"
_state_decoder = msgspec.msgpack.Decoder(LinkState)
_durable_decoder = msgspec.msgpack.Decoder(Durable)
_encode = msgspec.msgpack.Encoder().encode


class StoredFacts:
    def __init__(self, store: Store) -> None:
        self._store = store

    def states(self) -> list[LinkState]:
        """What is stored, as link states that have durable subscriptions only."""
        heads: dict[str, LinkState] = {}
        durable: dict[str, dict[str, Durable]] = {}
        for key, value in self._store.scan(_FACTS):
            broker, _, name = key.removeprefix(_FACTS).partition("/")
            if name:
                durable.setdefault(broker, {})[name] = decoded(_durable_decoder, key, value)
            else:
                heads[broker] = decoded(_state_decoder, key, value)
        for broker in durable:
            if broker not in heads:
                key = f"{_FACTS}{broker}"
                raise DamagedStore(
                    f"the durable subscriptions of {broker!r} have no {key}", key=key
                )
        return [
            msgspec.structs.replace(head, durable=durable.get(broker, {}))
            for broker, head in heads.items()
        ]

    def begin(self, broker: str, epoch: str) -> None:
        """Facts of a broker follow."""
        if self._store.get(f"{_FACTS}{broker}") is None:
            self.finish(LinkState(broker, epoch, 1, 0, (), is_faded=True))

    def add(self, fact: DurableFact) -> None:
        self._store.put(f"{_FACTS}{fact.broker}/{fact.name}", _encode(fact.durable))

    def remove(self, fact: DurableFact) -> None:
        self._store.delete(f"{_FACTS}{fact.broker}/{fact.name}")

    def finish(self, state: LinkState) -> None:
        """All facts of this link state are here."""
        head = msgspec.structs.replace(state, links=(), wanted=(), durable={}, is_faded=True)
        self._store.put(f"{_FACTS}{state.broker}", _encode(head))
