"""The report: one HTML page that needs nothing else, made from stored results only.

DIR/manifest.json, DIR/*/*.parquet ──▶ report.html, with the images inside
                                       <id>.png, for other pages
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from palio.errors import InvalidFile
from palio.lab.reproduce import drawing, manifest
from palio.lab.reproduce.catalogue import all_points, experiments
from palio.lab.reproduce.claims import CLAIMS, Claim, ClaimOutcome, ClaimVerdict, claim, judged
from palio.lab.reproduce.coverage import sizes_run, unfinished
from palio.lab.reproduce.experiment import Row
from palio.lab.reproduce.results import stored

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
img { max-width: 100%; } table { border-collapse: collapse; margin: 1rem 0; }
td, th { border-bottom: 1px solid #ccc; padding: .25rem .6rem; text-align: left;
  vertical-align: top; }
.holds { color: #06632d; } .fails { color: #a01010; } .undecided { color: #666; }
.depends { color: #8a5a00; } .note, .criterion { color: #444; } .criterion { font-size: 90%; }
code { font-size: 90%; }
"""


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """Where the page is, and the verdicts in a sentence."""

    page: Path
    summary: str


def write(folder: Path, to: Path) -> WrittenReport:
    """Draw what is stored in a directory; the page and the images go to another, or the same."""
    made = manifest.read(folder)
    results = {id: stored(folder, id, all_points(id, made.scale)) for id in experiments()}
    if not any(results.values()):
        raise InvalidFile(
            f"{folder} holds no finished point; `palio lab run --all --scale {made.scale:g} "
            f"--out {folder}` makes some"
        )
    open_points = {id: unfinished(folder, all_points(id, made.scale)) for id in results}
    verdicts = [(c, judged(c, results, open_points)) for c in CLAIMS]
    to.mkdir(parents=True, exist_ok=True)
    sections = []
    for id, module in experiments().items():
        if results[id]:
            image = drawing.png(module.plot, results[id])
            (to / f"{id}.png").write_bytes(image)
            of_experiment = [(c, v) for c, v in verdicts if c.experiment == id]
            sizes = sizes_run(folder, all_points(id, made.scale))
            sections.append(_section(module, results[id], image, sizes, of_experiment))
    summary = _summary([verdict for _, verdict in verdicts])
    page = to / "report.html"
    page.write_text(_page(made, summary, verdicts, sections), "utf-8")
    return WrittenReport(page, summary)


def verdict_text(folder: Path, id: str) -> str:
    """What the results of a directory say about one claim, with its criterion, in lines."""
    made, asked = manifest.read(folder), claim(id)
    results = {e: stored(folder, e, all_points(e, made.scale)) for e in asked.experiments}
    open_points = {id: unfinished(folder, all_points(id, made.scale)) for id in results}
    verdict = judged(asked, results, open_points)
    lines = [
        f"{asked.id} ({asked.place}): {asked.text}",
        f"holds if: {asked.criterion}",
        f"refuted by: {asked.refuted}",
        *([f"changed after data were seen: {asked.changed}"] if asked.changed else []),
        *(f"run: {e}: {sizes_run(folder, all_points(e, made.scale))}" for e in asked.experiments),
        *(
            f"read as `{name}`: {'yes' if holds else 'no'}, {figure}"
            for name, holds, figure in verdict.readings
        ),
        f"verdict: {verdict.outcome.value}" + (f": {verdict.figure}" if verdict.figure else ""),
        *([f"because: {verdict.reason}"] if verdict.reason else []),
    ]
    return "\n".join(lines)


def _summary(verdicts: Sequence[ClaimVerdict]) -> str:
    counts = {o: sum(verdict.outcome is o for verdict in verdicts) for o in ClaimOutcome}
    return (
        f"of {len(verdicts)} claims {counts[ClaimOutcome.HOLDS]} hold, "
        f"{counts[ClaimOutcome.FAILS]} do not, {counts[ClaimOutcome.DEPENDS]} depend on what the paper "
        f"leaves open, {counts[ClaimOutcome.UNDECIDED]} are not decided here"
    )


