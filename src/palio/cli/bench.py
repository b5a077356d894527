"""Measurements on the command line: the group of commands `palio bench`."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from palio.cli.application import app
from palio.cli.feedback import announce_compiling
from palio.errors import PalioError

bench = typer.Typer(help="Measure; ratios within one run are what counts.", no_args_is_help=True)
app.add_typer(bench, name="bench")

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


@bench.command("forward")
def bench_forward(
    workload: Annotated[
        str, typer.Option(help="sigcomm03, tr2001, flights, rules, fields or texts.")
    ] = "sigcomm03",
    filters: Annotated[int, typer.Option(help="How many filters.")] = 100_000,
    interfaces: Annotated[str, typer.Option(help="A number, or all: one a filter.")] = "all",
    engine: Annotated[list[str] | None, typer.Option(help="An engine; may be repeated.")] = None,
    rounds: Annotated[int, typer.Option(help="Pre-processing rounds of counting.")] = 0,
    messages: Annotated[int, typer.Option(help="How many messages.")] = 1000,
    repeats: Annotated[int, typer.Option(help="How often each engine is timed.")] = 5,
    uneven: Annotated[
        bool,
        typer.Option("--uneven", help="Filters of an interface uniform in [1, fh), as in 2003."),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Constraints on numbers ask for the type too.")
    ] = False,
    large: Annotated[
        bool, typer.Option("--large-dictionary", help="Sample names and strings of 100,000 words.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Time engines side by side on a workload of the papers."""
    from palio.lab.bench import forward as lab_bench
    from palio.lab.bench.harness import report
    from palio.lab.data.workloads import DrawOptions

    if interfaces != "all" and not interfaces.isdigit():
        raise PalioError(f"--interfaces takes a number or all, got {interfaces!r}")
    announce_compiling()
    run = partial(
        lab_bench.run,
        workload,
        filters,
        interfaces if interfaces == "all" else int(interfaces),
        engine or ["pivot"],
        rounds=rounds,
        messages=messages,
        repeats=repeats,
        options=DrawOptions(uneven=uneven, strict=strict, large=large),
    )
    report(run, lab_bench.show, as_json=as_json)


@bench.command("where")
def bench_where(
    rules: Annotated[int, typer.Option(help="How many rules, each an interface.")] = 100_000,
    rows: Annotated[int, typer.Option(help="How many messages: rows of flights.")] = 10_000,
    loop_rules: Annotated[
        int, typer.Option(help="Rules of the loop of Spark columns; 0: no loop.")
    ] = 1000,
    repeats: Annotated[int, typer.Option(help="How often each contestant is timed.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Time rules with expressions beside plain rules, and beside a loop of Spark columns."""
    from palio.lab.bench import where as lab_bench
    from palio.lab.bench.harness import report

    announce_compiling()
    run = partial(lab_bench.run, rules, rows, loop_rules=loop_rules, repeats=repeats)
    report(run, lab_bench.show, as_json=as_json)


@bench.command("update")
def bench_update(
    workload: Annotated[
        str, typer.Option(help="sigcomm03, tr2001, flights, rules, fields or texts.")
    ] = "sigcomm03",
    filters: Annotated[int, typer.Option(help="How many filters, each an interface.")] = 100_000,
    updates: Annotated[int, typer.Option(help="How many single updates.")] = 50_000,
    share: Annotated[
        float, typer.Option(help="Compact when so much of the table has changed.")
    ] = 0.25,
    as_json: AsJson = False,
) -> None:
    """Time single updates of a table that is read and compacted meanwhile."""
    from palio.lab.bench import update as lab_bench
    from palio.lab.bench.harness import report

    run = partial(lab_bench.run, workload, filters, updates, share=share)
    report(run, lab_bench.show, as_json=as_json)


@bench.command("poset")
def bench_poset(
    filters: Annotated[int, typer.Option(help="How many filters.")] = 100_000,
    names: Annotated[int, typer.Option(help="How many names of attributes.")] = 500,
    uniform: Annotated[bool, typer.Option(help="All names alike, not by Zipf's law.")] = False,
    as_json: AsJson = False,
) -> None:
    """Time insertions and removals as the poset of a routing table grows."""
    from palio.lab.bench import poset as lab_bench
    from palio.lab.bench.harness import report

    run = partial(lab_bench.run, filters, names=names, zipf=not uniform)
    report(run, lab_bench.show, as_json=as_json)


@bench.command("spark")
def bench_spark(
    rows: Annotated[int, typer.Option(help="How many messages.")] = 100_000,
    filters: Annotated[
        int, typer.Option(help="How many predicates, on 100 interfaces.")
    ] = 1_000_000,
    repeats: Annotated[int, typer.Option(help="How often each contestant is timed.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Time forwarding on Spark beside transport alone, and beside what joins can do."""
    from palio.lab.bench import spark as lab_bench
    from palio.lab.bench.harness import report

    announce_compiling()
    run = partial(lab_bench.run, rows, filters, repeats=repeats)
    report(run, lab_bench.show, as_json=as_json)


@bench.command("broker")
def bench_broker(
    subscriptions: Annotated[int, typer.Option(help="How many live subscriptions.")] = 10_000,
    messages: Annotated[int, typer.Option(help="How many messages a run.")] = 100_000,
    body: Annotated[int, typer.Option(help="Bytes of a message's body.")] = 100,
    repeats: Annotated[int, typer.Option(help="How often each contestant is timed.")] = 3,
    contestant: Annotated[
        list[str] | None,
        typer.Option(
            help="relay, live, http, http-lines, hop, durable, durable-postgres, durable-http, topic, mqtt, "
            "mosquitto, mqtt-1, mosquitto-1; repeatable."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Time one broker on loopback beside a bare relay of frames, and beside Mosquitto."""
    from palio.lab.bench import broker as lab_bench
    from palio.lab.bench.harness import report

    announce_compiling()
    run = partial(
        lab_bench.run,
        subscriptions=subscriptions,
        messages=messages,
        body_bytes=body,
        repeats=repeats,
        contestants=contestant or lab_bench.NAMES,
    )
    report(run, lab_bench.show, as_json=as_json)
