"""Tables on the command line: match messages, compile kernels, tell what a table costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from palio.cli.application import _announce_compiling, _pair, _progress, app
from palio.errors import PalioError


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
    brief: Annotated[bool, typer.Option(help="Leave the messages out of the output.")] = False,
    all_rows: Annotated[
        bool, typer.Option("--all", help="Print messages that match nothing too.")
    ] = False,
) -> None:
    """Tell which interfaces each message goes to, as JSON lines."""
    from palio.matching import files
    from palio.matching.table import ForwardingTable

    chosen = dict(_pair(entry) for entry in types or [])
    entries = list(files.read_predicates(predicates))
    # Kernels are compiled at their first use, which is not worth it for a handful of predicates.
    few = len(entries) <= 100
    if not few:
        _announce_compiling()
    table = ForwardingTable.compile(entries, "naive" if few else "pivot")
    rows = files.read_messages(messages, chosen)
    for row, message in enumerate(_progress(rows, "matching", files.count_rows(messages))):
        interfaces = table.forward(message)
        if interfaces or all_rows:
            line: dict[str, object] = {"row": row, "interfaces": interfaces}
            if not brief:
                line["message"] = json.loads(message.to_json())
            print(json.dumps(line, ensure_ascii=False))


@app.command()
def warm() -> None:
    """Compile the kernels now, so that no other command has to: after installing, in an image."""
    from palio.net import kernels

    _announce_compiling()
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
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Tell what a table holds and what a message costs it: why it is slow."""
    from palio.matching import files
    from palio.matching.table import ForwardingTable

    if (predicates is None) == (table is None):
        raise PalioError("palio stats takes --predicates or --table, one of them")
    if table is not None and (by_sample or reduced):
        raise PalioError("--by-sample and --reduce are for --predicates; a table is compiled")
    if by_sample and sample is None:
        raise PalioError("--by-sample needs messages: --sample FILE")
    chosen = dict(_pair(entry) for entry in types or [])
    messages = None if sample is None else list(files.read_messages(sample, chosen))
    if table is not None:
        made = ForwardingTable.load(table)
    else:
        assert predicates is not None
        entries = files.read_predicates(predicates)
        made = ForwardingTable.compile(
            entries, sample=messages if by_sample else None, reduce=reduced
        )
    found = made.stats(messages)
    print(json.dumps(found.row(), ensure_ascii=False) if as_json else found)
