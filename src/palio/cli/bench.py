"""Measurements on the command line: the group of commands `palio bench`."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from palio.cli.application import _announce_compiling, app
from palio.errors import PalioError

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


@bench.command("broker")
def bench_broker(
    subscriptions: Annotated[int, typer.Option(help="How many live subscriptions.")] = 10_000,
    messages: Annotated[int, typer.Option(help="How many messages a run.")] = 100_000,
    body: Annotated[int, typer.Option(help="Bytes of a message's body.")] = 100,
    repeats: Annotated[int, typer.Option(help="How often each contestant is timed.")] = 3,
    contestant: Annotated[
        list[str] | None,
        typer.Option(help="relay, live, hop, durable, topic, mosquitto; repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Time one broker on loopback beside a bare relay of frames, and beside Mosquitto."""
    from palio.lab import bench_broker as lab_bench

    _announce_compiling()
    results = []
    errors = Console(stderr=True)
    with errors.status("starting") as status:
        for result in lab_bench.run(
            subscriptions=subscriptions,
            messages=messages,
            body_bytes=body,
            repeats=repeats,
            contestants=tuple(contestant or lab_bench.CONTESTANTS),
            progress=status.update,
        ):
            results.append(result)
            if as_json:
                print(json.dumps(result.row()), flush=True)
    if not as_json:
        lab_bench.show(Console(), results)