def _page(
    made: manifest.Manifest,
    summary: str,
    verdicts: Sequence[tuple[Claim, ClaimVerdict]],
    sections: Sequence[str],
) -> str:
    runs = "".join(
        f"<li>{escape(str(run['ended']))}, {escape(str(run['master']))}: "
        f"{run['points'] - run['finished_before']:,} points in {run['seconds']:,.1f} s "
        f"({escape(', '.join(run['experiments']))})</li>"
        for run in made.runs
    )
    about = ", ".join(f"{key} {value}" for key, value in made.machine.items())
    about_claims = _ABOUT.format(changed=sum(bool(claim.changed) for claim, _ in verdicts))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>Palio: the papers, run again</title><style>{_STYLE}</style>"
        "<h1>The papers' evaluations, run again</h1>"
        f"<p>Palio {escape(made.version)}, seed {made.seed}, {_scale(made)}; "
        f"{escape(about)}.</p><ul>{runs}</ul>"
        f"<h2>Claims</h2><p>{escape(summary)[:1].upper()}{escape(summary)[1:]}. {escape(about_claims)} "
        f"<code>{escape(_command(made, 'CLAIM'))}</code></p>"
        f"{_claims(verdicts)}<h2>Figures</h2>{''.join(sections)}</html>\n"
    )


_ABOUT = (
    "Criteria were written before the run, but for {changed} that were changed after data were seen: these "
    "say so, and why. Work decides (increments, comparisons, packets), and times are medians of turns, with "
    "their quartiles, told beside it. Statistical tests have an error of 1%. Each figure says which sizes "
    "were really run. This repeats one, and says what it finds:"
)


def _scale(made: manifest.Manifest) -> str:
    return f"scale {made.scale:g}" + (" (full)" if made.scale == 1 else "")


def _command(made: manifest.Manifest, id: str) -> str:
    scale = "full" if made.scale == 1 else f"{made.scale:g}"
    return f"palio lab run {id} --scale {scale} --seed {made.seed}"


def _section(
    module: Any,
    rows: Sequence[Row],
    image: bytes,
    sizes: str,
    verdicts: Sequence[tuple[Claim, ClaimVerdict]],
) -> str:
    settings = module.SETTINGS
    inline = base64.b64encode(image).decode()
    tables = module.tables(rows) if hasattr(module, "tables") else []
    return (
        f'<h3 id="{settings.id}">{escape(settings.title)}</h3>'
        f"<p>{escape(settings.figure)} (<code>{settings.id}</code>). {escape(settings.text)} "
        f"<b>Run:</b> {escape(sizes)}; {len(rows):,} rows.</p>"
        f'<img alt="{escape(settings.title)}" src="data:image/png;base64,{inline}">'
        f"{''.join(_table(*made) for made in tables)}{_claims(verdicts) if verdicts else ''}"
    )


def _claims(verdicts: Sequence[tuple[Claim, ClaimVerdict]]) -> str:
    lines = "".join(
        f"<tr><td>{escape(claim.place)}<br><code>{claim.id}</code></td>"
        f'<td>{escape(claim.text)}<br><span class="criterion">Holds if: {escape(claim.criterion)} '
        f"Refuted by: {escape(claim.refuted)}{_changed(claim)}</span></td>"
        f"<td>{_links(claim)}</td>"
        f'<td class="{verdict.outcome.name.lower()}">{verdict.outcome.value}</td>'
        f"<td>{_found(verdict)}</td></tr>"
        for claim, verdict in verdicts
    )
    headings = ("paper", "claim and criterion", "decided by", "verdict", "our figure")
    heads = "".join(f"<th>{heading}</th>" for heading in headings)
    return f"<table><tr>{heads}</tr>{lines}</table>"


def _changed(claim: Claim) -> str:
    return f" <i>Changed after data were seen: {escape(claim.changed)}</i>" if claim.changed else ""


def _links(claim: Claim) -> str:
    return ", ".join(f'<a href="#{id}">{id}</a>' for id in claim.experiments)


def _found(verdict: ClaimVerdict) -> str:
    """The figure, the answer in each reading, and the reason."""
    parts = [escape(verdict.figure)] if not verdict.readings else []
    parts += [
        f"<i>{escape(name)}</i>: {'yes' if holds else 'no'}, {escape(figure)}"
        for name, holds, figure in verdict.readings
    ]
    if verdict.reason:
        parts.append(f'<span class="note">{escape(verdict.reason)}</span>')
    return "<br>".join(part for part in parts if part)


def _table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    heads = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>" for cells in lines
    )
    return f"<table><tr>{heads}</tr>{rows}</table>"
