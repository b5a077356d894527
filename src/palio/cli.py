"""The command line: thin; every command calls a function that a program could call.

Results go to standard output, progress and errors to standard error. Exit codes: 0 done (or yes),
1 no, 2 bad input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from palio.errors import PalioError
from palio.model.message import Message

app = typer.Typer(
    help="Palio, a content-based network for data: messages reach those whose predicate they match.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
NO, BAD_INPUT = 1, 2


class Notation(StrEnum):
    """How a predicate is written."""

    SQL = "sql"
    PAPER = "paper"
    JSON = "json"


PredicateText = Annotated[
    str, typer.Argument(help="A SQL boolean expression, such as \"dest = 'MXP' AND price < 500\".")
]


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


def _announce_compiling() -> None:
    """Say why a command takes so long, when it is the first one after a change."""
    from palio.matching import warmup

    reason = warmup.waiting()
    if reason is not None:
        print(f"palio: {reason}", file=sys.stderr, flush=True)


@app.command()
def warm() -> None:
    """Compile the kernels now, so that no other command has to: after installing, in an image."""
    from palio.matching import warmup

    _announce_compiling()
    warmup.warm()


def _pair(entry: str) -> tuple[str, str]:
    name, equals, type = entry.partition("=")
    if not equals:
        raise PalioError(f"--types takes name=type, got {entry!r}")
    return name, type


def _progress(rows: Iterable[Message], title: str, total: int | None) -> Iterator[Message]:
    """Show progress on a terminal; stay silent otherwise."""
    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        yield from bar.track(rows, total=total, description=title)


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


@app.command()
def parse(
    predicate: PredicateText,
    read: Annotated[Notation, typer.Option("--from", help="How it is written.")] = Notation.SQL,
    limit: Annotated[int, typer.Option(help="The most filters the normal form may have.")] = 4096,
    reduced: Annotated[bool, typer.Option("--reduce", help="Reduce it as well.")] = False,
) -> None:
    """Show the normal form of a predicate in the three notations."""
    from palio.model import json_form, notation
    from palio.model.language import parse as parse_sql
    from palio.model.reduction import reduce

    if read is Notation.SQL:
        parsed = parse_sql(predicate, limit=limit)
    elif read is Notation.PAPER:
        parsed = notation.parse_predicate(predicate)
    else:
        parsed = json_form.from_json(predicate)
    if reduced:
        parsed = reduce(parsed)
    print(f"-- SQL ({len(parsed.filters)} filters, {parsed.size} constraints)")
    print(str(parsed))
    print("\n-- the papers' notation")
    print(notation.print_predicate(parsed))
    print("\n-- JSON")
    print(json_form.to_json(parsed))


@app.command()
def covers(
    a: Annotated[str, typer.Argument(help="The predicate that may cover, as SQL.")],
    b: Annotated[str, typer.Argument(help="The predicate that may be covered.")],
    types: Annotated[
        list[str] | None,
        typer.Option(help="The type of an attribute: x=int makes x > 3 AND x < 5 mean x = 4."),
    ] = None,
) -> None:
    """Tell whether A selects every message that B selects; if not, show one that it misses.

    Exit code 0: yes; 1: no.
    """
    from palio.errors import LimitExceeded
    from palio.model import covering
    from palio.model.language import parse as parse_sql

    wide, narrow = parse_sql(a), parse_sql(b)
    schema = dict(_pair(entry) for entry in types or [])
    try:
        answer = covering.covers(wide, narrow, exact=True, schema=schema)
        decided = "decided exactly"
    except LimitExceeded:
        answer = covering.covers(wide, narrow, schema=schema)
        decided = "decided by the sound test; the exact one is too large"
    if answer:
        print(f"yes: every message that matches\n  {narrow}\nmatches\n  {wide}\n({decided})")
        return
    print(f"no ({decided})")
    missed = covering.witness(wide, narrow, schema=schema)
    if missed is None:
        print("no example could be constructed")
    else:
        print(f"for example {missed.to_json()}\n  matches        {narrow}\n  but not        {wide}")
    raise typer.Exit(NO)


class Strategy(StrEnum):
    """How a table reaches the workers."""

    AUTO = "auto"
    BROADCAST = "broadcast"
    PARTITIONED = "partitioned"


class Invalid(StrEnum):
    """What becomes of a row that is no message."""

    ERROR = "error"
    NULL = "null"


class Output(StrEnum):
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
        Output, typer.Option(help="A row for each message and interface, or for each message.")
    ] = Output.PAIRS,
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
    from palio.spark import route as spark_route
    from palio.spark import terminal

    if once and not stream:
        raise PalioError("--once is for streams: --stream --once; without --stream all is once")
    job = spark_route.Job(
        messages=messages,
        out=out,
        predicates=predicates,
        tables=table,
        rejects=rejects,
        strategy=strategy,
        output=output,
        invalid=invalid,
        format=format,
        write=write,
        by_interface=by_interface,
        types=dict(_pair(entry) for entry in types or []),
        files_per_batch=files_per_batch,
    )
    with terminal.StreamBar(Console(stderr=True)) as bar:
        summary = spark_route.run(job, master, stream=stream, once=once, bar=bar)
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
    from palio.lab import demo as lab_demo

    _announce_compiling()
    lab_demo.run(Console(), subscriptions, messages, out=out, embedded=embedded)


bench = typer.Typer(help="Measure; ratios within one run are what counts.", no_args_is_help=True)
app.add_typer(bench, name="bench")


@bench.command("forward")
def bench_forward(
    workload: Annotated[str, typer.Option(help="sigcomm03, tr2001 or flights.")] = "sigcomm03",
    filters: Annotated[int, typer.Option(help="How many filters.")] = 100_000,
    interfaces: Annotated[str, typer.Option(help="A number, or all: one a filter.")] = "all",
    engine: Annotated[list[str] | None, typer.Option(help="An engine; may be repeated.")] = None,
    rounds: Annotated[int, typer.Option(help="Pre-processing rounds of counting.")] = 0,
    messages: Annotated[int, typer.Option(help="How many messages.")] = 1000,
    repeats: Annotated[int, typer.Option(help="How often each engine is timed.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Time engines side by side on a workload of the papers."""
    from palio.lab import bench_forward as lab_bench

    if interfaces != "all" and not interfaces.isdigit():
        raise PalioError(f"--interfaces takes a number or all, got {interfaces!r}")
    _announce_compiling()
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        results = list(
            lab_bench.run(
                workload,
                filters,
                interfaces if interfaces == "all" else int(interfaces),
                engine or ["pivot"],
                rounds=rounds,
                messages=messages,
                repeats=repeats,
                progress=lambda text, share: bar.update(task, description=text, completed=share),
            )
        )
    if as_json:
        for result in results:
            print(json.dumps(result.row()))
        return
    lab_bench.show(Console(), results)


