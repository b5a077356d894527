"""Samples of two brokers, once a second: memory, queues, ages of messages; a line of JSON each."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, TypeAlias
from urllib.request import urlopen

from palio.lab.soak.load import SoakLoad

Sample: TypeAlias = dict[str, Any]
"""t_s, sent, received, visits; live and durable: messages, p50, p99, p999 in ms; brokers by name."""

_GAUGES = {
    "palio_queue_messages": "queues",
    "palio_backlog_messages": "backlogs",
    "palio_uncommitted_bytes": "uncommitted_bytes",
    "palio_journal_messages": "journal_messages",
    "palio_publishers": "publishers",
    "palio_table_filters": "table_filters",
}
_LINE = re.compile(r"^(palio_\w+)(?:\{[^}]*\})? ([-+.\deE]+)$", re.MULTILINE)
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def rss_bytes(process: int) -> int:
    """The memory that a process has (Linux)."""
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * _PAGE_BYTES


def gauges(text: str) -> dict[str, float]:
    """Of a page of metrics: sums over the labels. What tells of the event loop is taken as it is.

    >>> gauges('palio_queue_messages{subscription="a"} 2\\npalio_queue_messages{subscription="b"} 1\\n')
    {'queues': 3.0}
    """
    found: defaultdict[str, float] = defaultdict(float)
    for name, value in _LINE.findall(text):
        if name in _GAUGES:
            found[_GAUGES[name]] += float(value)
        elif "loop" in name and not name.endswith(("_bucket", "_created")):
            found[name.removeprefix("palio_")] += float(value)
    return dict(found)


def read_metrics(address: str) -> dict[str, float]:
    with urlopen(f"http://{address}/metrics", timeout=60) as page:
        return gauges(page.read().decode())


def sample(load: SoakLoad, t_s: float, brokers: Mapping[str, Mapping[str, float]]) -> Sample:
    return {
        "t_s": round(t_s, 2),
        "sent": load.sent,
        "received": load.received,
        "visits": load.visits,
        "live": load.ages(durable=False)._asdict(),
        "durable": load.ages(durable=True)._asdict(),
        "brokers": {name: dict(values) for name, values in brokers.items()},
    }
