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
from palio.lab.reproduce.claims import CLAIMS, Claim, ClaimOutcome, ClaimVerdict, judged
from palio.lab.reproduce.experiment import Row
from palio.lab.reproduce.results import stored

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
img { max-width: 100%; } table { border-collapse: collapse; margin: 1rem 0; }
td, th { border-bottom: 1px solid #ccc; padding: .25rem .6rem; text-align: left;
  vertical-align: top; }
.holds { color: #06632d; } .fails { color: #a01010; } .undecided { color: #666; }
.note { color: #444; }
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
    verdicts = [(claim, judged(claim, results)) for claim in CLAIMS]
    to.mkdir(parents=True, exist_ok=True)
    sections = []
    for id, module in experiments().items():
        if results[id]:
            image = drawing.png(module.plot, results[id])
            (to / f"{id}.png").write_bytes(image)
            of_experiment = [(c, v) for c, v in verdicts if c.experiment == id]
            sections.append(_section(module, results[id], image, of_experiment))
    counts = {o: sum(v.outcome is o for _, v in verdicts) for o in ClaimOutcome}
    summary = (
        f"of {len(CLAIMS)} claims {counts[ClaimOutcome.HOLDS]} hold, {counts[ClaimOutcome.FAILS]} do not, "
        f"{counts[ClaimOutcome.UNDECIDED]} are not decided at this scale"
    )
    page = to / "report.html"
    page.write_text(_page(made, summary, verdicts, sections), "utf-8")
    return WrittenReport(page, summary)


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
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>Palio: the papers, run again</title><style>{_STYLE}</style>"
        "<h1>The papers' evaluations, run again</h1>"
        f"<p>Palio {escape(made.version)}, seed {made.seed}, scale {made.scale:g}; "
        f"{escape(about)}.</p><ul>{runs}</ul>"
        f"<h2>Claims</h2><p>{escape(summary)[:1].upper()}{escape(summary)[1:]}.</p>"
        f"{_claims(verdicts)}<h2>Figures</h2>{''.join(sections)}</html>\n"
    )


def _section(
    module: Any, rows: Sequence[Row], image: bytes, verdicts: Sequence[tuple[Claim, ClaimVerdict]]
) -> str:
    settings = module.SETTINGS
    inline = base64.b64encode(image).decode()
    table_of = getattr(module, "table", None)
    return (
        f'<h3 id="{settings.id}">{escape(settings.title)}</h3>'
        f"<p>{escape(settings.figure)} (<code>{settings.id}</code>). {escape(settings.text)} "
        f"{len(rows):,} rows.</p>"
        f'<img alt="{escape(settings.title)}" src="data:image/png;base64,{inline}">'
        f"{_table(*table_of(rows)) if table_of else ''}{_claims(verdicts) if verdicts else ''}"
    )


def _claims(verdicts: Sequence[tuple[Claim, ClaimVerdict]]) -> str:
    lines = "".join(
        f"<tr><td>{escape(claim.place)}</td><td>{escape(claim.text)}</td>"
        f'<td><a href="#{claim.experiment}">{claim.experiment}</a></td>'
        f'<td class="{verdict.outcome.name.lower()}">{verdict.outcome.value}</td>'
        f"<td>{escape(verdict.figure)}"
        + (f'<br><span class="note">{escape(verdict.reason)}</span>' if verdict.reason else "")
        + "</td></tr>"
        for claim, verdict in verdicts
    )
    headings = ("paper", "claim", "decided by", "verdict", "our figure")
    heads = "".join(f"<th>{heading}</th>" for heading in headings)
    return f"<table><tr>{heads}</tr>{lines}</table>"


def _table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    heads = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>" for cells in lines
    )
    return f"<table><tr>{heads}</tr>{rows}</table>"
