"""How a forwarding table shows itself: one line, and HTML in a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from palio.model.predicate import Predicate

IN_LINE, IN_HTML = 3, 10  # interfaces
_CHARACTERS = 200  # of a predicate


def line(count: int, first: list[str]) -> str:
    shown = [*map(repr, first), *(["..."] if count > len(first) else [])]
    return f"<ForwardingTable of {count:,} interfaces: {', '.join(shown)}>"


def html(count: int, first: Iterable[tuple[str, Predicate]]) -> str:
    rows = [
        f"<tr><td>{escape(name)}</td><td><code>{escape(_beginning(predicate))}</code></td></tr>"
        for name, predicate in first
    ]
    more = f"<p>and {count - len(rows):,} more</p>" if count > len(rows) else ""
    head = "<caption>ForwardingTable</caption><tr><th>interface</th><th>predicate</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>{more}"


def _beginning(predicate: Predicate) -> str:
    text = str(predicate)
    return text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 3] + "..."
