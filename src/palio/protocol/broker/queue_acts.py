"""What operators do with queues: pause, purge, end, move. Each act is committed before it is answered.

    request ─▶ checked ─▶ changed, in slices ─▶ note_act ──(commit)──▶ acted: answer, log line

A queue with many messages is emptied in slices (scheduler.py), so that no turn takes long.
"""

from __future__ import annotations

from collections.abc import Callable

from palio.protocol.broker.access import Access, Identity, check_admin, check_subscribe
from palio.protocol.broker.durable import HomeSubscriptions
from palio.protocol.broker.effects import BackgroundJob, CommittedAct, Notice, Output
from palio.protocol.broker.links import Link, Links
from palio.protocol.broker.purging import purged
from palio.protocol.broker.scheduler import Slices
from palio.protocol.broker.subscriptions import ClientSubscriptions
from palio.protocol.durability.administration import QueueAdministration
from palio.protocol.wire.codes import EndCode, RefusalCode
from palio.protocol.wire.control import ControlMessage, Done
from palio.protocol.wire.queue_control import (
    EndQueue,
    MoveQueue,
    PauseQueue,
    Purged,
    PurgeQueue,
    QueueAct,
)
from palio.protocol.wire.refusals import RequestRefused, refused


class QueueActs:
    """`access`: the identities of the configuration."""

    def __init__(
        self,
        home: HomeSubscriptions,
        subscriptions: ClientSubscriptions,
        administration: QueueAdministration,
        flush: Callable[[], None],
        links: Links,
        output: Output,
        access: Access,
    ) -> None:
        """`flush` deals with the messages that have arrived."""
        self._home = home
        self._subscriptions = subscriptions
        self._administration = administration
        self._flush = flush
        self._links = links
        self._output = output
        self.access = access

    def act(self, link: Link, request: QueueAct, now_us: int) -> Slices:
        assert link.identity is not None
        check_admin(link.identity, _DEEDS[type(request)])
        self._flush()
        if isinstance(request, PauseQueue):
            self._administration.pause(self._home.find(request.name), request.is_paused)
            event = "queue paused" if request.is_paused else "queue resumed"
            self._note(link, Done(request.id), event, queue=request.name)
        elif isinstance(request, PurgeQueue):
            count = yield from purged(
                self._home, self._administration, self._home.find(request.name)
            )
            self._note(link, Purged(request.id, count), "queue purged", queue=request.name,
                       messages=count)  # fmt: skip
        elif isinstance(request, EndQueue):
            self._end(link, request, now_us)
        else:
            yield from self._move(link, request)

    def _end(self, link: Link, request: EndQueue, now_us: int) -> None:
        key = self._home.find(request.name)
        reason = f"operator {_by(link)} has ended it for good"
        count = self._home.end(key, EndCode.OPERATOR, reason, now_us)
        self._note(link, Purged(request.id, count), "durable subscription ended",
                   queue=request.name, messages=count)  # fmt: skip

    def _move(self, link: Link, request: MoveQueue) -> Slices:
        key = self._home.find(request.name)
        owner = self._identity(request.identity)
        predicate = self._home.predicate(key)
        job = BackgroundJob(lambda: check_subscribe(owner, predicate))
        yield job
        job.result()
        key = self._home.find(request.name)  # it may have ended, or moved
        version = self._home.version(key)
        reason = f"operator {_by(link)} has given it to identity {request.identity!r}"
        self._home.begin_move(key, owner.name)

        def finish() -> ControlMessage | None:
            if not self._home.finish_move(key, version, owner.name):
                return refused(request.id, self._home.unknown(request.name))
            for consumer in self._subscriptions.consumers(key):
                self._subscriptions.end(consumer.link, consumer.id, EndCode.MOVED, reason)
            return None

        self._note(link, Done(request.id), "durable subscription moved", finish,
                   queue=request.name, identity=owner.name)  # fmt: skip

    def _identity(self, name: str) -> Identity:
        for identity in self.access.identities():
            if identity.name == name:
                return identity
        text = repr(name) if len(name) <= 100 else repr(name[:97]) + "..."
        raise RequestRefused(
            RefusalCode.UNKNOWN,
            f"there is no identity {text} in the configuration of this broker",
            remedy="add it there and reload it with SIGHUP, or name another one",
        )

    def _note(
        self,
        link: Link,
        answer: ControlMessage,
        event: str,
        finish: Callable[[], ControlMessage | None] | None = None,
        **fields: object,
    ) -> None:
        notice = Notice(event, {**fields, "by": _by(link)})
        self._administration.note_act(CommittedAct(link.number, answer, notice, finish))

    def acted(self, act: CommittedAct) -> None:
        """An act is committed."""
        failure = act.finish() if act.finish is not None else None
        answer = failure or act.answer
        if act.notice is not None and failure is None:
            self._output.log(act.notice)
        if answer is not None and act.link in self._links.open:
            self._output.say(act.link, answer)


def _by(link: Link) -> str:
    """Who acts: identity and name of the client."""
    return link.publisher


_DEEDS = {
    PauseQueue: "pause or resume a queue",
    PurgeQueue: "purge a queue",
    EndQueue: "end durable subscriptions of others",
    MoveQueue: "move durable subscriptions",
}
