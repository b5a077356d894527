"""A claim that two papers make, each of its workload: shared names are the hardest case (2001, 4.1 and
2003, 5.1)."""

from __future__ import annotations

from statistics import mean

from palio.lab.reproduce.claims.claim import Decision, Readings, Rows, TooSmall
from palio.lab.reproduce.drawing import chosen, curve, distinct

FILTERS_MIN = 5_000  # so that messages decide few interfaces early
WORK = "increments_per_message"


def most_work_if_shared(rows: Rows, paper: str) -> Readings:
    """Whether a message makes the most increments where all of its names are those of filters."""
    if max(row["filters"] for row in rows) < FILTERS_MIN:
        raise TooSmall(f"{FILTERS_MIN:,} filters or more: scale 0.25")
    found: dict[str, Decision] = {}
    for draw in distinct(rows, "draw"):
        hardest, texts = set(), []
        for interfaces in distinct(rows, "interfaces"):
            those = chosen(rows, paper=paper, draw=draw, interfaces=interfaces)
            work = dict(curve(those, "shared", WORK, mean))
            share = max(work, key=lambda share: work[share])
            hardest.add(share)
            texts.append(f"{work[share]:,.0f} at {share:.0%} and I = {interfaces}")
        found[draw] = hardest == {1.0}, f"most increments: {', '.join(texts)}"
    return found
