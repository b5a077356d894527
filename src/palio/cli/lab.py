"""The lab on the command line: experiments as Spark jobs, and the report on their results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palio.cli.application import app
from palio.cli.feedback import announce_compiling, progress_bar
from palio.errors import PalioError

if TYPE_CHECKING:
    from palio.lab.reproduce.runner import Tell

lab = typer.Typer(
    help="Run experiments and redraw the papers' figures from their results.", no_args_is_help=True
)
app.add_typer(lab, name="lab")

Ids = Annotated[
    list[str] | None,
    typer.Argument(help="IDs of experiments or claims: `palio lab list`, `palio lab claims`."),
]
Scale = Annotated[str, typer.Option(help="How large: `full`, or a part of it as a number.")]
Out = Annotated[Path, typer.Option(help="The directory of the results.")]


@lab.command("list")
def list_experiments() -> None:
    """Show the experiments, and how many points each has."""
    from palio.lab.reproduce.catalogue import all_points, experiment, experiments

    print(f"{'id':18}{'points at 0.1':>15}{'at 1':>7}  title")
    for id, module in experiments().items():
        settings = module.SETTINGS
        timed = experiment(settings.source).SETTINGS.is_timed
        counts = [str(len(all_points(id, scale))) for scale in (0.1, 1.0)]
        few, many = counts if settings.uses is None else (settings.uses, "")
        clock = ", timed" if timed else ""
        print(f"{id:18}{few:>15}{many:>7}  {settings.title} ({settings.figure}{clock})")


@lab.command("claims")
def list_claims() -> None:
    """Show the papers' claims: where each is, and which experiments decide it."""
    from palio.lab.reproduce.claims import CLAIMS

    for claim in CLAIMS:
        print(f"{claim.id:26}{claim.place:30}{', '.join(claim.experiments)}")
        print(f"{'':26}{claim.text}")


@lab.command("run")
def run(
    ids: Ids = None,
    every: Annotated[bool, typer.Option("--all", help="Every experiment.")] = False,
    scale: Scale = "0.1",
    out: Out = Path("lab-results"),
    master: Annotated[
        str, typer.Option(help="local[N], spark://HOST:PORT or sc://HOST:PORT.")
    ] = "local[2]",
    seed: Annotated[int, typer.Option(min=0, help="The seed of all randomness.")] = 1,
) -> None:
    """Run experiments as Spark jobs; points that are finished in the directory are not run again.

    A claim runs the experiments that decide it, and prints the verdict.
    """
    from palio.lab.reproduce import runner
    from palio.lab.reproduce.experiment import read_scale
    from palio.lab.reproduce.report import verdict_text

    chosen = _chosen(ids, every)
    announce_compiling()
    with _bar() as tell:
        ran = runner.run(
            chosen, scale=read_scale(scale), out=out, master=master, seed=seed, tell=tell
        )
    new = ran.points - ran.finished_before
    print(
        f"{new:,} points run on {master} in {ran.seconds:,.1f} s, {ran.finished_before:,} were "
        f"finished before; `palio lab report {out}` makes the page"
    )
    for id in ids or []:
        if id not in chosen:
            print(verdict_text(out, id))


@lab.command("scaling")
def scaling(
    ids: Ids = None,
    scale: Scale = "0.1",
    out: Out = Path("lab-scaling"),
    masters: Annotated[
        list[str] | None, typer.Option("--master", help="May be repeated; the first is compared.")
    ] = None,
) -> None:
    """Run the same experiments on several masters, by default local[1] and local[2]: the ratio."""
    from palio.lab.reproduce import runner
    from palio.lab.reproduce.experiment import read_scale

    chosen = masters or ["local[1]", "local[2]"]
    with _bar() as tell:
        seconds = runner.scaling(
            _chosen(ids, False), scale=read_scale(scale), out=out, masters=chosen, tell=tell
        )
    for master, spent in seconds.items():
        print(f"{master}: {spent:,.1f} s, {seconds[chosen[0]] / spent:.2f} times {chosen[0]}")


@lab.command("report")
def report(
    folder: Annotated[Path, typer.Argument(help="A directory of results.")],
    to: Annotated[
        Path | None, typer.Option(help="Where the page and the images go; there by default.")
    ] = None,
) -> None:
    """Write one HTML page with every plot, its settings, and the papers' claims with verdicts."""
    from palio.lab.reproduce import report as lab_report

    written = lab_report.write(folder, to or folder)
    print(f"{written.page}: {written.summary}")


def _chosen(ids: list[str] | None, every: bool) -> list[str]:
    """The experiments that are named, and those that decide the claims that are named."""
    from palio.lab.reproduce.catalogue import experiment, experiments
    from palio.lab.reproduce.claims import CLAIMS

    if bool(ids) == every:
        raise PalioError(
            "name experiments or claims, or all of them with --all; `palio lab list` and "
            "`palio lab claims` show them"
        )
    deciding = {claim.id: claim.experiments for claim in CLAIMS}
    named = [id for given in ids or [] for id in deciding.get(given, (given,))]
    for id in named:
        experiment(id)
    return list(dict.fromkeys(named or experiments()))


@contextmanager
def _bar() -> Iterator[Tell]:
    """A bar over points, on a terminal."""
    with progress_bar() as bar:
        task = bar.add_task("points", total=None)
        yield lambda text, done, total: bar.update(
            task, description=text, completed=done, total=total
        )