@bench.command("update")
def bench_update(
    workload: Annotated[str, typer.Option(help="sigcomm03, tr2001 or flights.")] = "sigcomm03",
    filters: Annotated[int, typer.Option(help="How many filters, each an interface.")] = 100_000,
    updates: Annotated[int, typer.Option(help="How many single updates.")] = 50_000,
    share: Annotated[
        float, typer.Option(help="Compact when so much of the table has changed.")
    ] = 0.25,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Time single updates of a table that is read and compacted meanwhile."""
    from palio.lab import bench_update as lab_bench

    errors = Console(stderr=True)
    with errors.status("starting") as status:
        result = lab_bench.run(workload, filters, updates, share=share, progress=status.update)
    if as_json:
        print(json.dumps(result.row()))
        return
    lab_bench.show(Console(), result)


@bench.command("poset")
def bench_poset(
    filters: Annotated[int, typer.Option(help="How many filters.")] = 100_000,
    names: Annotated[int, typer.Option(help="How many names of attributes.")] = 500,
    uniform: Annotated[bool, typer.Option(help="All names alike, not by Zipf's law.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Time insertions and removals as the poset of a routing table grows."""
    from palio.lab import bench_poset as lab_bench

    results = []
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        for result in lab_bench.run(
            filters,
            names=names,
            zipf=not uniform,
            progress=lambda text, share: bar.update(task, description=text, completed=share),
        ):
            results.append(result)
            if as_json:
                print(json.dumps(result.row()), flush=True)
    if not as_json:
        lab_bench.show(Console(), results)


@bench.command("spark")
def bench_spark(
    rows: Annotated[int, typer.Option(help="How many messages.")] = 100_000,
    filters: Annotated[
        int, typer.Option(help="How many predicates, on 100 interfaces.")
    ] = 1_000_000,
    repeats: Annotated[int, typer.Option(help="How often each contestant is timed.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Time forwarding on Spark beside transport alone, and beside what joins can do."""
    from palio.lab import bench_spark as lab_bench

    _announce_compiling()
    results = []
    with Console(stderr=True).status("starting") as status:
        for result in lab_bench.run(rows, filters, repeats=repeats, progress=status.update):
            results.append(result)
            if as_json:
                print(json.dumps(result.row()), flush=True)
    if not as_json:
        lab_bench.show(Console(), results)


def main() -> None:
    """Run the command line; every foreseen error is one sentence and exit code 2."""
    try:
        app()
    except PalioError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(
            f"palio: {error}", markup=False, style="red"
        )
        sys.exit(BAD_INPUT)
    except BrokenPipeError:  # the reader had enough
        sys.stderr.close()
        sys.exit(0)


if __name__ == "__main__":
    main()
