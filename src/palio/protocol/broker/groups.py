"""Live groups: clients of one identity that share a subscription.

A group is one subscription with several members: each message goes to one of them. So all members have
the same predicate. Whoever comes with another one is refused and told the group's. The group is over when
its last member leaves; then the name may be used with any predicate.
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
            text = str(known)
            shown = text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 3] + "..."
            raise RequestRefused(
                RefusalCode.CONFLICT,
                f"the group {group!r} has the predicate {shown}; all members of a group have the same",
                remedy="give this subscription the group's predicate, or another group",
            )
        self._members[shared] = self._members.get(shared, 0) + 1
        return shared

    def leave(self, shared: SharedSubscription) -> None:
        """A member leaves."""
        self._members[shared] -= 1
        if not self._members[shared]:
            del self._members[shared], self._predicates[shared]
