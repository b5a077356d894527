"""The simulator of brokers on the command line: seeds, verdicts, and how to see a failure again."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from palio.cli.application import NO, app

if TYPE_CHECKING:
    from palio.sim.brokers.runs import BrokerSummary
    from palio.sim.brokers.workload import BrokerSettings
    from palio.sim.brokers.world import BrokerVerdict

ALL_FAULTS = "crash,cut,silence,partition,freeze"


@app.command()
def sim_brokers(
    brokers: Annotated[int, typer.Option(help="The most brokers; the seed says how many.")] = 7,
    topology: Annotated[str, typer.Option(help="ring (with chords), random, tree or any.")] = "any",
    routing: Annotated[
        str, typer.Option(help="forwarding, PSF, iPS, PIF, DRP or any, which the seed says.")
    ] = "any",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 100,
    first: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    seed: Annotated[int | None, typer.Option(min=0, help="This seed only, with its trace.")] = None,
    faults: Annotated[
        str, typer.Option(help="Of crash, cut, silence, partition, freeze; or none.")
    ] = ALL_FAULTS,
    operations: Annotated[int, typer.Option(help="How many operations a seed has.")] = 120,
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many processes; one a core by default.")
    ] = None,
    brief: Annotated[bool, typer.Option("--brief", help="Only failures and totals.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Run whole brokers and their clients in a simulated network with faults, and check the promise.

    Exit code 0: every checker is content; 1: a seed fails.
    """
    from palio.sim.brokers.runs import BrokerSummary, judge_all
    from palio.sim.brokers.workload import BrokerSettings

    chosen = () if faults == "none" else tuple(part.strip() for part in faults.split(","))
    settings = BrokerSettings(brokers, topology, operations, chosen, routing)
    if seed is not None:
        _replay(settings, seed, as_json)
        return
    wanted = range(first, first + seeds)
    summary = BrokerSummary()
    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        verdicts = judge_all(settings, wanted, processes=processes)
        for verdict in bar.track(verdicts, total=len(wanted), description="simulating"):
            summary.add(verdict)
            if verdict.kind is not None or not brief:
                _print_verdict(verdict, as_json)
            if verdict.kind is not None:
                print(f"palio: see it with `{_command(settings, verdict.seed)}`", file=sys.stderr)
    _print_summary(summary, as_json)
    if summary.failed:
        raise typer.Exit(NO)


def _command(settings: BrokerSettings, seed: int) -> str:
    """What replays a seed."""
    return (
        f"palio sim-brokers --brokers {settings.brokers} --topology {settings.topology} "
        f"--routing {settings.routing} --operations {settings.operations} "
        f"--faults {','.join(settings.faults) or 'none'} --seed {seed}"
    )


def _replay(settings: BrokerSettings, seed: int, as_json: bool) -> None:
    """Everything that happened in one seed, the verdict last."""
    from palio.sim.brokers.workload import draw
    from palio.sim.brokers.world import traced

    verdict, lines = traced(draw(settings, seed))
    if not as_json:
        print("\n".join(lines))
    _print_verdict(verdict, as_json)
    if verdict.kind is not None:
        raise typer.Exit(NO)


def _print_verdict(verdict: BrokerVerdict, as_json: bool) -> None:
    from palio.sim.brokers.runs import row

    if as_json:
        print(json.dumps(row(verdict)), flush=True)
        return
    totals = verdict.totals
    print(
        f"seed {verdict.seed}: {verdict.kind or 'ok'}, {totals.publications} publications, "
        f"{totals.deliveries} deliveries ({totals.due} due), {totals.crashes} crashes, "
        f"{totals.bytes:,} bytes, {verdict.fingerprint[:12]}",
        flush=True,
    )
    if verdict.kind is not None:
        print(f"  {verdict.text}")


def _print_summary(summary: BrokerSummary, as_json: bool) -> None:
    if as_json:
        print(json.dumps(summary.row()))
        return
    totals = summary.totals
    print(
        f"{summary.seeds:,} seeds, {len(summary.failed):,} failed: {totals.publications:,} "
        f"publications, {totals.deliveries:,} deliveries ({totals.due:,} had to arrive), "
        f"{totals.crashes:,} crashes, {totals.pieces:,} pieces, {totals.bytes:,} bytes in "
        f"{totals.virtual_s:,} virtual seconds"
    )
