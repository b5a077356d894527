"""Tables on the command line: match messages, compile kernels, tell what a table costs."""

from __future__ import annotations

import json
from operator import itemgetter
from pathlib import Path
from typing import Annotated

import typer

from palio.cli.application import app
from palio.cli.assignments import types_of
from palio.cli.feedback import announce_compiling, say, tracked
from palio.cli.reading import Dialect, Zone, reader
from palio.cli.unlike_types import UnlikeTypes
from palio.errors import PalioError
from palio.model.near_names import missing_names
from palio.model.values import shortened


@app.command()
def match(
    predicates: Annotated[
        Path, typer.Option(help="CSV, JSON lines or Parquet with the columns interface, predicate.")
    ],
    messages: Annotated[Path, typer.Option(help="CSV, JSON lines or Parquet; each row a message.")],
    types: Annotated[
        list[str] | None,
        typer.Option(help="The type of a CSV column: zip=string. May be repeated."),
    ] = None,
    dialect: Dialect = "sql",
    zone: Zone = None,
    brief: Annotated[bool, typer.Option(help="Leave the messages out of the output.")] = False,
    all_rows: Annotated[
        bool, typer.Option("--all", help="Print messages that match nothing too.")
    ] = False,
) -> None:
    """Tell which interfaces each message goes to, as JSON lines."""
    from palio.matching import input_files
    from palio.matching.table import ForwardingTable

    chosen = types_of(types)
    entries = list(input_files.read_predicates(predicates, reader(dialect, zone)))
    # Kernels are compiled at their first use, which is not worth it for a handful of predicates.
    few = len(entries) <= 100
    if not few:
        announce_compiling()
    table = ForwardingTable.compile(entries, "naive" if few else "pivot")
    asked = input_files.names_asked(predicate for _, predicate in entries)
    rows = input_files.read_messages(messages, chosen, asked)
    missing, seen = set(asked), set[str]()
    unlike = UnlikeTypes(predicate for _, predicate in entries)
    for row, message in enumerate(tracked(rows, "matching", input_files.count_rows(messages))):
        if missing:
            missing.difference_update(message)
            if len(seen) < _NAMES_MAX:
                seen.update(message)
        unlike.see(message)
        interfaces = table.forward(message)
        if interfaces or all_rows:
            line: dict[str, object] = {"row": row, "interfaces": interfaces}
            if not brief:
                line["message"] = json.loads(message.to_json())
            print(json.dumps(line, ensure_ascii=False))
    if failures := table.expressions.failures:
        text, times = max(failures.items(), key=itemgetter(1))
        say(
            f"palio: values of expressions that could not be computed, and were NULL: "
            f"{sum(failures.values()):,}; most of them of {shortened(text)}: {times:,}"
        )
    for said in unlike.said():
        say(f"palio: {said}")
    if missing and seen:
        say(
            f"palio: predicates ask about {missing_names(sorted(missing), seen)}, and no message has it"
        )


_NAMES_MAX = 10_000
"""Of messages, among which near ones are looked for."""


@app.command()
def warm() -> None:
    """Compile the kernels now, so that no other command has to: after installing, in an image."""
    from palio.net.broker import kernels

    announce_compiling()
    kernels.load()


@app.command()
def stats(
    predicates: Annotated[
        Path | None, typer.Option(help="CSV, JSON lines or Parquet: interface, predicate.")
    ] = None,
    table: Annotated[Path | None, typer.Option(help="A table that was saved.")] = None,
    sample: Annotated[
        Path | None, typer.Option(help="Messages to count on; without them costs are guessed.")
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(help="The type of a CSV column: zip=string. May be repeated."),
    ] = None,
    by_sample: Annotated[
        bool, typer.Option(help="Choose the pivots of the predicates by the sample too.")
    ] = False,
    reduced: Annotated[bool, typer.Option("--reduce", help="Reduce the predicates.")] = False,
    dialect: Dialect = "sql",
    zone: Zone = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Tell what a table holds and what a message costs it: why it is slow."""
    from palio.matching import input_files
    from palio.matching.table import ForwardingTable

    if (predicates is None) == (table is None):
        raise PalioError("palio stats takes --predicates or --table, one of them")
    if table is not None and (by_sample or reduced or dialect != "sql" or zone is not None):
        raise PalioError(
            "--by-sample, --reduce, --dialect and --zone are for --predicates",
            remedy="a saved table is compiled already",
        )
    if by_sample and sample is None:
        raise PalioError("--by-sample needs messages: --sample FILE")
    chosen = types_of(types)
    # Of the messages of a sample only what can be an attribute counts.
    messages = None if sample is None else list(input_files.read_messages(sample, chosen, ()))
    if table is not None:
        made = ForwardingTable.load(table)
    else:
        assert predicates is not None
        entries = input_files.read_predicates(predicates, reader(dialect, zone))
        made = ForwardingTable.compile(
            entries, sample=messages if by_sample else None, reduce=reduced
        )
    statistics = made.stats(messages)
    print(json.dumps(statistics.row(), ensure_ascii=False) if as_json else statistics)
