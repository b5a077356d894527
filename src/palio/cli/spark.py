"""Spark on the command line: route files and streams, and the demo of it."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from palio.cli.application import app
from palio.cli.assignments import types_of
from palio.cli.feedback import announce_compiling
from palio.cli.reading import Dialect
from palio.errors import PalioError


class Strategy(StrEnum):
    """How a table reaches the workers."""

    AUTO = "auto"
    BROADCAST = "broadcast"
    PARTITIONED = "partitioned"


class Invalid(StrEnum):
    """What becomes of a row that is no message."""

    ERROR = "error"
    NULL = "null"


class OutputRows(StrEnum):
    """What a row of the output is."""

    PAIRS = "pairs"
    ARRAY = "array"


@app.command()
def route(
    messages: Annotated[str, typer.Option(help="CSV, JSON lines or Parquet; a file or a folder.")],
    out: Annotated[Path, typer.Option(help="The directory for the output.")],
    predicates: Annotated[
        str | None, typer.Option(help="CSV, JSON lines or Parquet: interface, predicate.")
    ] = None,
    dialect: Dialect = "sql",
    table: Annotated[
        Path | None,
        typer.Option(help="Table versions or a partitioned table, instead of predicates."),
    ] = None,
    stream: Annotated[bool, typer.Option(help="Watch the folder of messages.")] = False,
    once: Annotated[bool, typer.Option(help="Of a stream: stop when all is routed.")] = False,
    strategy: Annotated[Strategy, typer.Option(help="How tables reach workers.")] = Strategy.AUTO,
    master: Annotated[
        str, typer.Option(help="local[N], spark://HOST:PORT or sc://HOST:PORT.")
    ] = "local[*]",
    rejects: Annotated[
        Path | None, typer.Option(help="Write rows that are no predicates here, and go on.")
    ] = None,
    output: Annotated[
        OutputRows, typer.Option(help="A row for each message and interface, or for each message.")
    ] = OutputRows.PAIRS,
    invalid: Annotated[
        Invalid, typer.Option(help="A row that is no message: stop, or give it no interfaces.")
    ] = Invalid.ERROR,
    by_interface: Annotated[bool, typer.Option(help="A directory for each interface.")] = False,
    write: Annotated[str, typer.Option(help="parquet, json or orc.")] = "parquet",
    format: Annotated[
        str | None, typer.Option(help="Of the messages, if names do not show it.")
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option(help="The type of a CSV column: zip=string.")
    ] = None,
    files_per_batch: Annotated[
        int | None, typer.Option(min=1, help="The most files in a micro-batch.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The summary as one object.")] = False,
) -> None:
    """Route files, or a stream of files, with Spark."""
    from rich.console import Console

    from palio.spark import route as spark_route
    from palio.spark import terminal

    if once and not stream:
        raise PalioError(
            "--once is for streams: --stream --once", remedy="without --stream all is once"
        )
    job = spark_route.Job(
        messages=messages,
        out=out,
        predicates=predicates,
        dialect=dialect,
        tables=table,
        rejects=rejects,
        strategy=strategy,
        output=output,
        invalid=invalid,
        format=format,
        write=write,
        by_interface=by_interface,
        types=types_of(types),
        files_per_batch=files_per_batch,
    )
    with terminal.StreamBar(Console(stderr=True)) as bar:
        summary = spark_route.run(job, master, stream=stream, once=once, watcher=bar)
    if as_json:
        print(json.dumps(summary.row(), ensure_ascii=False))
    else:
        terminal.show(Console(), summary)


@app.command()
def demo(
    subscriptions: Annotated[int, typer.Option(help="How many subscriptions.")] = 100_000,
    messages: Annotated[
        int | None, typer.Option(help="How many flights; all of them by default.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The directory for the output; a temporary one by default.")
    ] = None,
    embedded: Annotated[bool, typer.Option(help="In this process, without Spark.")] = False,
) -> None:
    """Route a year of real flights to subscriptions and show what went where."""
    from rich.console import Console

    from palio.lab.demo import start as lab_demo

    announce_compiling()
    lab_demo.run(Console(), subscriptions, messages, out=out, embedded=embedded)
