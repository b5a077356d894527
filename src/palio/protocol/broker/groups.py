"""Groups: clients of one identity that share a subscription.

A group is one subscription with several members: each message goes to one of them. So all members have
the same predicate. Whoever comes with another one is refused and told the group's. A live group is over when
its last member leaves; then the name may be used with any predicate. A group of a durable subscription is
over when that is forgotten (durable.py).
"""

from __future__ import annotations

from palio.model.predicate import Predicate
from palio.protocol.interfaces import SharedSubscription
from palio.protocol.wire.codes import RefusalCode
from palio.protocol.wire.refusals import RequestRefused

_SHOWN_MAX = 200


class LiveGroups:
    def __init__(self) -> None:
        self._predicates: dict[SharedSubscription, Predicate] = {}
        self._members: dict[SharedSubscription, int] = {}

    def join(self, identity: str, group: str, predicate: Predicate) -> SharedSubscription:
        """Count a new member. Raises RequestRefused if the group has another predicate."""
        shared = SharedSubscription(identity, group)
        known = self._predicates.setdefault(shared, predicate)
        if known != predicate:
            raise another_predicate(f"the group {group!r}", str(known))
        self._members[shared] = self._members.get(shared, 0) + 1
        return shared

    def leave(self, shared: SharedSubscription) -> None:
        """A member leaves."""
        self._members[shared] -= 1
        if not self._members[shared]:
            del self._members[shared], self._predicates[shared]


def another_predicate(group: str, predicate: str) -> RequestRefused:
    """The error for a new member of a group that has this predicate, and not the member's."""
    return RequestRefused(
        RefusalCode.CONFLICT,
        f"{group} has the predicate {shown_predicate(predicate)}; all members of a group have the same",
        remedy="give this subscription the group's predicate, or another group",
    )


def shown_predicate(text: str) -> str:
    """A predicate in an error; a long one is cut."""
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 3] + "..."
