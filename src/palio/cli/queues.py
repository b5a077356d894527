"""Operators on the command line: queues and subscriptions of a broker, and acts on queues."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from palio.cli.application import NO, app
from palio.cli.connection import ConnectionOptions, with_connection
from palio.cli.feedback import say
from palio.cli.running import run
from palio.errors import PalioError
from palio.printable import printable

if TYPE_CHECKING:
    from palio.net.client import Client
    from palio.protocol.wire.queue_control import QueueRow, SubscriptionRow

_ACTS = ("pause", "resume", "purge", "end", "move")
_WIDTH_MAX = 60
"""Of a predicate in a table."""


@app.command()
@with_connection
def queues(
    act: Annotated[
        str | None, typer.Argument(help=f"Left out: list them; else {', '.join(_ACTS)}.")
    ] = None,
    name: Annotated[str | None, typer.Argument(help="The queue, IDENTITY/NAME\\[:GROUP].")] = None,
    to: Annotated[str | None, typer.Option(help="move: the identity that gets it.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="purge, end: do not ask first.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    *,
    connection: ConnectionOptions,
) -> None:
    """List the durable subscriptions of a broker with their queues, or act on one. For operators.

    pause and resume the delivery, purge the messages, end the subscription for good, move it to
    another identity.
    """
    if act is not None and act not in _ACTS:
        raise PalioError(
            f"palio queues does {', '.join(_ACTS)}, or lists without a word; not {act!r}"
        )
    if act is not None and name is None:
        raise PalioError(
            f"palio queues {act} takes the name of a queue, IDENTITY/NAME or IDENTITY/NAME:GROUP",
            remedy="`palio queues` lists them",
        )
    if (act == "move") != (to is not None):
        raise PalioError("--to IDENTITY belongs to `palio queues move NAME`, which needs it")

    async def work() -> None:
        async with connection.client() as client:
            if act is None or name is None:
                _print_queues(await client.queues(), as_json)
                return
            if act in ("purge", "end") and not yes:
                _confirm(act, await client.queue(name))
            count = await _act(client, act, name, to or "")
            _report(client.broker, act, name, to, count, as_json)

    run(work())


@app.command()
@with_connection
def subscriptions(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    *,
    connection: ConnectionOptions,
) -> None:
    """List the subscriptions of the clients that are connected to a broker. For operators."""

    async def work() -> None:
        async with connection.client() as client:
            rows = await client.subscriptions()
        if as_json:
            for row in rows:
                print(json.dumps(_subscription(row), ensure_ascii=False))
            return
        head = ("IDENTITY", "CLIENT", "ID", "KIND", "WAITING", "CREDIT", "GROUP", "QUEUE", "FOR")
        cells = [
            (row.identity, row.client, str(row.id), row.kind.value, f"{row.waiting:,}",
             _credit(row), row.group or "-", row.name or "-", _short(row.expression))
            for row in rows
        ]  # fmt: skip
        _print_table(head, cells, "no subscriptions")

    run(work())


async def _act(client: Client, act: str, name: str, to: str) -> int | None:
    """Do it. Returns how many messages were deleted, if any could be."""
    match act:
        case "pause":
            await client.pause_queue(name)
        case "resume":
            await client.resume_queue(name)
        case "move":
            await client.move_queue(name, to)
        case "purge":
            return await client.purge_queue(name)
        case "end":
            return await client.end_queue(name)
    return None


def _confirm(act: str, row: QueueRow) -> None:
    """Ask before messages are deleted."""
    what = {
        "purge": f"delete the {row.messages:,} messages of {row.name}",
        "end": f"end {row.name} for good, with its {row.messages:,} messages",
    }[act]
    if not sys.stdin.isatty():
        raise PalioError(
            f"palio queues {act} asks before it deletes anything, and there is nobody to ask",
            remedy="add --yes",
        )
    if not typer.confirm(f"{what}?", err=True):
        say("palio: nothing was done")
        raise typer.Exit(NO)


def _report(
    broker: str, act: str, name: str, to: str | None, count: int | None, as_json: bool
) -> None:
    if as_json:
        row: dict[str, object] = {"act": act, "queue": name}
        row |= {} if to is None else {"to": to}
        row |= {} if count is None else {"messages": count}
        print(json.dumps(row, ensure_ascii=False))
        return
    done = {
        "pause": f"{name} is paused: it delivers nothing until it is resumed",
        "resume": f"{name} is resumed",
        "move": f"{name} belongs to {to} now",
        "purge": f"{name} is purged: {count or 0:,} messages are deleted",
        "end": f"{name} has ended, with {count or 0:,} messages",
    }[act]
    say(f"palio: {done}, says {broker}" if broker else f"palio: {done}")


# ---- lists


def _print_queues(rows: list[QueueRow], as_json: bool) -> None:
    if as_json:
        for row in rows:
            print(json.dumps(_queue(row), ensure_ascii=False))
        return
    head = ("QUEUE", "MESSAGES", "BYTES", "OLDEST", "CONSUMERS", "FULL", "STATE", "GROUP", "FOR")
    cells = [
        (row.name, f"{row.messages:,}", f"{row.bytes:,}", _age(row), str(row.consumers),
         row.full.value, "paused" if row.is_paused else "delivers", row.group or "-",
         _short(row.predicate))
        for row in rows
    ]  # fmt: skip
    _print_table(head, cells, "no durable subscriptions")


def _queue(row: QueueRow) -> dict[str, object]:
    return {
        "queue": row.name,
        "identity": row.identity,
        "group": row.group,
        "predicate": row.predicate,
        "messages": row.messages,
        "bytes": row.bytes,
        "oldest_s": row.oldest_us / 1e6 if row.messages else None,
        "consumers": row.consumers,
        "full": row.full.value,
        "paused": row.is_paused,
    }


def _subscription(row: SubscriptionRow) -> dict[str, object]:
    return {
        "identity": row.identity,
        "client": row.client,
        "id": row.id,
        "kind": row.kind.value,
        "pattern" if row.kind.value == "pattern" else "predicate": row.expression,
        "queue": row.name or None,
        "group": row.group,
        "waiting": row.waiting,
        "credit": row.credit,
        "congested": row.is_congested,
    }


def _print_table(head: Sequence[str], cells: Sequence[Sequence[str]], empty: str) -> None:
    if not cells:
        say(f"palio: {empty}")
        return
    rows = [head, *([printable(cell) for cell in row] for row in cells)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip())


def _age(row: QueueRow) -> str:
    if not row.messages:
        return "-"
    seconds = row.oldest_us / 1e6
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def _credit(row: SubscriptionRow) -> str:
    return f"{row.credit:,}" + (" (congested)" if row.is_congested else "")


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH_MAX else text[: _WIDTH_MAX - 3] + "..."
