"""GET /v1/socket: publish and subscribe over one WebSocket, by JSON messages.

    client   {"op": "publish", "id": 1, "attributes": {...}, "body": "...", "durable": true}
             {"op": "subscribe", "id": 2, "where": "...", "durable": "desk", "group": "g", "credit": 100}
             {"op": "ack", "id": 2, "positions": [17, 18]}      {"op": "unsubscribe", "id": 2, "forget": false}
             {"op": "nack", "id": 2, "positions": [19], "delay": 1.5}
             {"op": "reject", "id": 2, "positions": [20], "reason": "..."}
    broker   {"op": "published", "id": 1}                       {"op": "subscribed", "id": 2, "took_over": false}
             {"op": "message", "id": 2, "position": 17, "again": true, "deliveries": 2, "message": {...}}
             {"op": "unsubscribed", "id": 2}                    {"op": "error", "id": 2, "problem": {...}}

`id` is a number that the client chooses: of a request, or of a subscription as long as that lasts. At most
`credit` messages of a durable subscription are on their way or not acknowledged. A client that does not read
gets nothing more: messages wait at the broker within its bounds. Whoever comes with the cookie of a login only
reads: it acknowledges and gives back, and does not reject, since a dead letter is published. `socket_frames` has
the frames.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec

from palio.errors import InvalidValue, PalioError, RefusedByBroker
from palio.net.client.subscription import Subscription
from palio.net.listeners.http.api import CREDIT, CREDIT_MAX, Api, credential, is_read_only
from palio.net.listeners.http.clients import Credential, StreamClient
from palio.net.listeners.http.exchange import Exchange
from palio.net.listeners.http.json_form import (
    MessageForm,
    Posted,
    as_line,
    check_names,
    check_times,
    form_of,
    read_form,
)
from palio.net.listeners.http.problems import Problem, as_problem
from palio.net.listeners.http.room import Room
from palio.net.listeners.http.socket_frames import SocketFrames
from palio.net.listeners.http.subscribing import subscribe
from palio.net.monitoring.logs import log_bug

_AT_ONCE = 32
_REQUESTS_MAX, _REQUESTS_BYTES_MAX = 256, 8 << 20
"""Requests that are not answered yet, such as messages to be stored; then nothing more is read."""
_SETTLED_MAX = 10_000
_ID_MAX = 1 << 53


class _Publish(MessageForm, tag_field="op", tag="publish", kw_only=True):
    id: int
    durable: bool = True


class _Subscribe(msgspec.Struct, tag_field="op", tag="subscribe", forbid_unknown_fields=True):
    id: int
    where: str
    durable: str | None = None
    since: str | None = None
    group: str | None = None
    full: str | None = None
    credit: int = CREDIT
    deliveries_max: int | None = None
    last: bool = False


class _Ack(msgspec.Struct, tag_field="op", tag="ack", forbid_unknown_fields=True):
    id: int
    positions: list[int]


class _Nack(msgspec.Struct, tag_field="op", tag="nack", forbid_unknown_fields=True):
    id: int
    positions: list[int]
    delay: float = 0.0


class _Reject(msgspec.Struct, tag_field="op", tag="reject", forbid_unknown_fields=True):
    id: int
    positions: list[int]
    reason: str = ""


class _Unsubscribe(msgspec.Struct, tag_field="op", tag="unsubscribe", forbid_unknown_fields=True):
    id: int
    forget: bool = False


_decode = msgspec.json.Decoder(_Publish | _Subscribe | _Ack | _Nack | _Reject | _Unsubscribe).decode


async def serve(exchange: Exchange, api: Api) -> None:
    request = exchange.request
    request.parameters()
    frames = SocketFrames(exchange, api.settings)  # raises Problem if it asks for no WebSocket
    who = credential(request, api, takes_cookie=True)
    async with api.clients.stream(who, request.peer) as stream:
        await frames.open()
        conversation = _Conversation(frames, api, who, stream, is_read_only(request))
        try:
            await conversation.run()
        finally:
            await conversation.end()


class _Conversation:
    def __init__(
        self,
        frames: SocketFrames,
        api: Api,
        who: Credential,
        stream: StreamClient,
        is_read_only: bool,
    ) -> None:
        self._frames, self._api, self._who, self._stream = frames, api, who, stream
        self._is_read_only = is_read_only
        self._subscriptions: dict[int, tuple[Subscription, asyncio.Task[None]]] = {}
        self._opening: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = Room(_REQUESTS_MAX, _REQUESTS_BYTES_MAX)

    async def run(self) -> None:
        """Until the other end closes."""
        while (text := await self._frames.receive()) is not None:
            try:
                await self._take(text)
            except PalioError as error:
                await self._say_error(_id_of(text), error)

    async def end(self) -> None:
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._frames.close()

    # ---- what the client says

    async def _take(self, text: bytes) -> None:
        try:
            said = _decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise InvalidValue(f"it is no message of this protocol: {error}") from None
        check_names(text)
        if not 0 <= said.id <= _ID_MAX:
            raise InvalidValue("id is a number from 0 to 2^53")
        match said:
            case _Publish():
                self._check_may_write()
                posted = read_form(said, self._api.limits)
                check_times(posted, said.durable)
                await self._answer(text, self._publish(said.id, posted, said.durable))
            case _Subscribe():
                self._check_new(said.id)
                self._opening.add(said.id)
                await self._answer(text, self._subscribe(said))
            case _Ack() | _Nack() | _Reject():
                await self._settle(said, self._subscription(said.id)[0])
            case _Unsubscribe():
                if said.forget:
                    self._check_may_write()
                subscription, task = self._subscription(said.id)
                del self._subscriptions[said.id]
                task.cancel()
                await self._answer(text, self._unsubscribe(said, subscription))

    async def _settle(self, said: _Ack | _Nack | _Reject, subscription: Subscription) -> None:
        if len(said.positions) > _SETTLED_MAX:
            raise InvalidValue(f"at most {_SETTLED_MAX:,} positions at once")
        match said:
            case _Ack():
                await subscription.acknowledge(said.positions)
            case _Nack():
                await subscription.nack(said.positions, said.delay)
            case _Reject():
                self._check_may_write()
                await subscription.reject(said.positions, said.reason)

    def _check_may_write(self) -> None:
        if self._is_read_only:
            reason = "a login is good for reading: publish, reject, and end durable subscriptions, with a token"
            raise Problem(403, "read_only", reason)

    def _check_new(self, id: int) -> None:
        if id in self._subscriptions or id in self._opening:
            raise Problem(409, "conflict", f"there is a subscription {id} already")

    def _subscription(self, id: int) -> tuple[Subscription, asyncio.Task[None]]:
        found = self._subscriptions.get(id)
        if found is None:
            raise Problem(404, "unknown", f"there is no subscription {id}")
        return found

    async def _answer(self, text: bytes, work: Coroutine[Any, Any, None]) -> None:
        """Do what a request asks for, when there is room for it."""
        try:
            await self._room.take(len(text))
        except BaseException:
            work.close()
            raise
        self._start(work).add_done_callback(lambda _: self._room.give(len(text)))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception) and not isinstance(error, ConnectionError):  # it is gone
            log_bug("a WebSocket met a bug", error)

    # ---- what is done

    async def _publish(self, id: int, posted: Posted, durable: bool) -> None:
        try:
            async with self._api.clients.shared(self._who) as client:
                await client.publish(
                    posted.attributes, posted.body, durable=durable, headers=posted.headers
                )
        except RefusedByBroker as error:
            await self._say_error(id, Problem(403, error.code or "rejected", error.detail))
        except PalioError as error:
            await self._say_error(id, error)
        else:
            self._api.counts.published += 1
            await self._say({"op": "published", "id": id})

    async def _subscribe(self, said: _Subscribe) -> None:
        try:
            if not 1 <= said.credit <= CREDIT_MAX:
                raise InvalidValue(f"credit is a number from 1 to {CREDIT_MAX:,}")
            subscription = await subscribe(
                self._stream.client, said.where, durable=said.durable, since=said.since,
                group=said.group, full=said.full, credit=said.credit,
                deliveries_max=said.deliveries_max, last=said.last,
            )  # fmt: skip
        except PalioError as error:
            await self._say_error(said.id, error)
            return
        finally:
            self._opening.discard(said.id)
        task = self._start(self._deliver(said.id, subscription))
        self._subscriptions[said.id] = subscription, task
        answer: dict[str, object] = {"op": "subscribed", "id": said.id}
        if said.durable is not None:
            answer["took_over"] = subscription.took_over
        await self._say(answer)

    async def _deliver(self, id: int, subscription: Subscription) -> None:
        try:
            while notes := await subscription.many(_AT_ONCE):
                for note in notes:
                    found = {"op": "message", "id": id, "message": form_of(note)}
                    if note.position:
                        found |= {"position": note.position, "again": note.again,
                                  "deliveries": note.deliveries}  # fmt: skip
                    await self._say(found)
                self._api.counts.delivered += len(notes)
                if not any(one.waiting for one, _ in self._subscriptions.values()):
                    self._stream.taken()
        except PalioError as error:
            self._subscriptions.pop(id, None)
            await self._say_error(id, error, op="ended")

    async def _unsubscribe(self, said: _Unsubscribe, subscription: Subscription) -> None:
        try:
            await subscription.close(said.forget)
        except PalioError as error:
            await self._say_error(said.id, error)
        else:
            await self._say({"op": "unsubscribed", "id": said.id})

    async def _say(self, value: dict[str, object]) -> None:
        await self._frames.send(as_line(value))

    async def _say_error(self, id: int | None, error: PalioError, op: str = "error") -> None:
        problem = as_problem(error).members()
        await self._say({"op": op, "id": id, "problem": problem})


def _id_of(text: bytes) -> int | None:
    """The id of a message that is wrong otherwise."""
    try:
        return msgspec.json.decode(text, type=_OnlyId).id
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


class _OnlyId(msgspec.Struct):
    id: int | None = None
