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
from palio.lab import drawing, manifest
from palio.lab.claims import CLAIMS, Claim, Kind, Verdict, judged
from palio.lab.experiments import Row, all_points, experiments, stored

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
img { max-width: 100%; } table { border-collapse: collapse; margin: 1rem 0; }
td, th { border-bottom: 1px solid #ccc; padding: .25rem .6rem; text-align: left;
  vertical-align: top; }
.holds { color: #06632d; } .fails { color: #a01010; } .undecided { color: #666; }
.note { color: #444; }
"""


@dataclass(frozen=True, slots=True)
class Written:
    """Where the page is, and the verdicts in a sentence."""

    page: Path
    summary: str


def write(folder: Path, to: Path) -> Written:
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
            own = [(c, v) for c, v in verdicts if c.experiment == id]
            sections.append(_section(module, results[id], image, own))
    counts = {kind: sum(v.kind is kind for _, v in verdicts) for kind in Kind}
    summary = (
        f"of {len(CLAIMS)} claims {counts[Kind.HOLDS]} hold, {counts[Kind.FAILS]} do not, "
        f"{counts[Kind.UNDECIDED]} are not decided at this scale"
    )
    page = to / "report.html"
    page.write_text(_page(made, summary, verdicts, sections), "utf-8")
    return Written(page, summary)


def _page(
    made: manifest.Manifest,
    summary: str,
    verdicts: Sequence[tuple[Claim, Verdict]],
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
    module: Any, rows: Sequence[Row], image: bytes, own: Sequence[tuple[Claim, Verdict]]
) -> str:
    settings = module.SETTINGS
    inline = base64.b64encode(image).decode()
    found = getattr(module, "table", None)
    return (
        f'<h3 id="{settings.id}">{escape(settings.title)}</h3>'
        f"<p>{escape(settings.figure)} (<code>{settings.id}</code>). {escape(settings.text)} "
        f"{len(rows):,} rows.</p>"
        f'<img alt="{escape(settings.title)}" src="data:image/png;base64,{inline}">'
        f"{_table(*found(rows)) if found else ''}{_claims(own) if own else ''}"
    )


def _claims(verdicts: Sequence[tuple[Claim, Verdict]]) -> str:
    lines = "".join(
        f"<tr><td>{escape(claim.place)}</td><td>{escape(claim.text)}</td>"
        f'<td><a href="#{claim.experiment}">{claim.experiment}</a></td>'
        f'<td class="{verdict.kind.name.lower()}">{verdict.kind.value}</td>'
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
