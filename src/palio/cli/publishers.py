"""Publishers on the command line: publish, advertise."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from palio.cli.application import app
from palio.cli.connection import ConnectionOptions, with_connection
from palio.cli.durations import seconds_of
from palio.cli.feedback import say
from palio.cli.running import INTERRUPTED, run
from palio.cli.standard_input import input_lines
from palio.errors import InvalidValue, PalioError

if TYPE_CHECKING:
    from palio.model.message import Message
    from palio.net.client import Client
    from palio.protocol.wire.message_headers import HeaderValue

_TOLD_S = 1.0  # between two lines about progress


Words: TypeAlias = Annotated[
    list[str] | None, typer.Argument(help="name=value, such as price=450 dest=MXP.")
]
Json: TypeAlias = Annotated[
    str | None, typer.Option("--json", help="The attributes as a JSON object.")
]
Body: TypeAlias = Annotated[str | None, typer.Option(help="The file of its body; - is stdin.")]


@app.command()
@with_connection
def publish(
    attributes: Words = None,
    as_json: Json = None,
    body: Body = None,
    header: Annotated[
        list[str] | None, typer.Option(help="name=value that it carries; not matched. Repeatable.")
    ] = None,
    expires_in: Annotated[
        str | None,
        typer.Option(help="It is not delivered after this time: 30 s, 10 min, 2 h, 1 d."),
    ] = None,
    delay: Annotated[
        str | None, typer.Option(help="It is stored now, and published after this time.")
    ] = None,
    retain: Annotated[
        list[str] | None,
        typer.Option(help="It is the last value of the key in this attribute. Repeatable."),
    ] = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="With --retain: the key has no last value any more.")
    ] = False,
    best_effort: Annotated[
        bool, typer.Option(help="Faster, and may be lost: not stored, not acknowledged.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="Under which numbers go on; else a new one each time.")
    ] = None,
    *,
    connection: ConnectionOptions,
) -> None:
    """Publish a message; or, without attributes, each JSON line of standard input.

    A message is stored at the broker when this returns, unless it is --best-effort.
    """
    if as_json is None and not attributes:
        given = {
            "--body": body, "--header": header, "--expires-in": expires_in, "--delay": delay,
            "--retain": retain, "--forget": forget,
        }  # fmt: skip
        if any(given.values()):
            option = next(option for option, value in given.items() if value)
            raise PalioError(f"{option} belongs to one message: give its attributes, or --json")
        if sys.stdin.isatty():
            raise PalioError(
                "what is to be published? Give attributes (price=450 dest=MXP), --json '{...}', "
                "or JSON lines on standard input"
            )
        run(_publish_lines(connection.client(name), not best_effort), INTERRUPTED)
        return
    message, content = _message(attributes or [], as_json), _content(body)
    client, headers = connection.client(name), _headers(header or [])
    options = {"headers": headers, "durable": not best_effort}
    if expires_in is not None:
        options["expires_in"] = seconds_of("--expires-in", expires_in)
    if delay is not None:
        options["delay"] = seconds_of("--delay", delay)
    if retain or forget:
        options |= {"retain": retain, "forget": forget}
    run(_publish_one(client, message, content, options), INTERRUPTED)


@app.command()
@with_connection
def request(
    attributes: Words = None,
    as_json: Json = None,
    body: Body = None,
    timeout: Annotated[str, typer.Option(help="How long to wait for a reply.")] = "10 s",
    *,
    connection: ConnectionOptions,
) -> None:
    """Publish a message, and print the first reply to it, with its body, as a JSON object."""
    from palio.cli.message_lines import line_of

    if as_json is None and not attributes:
        raise PalioError("what is asked? Give attributes (price=450 dest=MXP), or --json")
    message, content = _message(attributes or [], as_json), _content(body)
    seconds = seconds_of("--timeout", timeout)

    async def ask() -> None:
        async with connection.client() as client:
            print(line_of(await client.request(message, content, timeout=seconds), True))

    run(ask(), INTERRUPTED)


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


def _headers(words: list[str]) -> dict[str, HeaderValue]:
    from palio.cli.assignments import message_of
    from palio.protocol.wire.message_headers import STANDARD

    try:
        found: dict[str, Any] = dict(message_of(words))
    except PalioError as error:
        raise PalioError(f"--header: {error}") from None
    for name in found.keys() & STANDARD.keys():
        if STANDARD[name] is bytes:
            found[name] = str(found[name]).encode()
    return found


async def _publish_one(
    client: Client, message: Message, body: bytes, options: dict[str, Any]
) -> None:
    async with client:
        number = await client.publish(message, body, **options)
        deed = "stored by" if options["durable"] else "sent to"
        say(f"palio: {deed} {client.broker} as number {number} of {client.identity}/{client.name}")


async def _publish_lines(client: Client, durable: bool) -> None:
    async with client:
        lines = _InputMessages()
        try:
            await client.publish_many(lines.messages(), durable=durable)
        finally:
            sent = lines.count - client.unacknowledged
            lines.tell(f"{sent:,} messages {'stored by' if durable else 'sent to'} {client.broker}")


class _InputMessages:
    """Messages on standard input, and how many there were."""

    def __init__(self) -> None:
        self.count = 0
        self._began = self._told = time.monotonic()

    async def messages(self) -> AsyncIterator[Message]:
        from palio.model.message import Message

        number = 0
        async for line in input_lines():
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


@app.command()
@with_connection
def advertise(
    constraints: Annotated[
        list[str], typer.Argument(help='What you publish: "price > 0" "dest IS NOT NULL".')
    ],
    *,
    connection: ConnectionOptions,
) -> None:
    """Say what you publish, until Ctrl-C takes it back.

    Several constraints on one name are alternatives. It matters where brokers route by forwarding
    with advertisements: there, subscriptions go only to where something matching is advertised.
    """

    async def stay() -> None:
        async with connection.client() as client:
            await client.advertise(*constraints)
            say(f"palio: advertised at {client.broker} until Ctrl-C")
            await asyncio.get_running_loop().create_future()

    run(stay())
