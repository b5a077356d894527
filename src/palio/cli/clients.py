"""Clients on the command line: publish, subscribe, advertise."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palio.cli.application import app
from palio.cli.connecting import (
    INTERRUPTED,
    URL,
    Authority,
    Certificate,
    Key,
    Token,
    Url,
    Wait,
    Way,
    run,
    say,
)
from palio.errors import InvalidValue, PalioError

if TYPE_CHECKING:
    from palio.model.message import Message
    from palio.net.client import Client, Subscription, Watch
    from palio.net.notes import Received

_PIECE_BYTES = 1 << 16
_TOLD_S = 1.0
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(s|min|h|d)")
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_FULL = ("block", "drop", "end")


# ---- publish


@app.command()
def publish(
    attributes: Annotated[
        list[str] | None, typer.Argument(help="name=value, such as price=450 dest=MXP.")
    ] = None,
    as_json: Annotated[
        str | None, typer.Option("--json", help="The attributes as a JSON object.")
    ] = None,
    body: Annotated[str | None, typer.Option(help="The file of its body; - is stdin.")] = None,
    best_effort: Annotated[
        bool, typer.Option(help="Faster, and may be lost: not stored, not acknowledged.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="Under which numbers go on; else a new one each time.")
    ] = None,
    url: Url = URL,
    token: Token = None,
    authority: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    wait: Wait = 0.0,
) -> None:
    """Publish a message; or, without attributes, each JSON line of standard input.

    A message is stored at the broker when this returns, unless it is --best-effort.
    """
    way = Way(url, token, authority, certificate, key, wait)
    if as_json is None and not attributes:
        if body is not None:
            raise PalioError("--body belongs to one message: give its attributes, or --json")
        if sys.stdin.isatty():
            raise PalioError(
                "what is to be published? Give attributes (price=450 dest=MXP), --json '{...}', "
                "or JSON lines on standard input"
            )
        run(_publish_lines(way.client(name), not best_effort), INTERRUPTED)
        return
    message, content = _message(attributes or [], as_json), _content(body)
    run(_publish_one(way.client(name), message, content, not best_effort), INTERRUPTED)


def _message(words: list[str], text: str | None) -> Message:
    from palio.cli.assignments import message_of
    from palio.model.message import Message

    if text is None:
        return message_of(words)
    if words:
        raise PalioError("give attributes or --json, not both")
    try:
        return Message.from_json(text)
    except PalioError as error:
        raise PalioError(f"--json: {error}") from None


def _content(body: str | None) -> bytes:
    if body is None:
        return b""
    if body == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(body).read_bytes()
    except OSError as error:
        raise PalioError(f"--body: {body} cannot be read: {error.strerror}") from None


async def _publish_one(client: Client, message: Message, body: bytes, durable: bool) -> None:
    async with client:
        number = await client.publish(message, body, durable=durable)
        deed = "stored by" if durable else "sent to"
        say(f"palio: {deed} {client.broker} as number {number} of {client.identity}/{client.name}")


async def _publish_lines(client: Client, durable: bool) -> None:
    async with client:
        lines = _Lines()
        try:
            await client.publish_many(lines.messages(), durable=durable)
        finally:
            sent = lines.count - client.unacknowledged
            lines.tell(f"{sent:,} messages {'stored by' if durable else 'sent to'} {client.broker}")


class _Lines:
    """Messages on standard input, and how many there were."""

    def __init__(self) -> None:
        self.count = 0
        self._began = self._told = time.monotonic()

    async def messages(self) -> AsyncIterator[Message]:
        from palio.model.message import Message

        number = 0
        async for line in _input_lines():
            number += 1
            if not line.strip():
                continue
            try:
                message = Message.from_json(line)
            except PalioError as error:
                raise InvalidValue(f"standard input, line {number}: {error}") from None
            yield message
            self.count += 1
            if time.monotonic() - self._told > _TOLD_S:
                self._told = time.monotonic()
                self.tell(f"{self.count:,} messages")

    def tell(self, what: str) -> None:
        seconds = time.monotonic() - self._began
        say(f"palio: {what} in {seconds:,.1f} s, {self.count / max(seconds, 1e-9):,.0f}/s")


async def _input_lines() -> AsyncIterator[bytes]:
    pieces: asyncio.Queue[bytes] = asyncio.Queue(1)
    loop = asyncio.get_running_loop()
    # In a thread that nobody waits for: the connection lives while nothing comes, and Ctrl-C ends.
    Thread(target=_pump, args=(pieces, loop), daemon=True).start()
    rest = b""
    while piece := await pieces.get():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line
    if rest:
        yield rest


def _pump(pieces: asyncio.Queue[bytes], loop: asyncio.AbstractEventLoop) -> None:
    descriptor = sys.stdin.fileno()
    piece = b"-"
    while piece and not loop.is_closed():
        piece = os.read(descriptor, _PIECE_BYTES)
        asyncio.run_coroutine_threadsafe(pieces.put(piece), loop).result()


# ---- subscribe


@app.command()
def subscribe(
    predicate: Annotated[
        str | None, typer.Argument(help="What you want, such as \"price < 500 AND dest = 'MXP'\".")
    ] = None,
    pattern: Annotated[
        str | None, typer.Option(help='Several messages: "[x = 1] then [x = 2] within 10 s".')
    ] = None,
    durable: Annotated[
        str | None, typer.Option(help="A name: the broker keeps what comes while you are away.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Durable: also from then on: 2026-01-31T10:00:00Z, or 10min.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Each message goes to one of those with this group.")
    ] = None,
    full: Annotated[
        str | None, typer.Option(help=f"Durable, when too many wait: {', '.join(_FULL)}.")
    ] = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="End the durable subscription for good, and stop.")
    ] = False,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after so many.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    url: Url = URL,
    token: Token = None,
    authority: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    wait: Wait = 0.0,
) -> None:
    """Print the messages that a predicate selects, until Ctrl-C.

    A message of a durable subscription is acknowledged after it is printed.
    """
    if (predicate is None) == (pattern is None):
        raise PalioError("palio subscribe takes a predicate, or --pattern")
    if pattern is not None and (durable or since or group or full):
        raise PalioError("a pattern is watched while you are there: no --durable, --since, --group")
    if full is not None and full not in _FULL:
        raise PalioError(f"--full is one of {', '.join(_FULL)}, not {full!r}")
    if forget and durable is None:
        raise PalioError("--forget ends a durable subscription: name it with --durable")
    begin = None if since is None else _instant(since)
    way = Way(url, token, authority, certificate, key, wait)

    async def receive() -> None:
        async with way.client() as client:
            wish: Subscription | Watch
            if predicate is None:
                wish = client.watch(pattern or "")
            else:
                wish = client.subscribe(
                    predicate, durable=durable, since=begin, group=group, full=full
                )
            async with wish:
                if forget:
                    await wish.close(forget=True)
                    say(f"palio: {durable} is forgotten by {client.broker}")
                    return
                say(f"palio: subscribed at {client.broker}")
                await _print_all(wish, count, as_json)

    run(receive())


async def _print_all(wish: Subscription | Watch, count: int | None, as_json: bool) -> None:
    left = count
    while left is None or left > 0:
        notes = await wish.many(1000 if left is None else min(left, 1000))
        if not notes:
            return
        for note in notes:
            print(_line(note, as_json))
        sys.stdout.flush()
        for note in notes:
            if not isinstance(note, list):
                await note.ack()
        if left is not None:
            left -= len(notes)


def _line(note: Received | list[Any], as_json: bool) -> str:
    if isinstance(note, list):
        if not as_json:
            return "  ".join(part.json.decode() for part in note)
        return json.dumps({"messages": [_fields(part) for part in note]}, ensure_ascii=False)
    if as_json:
        return json.dumps(_fields(note), ensure_ascii=False)
    body = f"  ({len(note.body):,} bytes)" if note.body else ""
    return note.json.decode() + body


def _fields(note: Received) -> dict[str, object]:
    found: dict[str, object] = {
        "attributes": json.loads(note.json),
        "publisher": note.publisher,
        "number": note.number,
        "time": note.time.isoformat().replace("+00:00", "Z"),
    }
    if note.position:
        found |= {"position": note.position, "again": note.again}
    if note.body:
        found |= _body_fields(note.body)
    return found


def _body_fields(body: bytes) -> dict[str, object]:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def _instant(text: str) -> datetime:
    from palio.model.values import parse_instant

    if (found := _DURATION.fullmatch(text.strip())) is not None:
        return datetime.now(UTC) - timedelta(seconds=float(found[1]) * _SECONDS[found[2]])
    try:
        return parse_instant(text)
    except PalioError as error:
        raise PalioError(f"--since: {error}, or how long ago: 30 s, 10 min, 2 h, 1 d") from None


# ---- advertise


@app.command()
def advertise(
    constraints: Annotated[
        list[str], typer.Argument(help='What you publish: "price > 0" "dest IS NOT NULL".')
    ],
    url: Url = URL,
    token: Token = None,
    authority: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    wait: Wait = 0.0,
) -> None:
    """Say what you publish, until Ctrl-C takes it back.

    Several constraints on one name are alternatives. It matters where brokers route by forwarding
    with advertisements: there, subscriptions go only to where something matching is advertised.
    """
    way = Way(url, token, authority, certificate, key, wait)

    async def stay() -> None:
        async with way.client() as client:
            await client.advertise(*constraints)
            say(f"palio: advertised at {client.broker} until Ctrl-C")
            await asyncio.get_running_loop().create_future()

    run(stay())
