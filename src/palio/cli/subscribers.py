"""Subscribers on the command line: subscribe."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from palio.cli.application import app
from palio.cli.connection import ConnectionOptions, with_connection
from palio.cli.durations import duration_of
from palio.cli.feedback import say
from palio.cli.message_lines import line_of
from palio.cli.reading import Dialect, Zone, reader
from palio.cli.running import run
from palio.errors import PalioError
from palio.routing.patterns.language import parse as parse_pattern

if TYPE_CHECKING:
    from palio.net.client import PatternSubscription, Subscription

_FULL = ("block", "drop", "end")


@app.command()
@with_connection
def subscribe(
    predicate: Annotated[
        str | None, typer.Argument(help="What you want, such as \"price < 500 AND dest = 'MXP'\".")
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(help='Several messages: "\\[x = 1] then \\[x = 2] within 10 seconds".'),
    ] = None,
    durable: Annotated[
        str | None, typer.Option(help="A name: the broker keeps what comes while you are away.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Durable: also from then on: 2026-01-31T10:00:00Z, or 10min.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Each message goes to one member; each group of a durable name has a queue."
        ),
    ] = None,
    full: Annotated[
        str | None, typer.Option(help=f"Durable, when too many wait: {', '.join(_FULL)}.")
    ] = None,
    deliveries_max: Annotated[
        int | None,
        typer.Option(min=1, help="Durable: after so many deliveries it is a dead letter."),
    ] = None,
    last: Annotated[
        bool,
        typer.Option("--last", help="First the last value of each key (palio publish --retain)."),
    ] = False,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="End the durable subscription for good; needs no predicate."),
    ] = False,
    dialect: Dialect = "sql",
    zone: Zone = None,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after so many.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    *,
    connection: ConnectionOptions,
) -> None:
    """Print the messages that a predicate selects, until Ctrl-C.

    A message of a durable subscription is acknowledged after it is printed.
    """
    if forget and durable is None:
        raise PalioError("--forget ends a durable subscription: name it with --durable")
    if forget and durable is not None:
        _forget(durable, group, connection)
        return
    if (predicate is None) == (pattern is None):
        raise PalioError("palio subscribe takes a predicate, or --pattern")
    if pattern is not None and (durable or since or group or full or deliveries_max or last):
        raise PalioError("a pattern is watched while you are there: no --durable, --group, --last")
    if pattern is not None and dialect != "sql":
        raise PalioError("--dialect is for a predicate, not for --pattern")
    if full is not None and full not in _FULL:
        raise PalioError(f"--full is one of {', '.join(_FULL)}, not {full!r}")
    read = None if dialect == "sql" and zone is None else reader(dialect, zone)
    wanted = predicate if predicate is None or read is None else read(predicate)
    watched = None if pattern is None or zone is None else parse_pattern(pattern, zone=zone)

    options = {
        "durable": durable, "since": None if since is None else _instant(since), "group": group, "full": full,
        "deliveries_max": deliveries_max, "last": last,
    }  # fmt: skip

    async def receive() -> None:
        async with connection.client() as client:
            subscription: Subscription | PatternSubscription
            if wanted is None:
                subscription = client.watch(watched or pattern or "")
            else:
                subscription = client.subscribe(wanted, **options)  # type: ignore[arg-type]
            async with subscription:
                say(f"palio: subscribed at {client.broker}")
                await _print_all(subscription, count, as_json)

    run(receive())


def _forget(durable: str, group: str | None, connection: ConnectionOptions) -> None:
    what = durable if group is None else f"group {group} of {durable}"

    async def forget() -> None:
        async with connection.client() as client:
            await client.forget_durable(durable, group)
            say(f"palio: {what} is forgotten by {client.broker}")

    run(forget())


async def _print_all(
    subscription: Subscription | PatternSubscription, count: int | None, as_json: bool
) -> None:
    left = count
    while left is None or left > 0:
        notes = await subscription.many(1000 if left is None else min(left, 1000))
        if not notes:
            return
        for note in notes:
            print(line_of(note, as_json))
        sys.stdout.flush()
        for note in notes:
            if not isinstance(note, list):
                await note.ack()
        if left is not None:
            left -= len(notes)


def _instant(text: str) -> datetime:
    from palio.model.values import parse_instant

    if (seconds := duration_of(text)) is not None:
        return datetime.now(UTC) - timedelta(seconds=seconds)
    try:
        return parse_instant(text)
    except PalioError as error:
        raise PalioError(f"--since: {error}, or how long ago: 30 s, 10 min, 2 h, 1 d") from None
