"""One subscription of one client, as the broker keeps it."""

from __future__ import annotations

from palio.model.predicate import Predicate
from palio.protocol.broker.access import Identity
from palio.protocol.interfaces import SharedSubscription
from palio.routing.patterns.pattern import Pattern


class ClientSubscription:
    """One subscription of one client."""

    __slots__ = (
        "bytes", "computed", "durable", "group", "id", "identity", "link", "number", "pattern", "predicate", "shared",
        "version",
    )  # fmt: skip

    def __init__(self, link: int, id: int, identity: Identity) -> None:
        self.link = link
        self.id = id
        self.identity = identity
        self.bytes = 0
        """Of its predicate or pattern, as they count (text_budget.py); a durable one's are its identity's."""
        self.computed: tuple[str, ...] = ()
        """Its expressions, as they count (expression_budget.py); of a durable one none."""
        self.predicate: Predicate | None = None
        self.pattern: Pattern | None = None
        """Either this or `predicate` is set."""
        self.durable = ""
        """The key of a durable subscription (durable_names.py); empty for others."""
        self.version = 0
        """Of a durable subscription: a successor with the same name has another one."""
        self.group = ""
        """With a group, other clients may take part in it."""
        self.shared: SharedSubscription | None = None
        """The group, if it is live."""
        self.number = 0
        """Ascends; lists are read in its order."""
