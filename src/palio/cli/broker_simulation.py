"""The simulator of brokers on the command line: seeds, verdicts, and the scenario of a failure."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palio.cli.application import NO, app
from palio.cli.simulation_runs import (
    chosen_faults,
    chosen_seeds,
    end_interrupted,
    is_interrupted,
    print_failure,
    print_json,
    replay_scenario,
)

if TYPE_CHECKING:
    from palio.sim.brokers.simulation import BrokerTotals
    from palio.sim.kernel.verdicts import RunSummary, RunVerdict

ALL_FAULTS = "crash,cut,silence,partition,freeze"


@app.command()
def sim_brokers(
    brokers: Annotated[int, typer.Option(help="The most brokers; the seed says how many.")] = 7,
    topology: Annotated[
        str, typer.Option(help="ring (with chords), random, tree, hierarchy or any.")
    ] = "any",
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
    scenario: Annotated[
        Path | None, typer.Option(help="Run this scenario instead, and print its trace.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many processes; one a core by default.")
    ] = None,
    brief: Annotated[bool, typer.Option("--brief", help="Only failures and totals.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Run whole brokers and their clients in a simulated network with faults, and check the promise.

    Exit code 0: no check failed; 1: a seed fails.
    """
    from palio.sim.brokers.drawing import BrokerSettings, draw
    from palio.sim.brokers.runs import BROKERS, judge_all
    from palio.sim.brokers.simulation import BrokerTotals
    from palio.sim.kernel.verdicts import RunSummary

    if scenario is not None:
        replay_scenario(BROKERS, scenario)
        return
    settings = BrokerSettings(brokers, topology, operations, chosen_faults(faults), routing)
    wanted = chosen_seeds(seeds, first, seed)
    summary = RunSummary(BrokerTotals())
    if seed is not None and not as_json:
        verdict, lines = BROKERS.traced(draw(settings, seed))
        print("\n".join(lines))
        verdicts = iter([verdict])
    else:
        verdicts = judge_all(settings, wanted, processes=processes)

    def take(verdict: RunVerdict[BrokerTotals]) -> None:
        summary.add(verdict)
        if verdict.kind is not None or not brief:
            _print_verdict(verdict, as_json)

    was_interrupted = is_interrupted(verdicts, len(wanted), take)
    _print_summary(summary, as_json)
    if was_interrupted:
        end_interrupted()
    if summary.failed:
        print_failure(BROKERS, partial(draw, settings), summary.failed[0], "sim-brokers", as_json)
        raise typer.Exit(NO)


def _print_verdict(verdict: RunVerdict[BrokerTotals], as_json: bool) -> None:
    if as_json:
        print_json(verdict.row())
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


def _print_summary(summary: RunSummary[BrokerTotals], as_json: bool) -> None:
    if as_json:
        print_json(summary.row())
        return
    totals = summary.totals
    print(
        f"{summary.seeds:,} seeds, {len(summary.failed):,} failed: {totals.publications:,} "
        f"publications, {totals.deliveries:,} deliveries ({totals.due:,} had to arrive), "
        f"{totals.crashes:,} crashes, {totals.pieces:,} pieces, {totals.bytes:,} bytes in "
        f"{totals.virtual_s:,} virtual seconds"
    )
