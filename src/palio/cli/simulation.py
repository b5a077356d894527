"""The simulator of routers on the command line: seeds, verdicts, and the scenario of a failure."""

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
from palio.errors import PalioError

if TYPE_CHECKING:
    from palio.sim.routers.runs import RouterOutcome, RouterSummary


@app.command()
def sim(
    routers: Annotated[int, typer.Option(help="How many routers.")] = 20,
    topology: Annotated[
        str, typer.Option(help="tree, line, star, hierarchy; ring, mesh or random.")
    ] = "tree",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 100,
    first: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    seed: Annotated[int | None, typer.Option(min=0, help="This seed only.")] = None,
    faults: Annotated[
        str, typer.Option(help="Of crash, partition, loss, reorder, duplicate; or none.")
    ] = "crash,partition,loss,reorder,duplicate",
    routing: Annotated[str, typer.Option(help="covering, plain or flooding.")] = "covering",
    advertisements: Annotated[
        bool, typer.Option("--advertisements", help="Subscriptions follow advertisements.")
    ] = False,
    patterns: Annotated[
        bool, typer.Option("--patterns", help="Clients watch patterns; advertisements are on.")
    ] = False,
    delegation: Annotated[
        str, typer.Option(help="on, or off: patterns are matched where they are watched.")
    ] = "on",
    operations: Annotated[int, typer.Option(help="How many operations a seed has.")] = 100,
    scenario: Annotated[
        Path | None, typer.Option(help="Run this scenario instead, and print its trace.")
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            help="Run each seed without covering (delegation) too, to tell what it saves."
        ),
    ] = True,
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many processes; one a core by default.")
    ] = None,
    brief: Annotated[bool, typer.Option("--brief", help="Only failures and totals.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Run routers in a simulated network with faults, and check all they do.

    Exit code 0: no check failed; 1: a seed fails.
    """
    from palio.sim.routers.drawing import RouterSettings, draw
    from palio.sim.routers.runs import ROUTERS, RouterSummary, judge_all

    if scenario is not None:
        replay_scenario(ROUTERS, scenario)
        return
    if delegation not in ("on", "off"):
        raise PalioError(f"--delegation is on or off, not {delegation!r}")
    settings = RouterSettings(
        routers,
        topology,
        operations,
        chosen_faults(faults),
        routing,
        advertisements,
        patterns,
        delegation=delegation == "on",
    )
    wanted = chosen_seeds(seeds, first, seed)
    summary = RouterSummary()
    outcomes = judge_all(settings, wanted, compare=compare, processes=processes)

    def take(outcome: RouterOutcome) -> None:
        summary.add_outcome(outcome)
        if outcome.verdict.kind is not None or not brief:
            _print_outcome(outcome, as_json)

    was_interrupted = is_interrupted(outcomes, len(wanted), take)
    _print_summary(summary, as_json)
    if was_interrupted:
        end_interrupted()
    if summary.failed:
        print_failure(ROUTERS, partial(draw, settings), summary.failed[0], "sim", as_json)
        raise typer.Exit(NO)


def _print_outcome(outcome: RouterOutcome, as_json: bool) -> None:
    verdict = outcome.verdict
    if as_json:
        print_json(outcome.row())
        return
    totals = verdict.totals
    print(
        f"seed {verdict.seed}: {verdict.kind or 'ok'}, {totals.publications} publications, "
        f"{totals.deliveries} deliveries, {totals.messages} messages and {totals.subscriptions} "
        f"subscriptions forwarded, {totals.bytes:,} bytes",
        flush=True,
    )
    if verdict.kind is not None:
        print(f"  {verdict.text}")


def _print_summary(summary: RouterSummary, as_json: bool) -> None:
    if as_json:
        print_json(summary.row())
        return
    totals, plain = summary.totals, summary.plain
    print(
        f"{summary.seeds:,} seeds, {len(summary.failed):,} failed: "
        f"{totals.publications:,} publications, {totals.deliveries:,} deliveries "
        f"({totals.due:,} had to arrive), {totals.messages:,} messages and "
        f"{totals.subscriptions:,} subscriptions forwarded, {totals.frames:,} frames, "
        f"{totals.bytes:,} bytes"
    )
    if plain is not None and plain.subscriptions:
        saved = plain.subscriptions - totals.subscriptions
        print(
            f"covering saved {saved:,} of the {plain.subscriptions:,} subscriptions that are "
            f"forwarded without it ({saved / plain.subscriptions:.0%})"
        )
    if totals.compounds or summary.undelegated is not None:
        print(f"{totals.compounds:,} compounds ({totals.compounds_due:,} had to arrive)")
    if summary.undelegated is not None and summary.undelegated.messages:
        before = summary.undelegated.messages
        print(
            f"delegation saved {before - totals.messages:,} of the {before:,} messages that are "
            f"forwarded without it ({(before - totals.messages) / before:.0%})"
        )
