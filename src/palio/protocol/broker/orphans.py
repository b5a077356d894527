"""Durable subscriptions whose identity is no longer in the configuration end after a grace.

    follow ─▶ an owner is gone: since when, stored ──(grace)──▶ wake ─▶ its subscriptions end
              it is back: forgotten

The time counts from the moment when a broker first noticed, across restarts. Without a grace they stay.
"""

from __future__ import annotations

import msgspec

from palio.protocol.broker.access import Access
from palio.protocol.broker.durable import HomeSubscriptions
from palio.protocol.broker.effects import CommittedAct, Notice
from palio.protocol.broker.purging import purged
from palio.protocol.broker.scheduler import Slices, WorkList
from palio.protocol.durability.administration import QueueAdministration
from palio.protocol.durability.storage import Store, decoded
from palio.protocol.wire.codes import EndCode

_KEY = "broker/orphans"
_decoder = msgspec.msgpack.Decoder(dict[str, int])


class Orphans:
    """`grace_us`: how long such subscriptions stay; None: for ever."""

    def __init__(
        self,
        store: Store,
        home: HomeSubscriptions,
        administration: QueueAdministration,
        grace_us: int | None,
        work: WorkList,
    ) -> None:
        self._store = store
        self._home = home
        self._administration = administration
        self._grace_us = grace_us
        stored = store.get(_KEY)
        self._gone: dict[str, int] = {} if stored is None else decoded(_decoder, _KEY, stored)
        """Identities, and since when they are gone."""
        self._ending: set[str] = set()
        self._work = work

    def follow(self, access: Access, now_us: int) -> None:
        """The configuration is new, or the broker starts."""
        known = {identity.name for identity in access.identities()}
        owners = dict.fromkeys(self._home.names.owners())
        self._ending &= owners.keys() - known
        before, self._gone = self._gone, {}
        for name in owners:
            if name not in known:
                self._gone[name] = before.get(name, now_us)
                self._note(name, now_us)
            elif name in before:
                self._say("identity is back: its durable subscriptions stay", identity=name)
        if self._gone != before:
            self._put()

    @property
    def deadline_us(self) -> int | None:
        if self._grace_us is None:
            return None
        waiting = [since for name, since in self._gone.items() if name not in self._ending]
        return min(waiting) + self._grace_us if waiting else None

    def wake(self, now_us: int) -> None:
        """Begin to end what has waited for long enough."""
        due_us = self.deadline_us
        if due_us is None or due_us > now_us:
            return
        assert self._grace_us is not None
        due = [
            name
            for name, since in self._gone.items()
            if name not in self._ending and since + self._grace_us <= now_us
        ]
        self._ending.update(due)
        self._work.add(self._end(due, now_us))

    def _end(self, identities: list[str], now_us: int) -> Slices:
        for identity in identities:
            for key in self._home.names.owned(identity):
                version = self._home.version(key)
                if identity not in self._ending or not version:
                    continue  # it is back, or the subscription has ended
                name = self._home.names.shown(key)
                count = yield from purged(self._home, self._administration, key)
                is_there = name == self._home.names.shown(key)  # else it has moved
                if is_there and identity in self._ending and self._home.version(key) == version:
                    reason = f"identity {identity!r} was removed from the configuration"
                    self._home.end(key, EndCode.DENIED, reason, now_us)
                    self._say("durable subscription ended: its identity is gone", is_warning=True,
                              queue=name, identity=identity, messages=count)  # fmt: skip
            if identity in self._ending:
                self._ending.discard(identity)
                self._gone.pop(identity, None)
                self._put()

    def _note(self, identity: str, now_us: int) -> None:
        count = len(self._home.names.owned(identity))
        if self._grace_us is None:
            end = "never"
        else:
            left_us = max(0, self._gone[identity] + self._grace_us - now_us)
            end = f"in {left_us / 3_600_000_000:.1f} h"
        self._say("identity is gone: its durable subscriptions end", is_warning=True,
                  identity=identity, subscriptions=count, end=end)  # fmt: skip

    def _say(self, event: str, *, is_warning: bool = False, **fields: object) -> None:
        act = CommittedAct(0, None, Notice(event, fields, is_warning))
        self._administration.note_act(act)

    def _put(self) -> None:
        self._store.put(_KEY, msgspec.msgpack.encode(self._gone))
