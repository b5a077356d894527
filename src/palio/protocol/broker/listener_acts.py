"""What listeners of other protocols ask of the core, besides what frames can say.

vouch            the listener knows who the client is: from before a restart, so there is no token
forget_durable   a client is gone for good, with its durable subscriptions
last_values      what MQTT calls retained messages
after_commit     something of the listener's is stored, and a promise depends on it
"""

from __future__ import annotations

from collections.abc import Callable

from palio.protocol.broker.access import Forbidden
from palio.protocol.broker.assembly import Parts
from palio.protocol.broker.durable import forget_of
from palio.protocol.broker.durable_names import DurableName
from palio.protocol.broker.effects import CommittedAct
from palio.protocol.durability.last_values import LastValues
from palio.protocol.wire.codes import CloseCode


class ListenerActs:
    """The host calls `take` of the broker in the same turn."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def vouch(self, link: int, identity: str) -> None:
        """The client of a new connection has this identity; it need not say a token."""
        found = self._parts.links.open.get(link)
        if found is None:
            return
        try:
            self._parts.clients.vouch(found, identity)
        except Forbidden as error:
            self._parts.links.close(found, CloseCode.DENIED, str(error))

    def forget_durable(self, identity: str, durable: str, group: str, now_us: int) -> None:
        """End a durable subscription whose clients are gone for good; no error if there is none."""
        self._parts.data_path.flush()
        name = DurableName(identity, durable, group)
        forget_of(self._parts.subscriptions.home, name, now_us)

    @property
    def last_values(self) -> LastValues:
        return self._parts.data_path.retaining.values

    def after_commit(self, call: Callable[[], None]) -> None:
        """Commit soon, and `call` when what is pending now is safe. It must not call the broker."""
        self._parts.messages.administration.note_act(CommittedAct(0, None, None, call))
