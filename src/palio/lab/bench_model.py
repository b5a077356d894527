"""Figures of the model: predicates parsed a second, and how reduction grows.

Run as a module; `--json` prints one object a line.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

import palio
from palio.lab.workloads import disjunction_2006


def rule_texts(count: int, shapes: int) -> list[str]:
    """Rules as people have them: few shapes, many literals."""
    makers = [
        "dest = 'D{i}' AND price{k} < {i}",
        "carrier IN ('UA', 'AA', 'X{i}') AND delay{k} >= {i}",
        "user{k} = 'u{i}' AND (level > {j} OR kind LIKE 'err{j}%')",
        "tenant{k} = {i} AND NOT (status = 'ok' AND latency < {i}.5)",
    ]
    return [
        makers[i % len(makers)].format(i=i, j=i % 97, k=i % shapes // len(makers))
        for i in range(count)
    ]


def parsing(count: int = 100_000, shapes: int = 100, repeats: int = 3) -> dict[str, object]:
    """Predicates parsed a second, best of some repeats, after a warm-up."""
    texts = rule_texts(count, shapes)
    for text in texts[: 2 * shapes]:
        palio.parse(text)
    best = min(_timed(lambda: [palio.parse(text) for text in texts]) for _ in range(repeats))
    return {"bench": "parse", "predicates": count, "shapes": shapes, "per_second": count / best}


def reductions(sizes: tuple[int, ...] = (1_000, 10_000, 100_000)) -> Iterator[dict[str, object]]:
    """Seconds to reduce a disjunction of the 2006 workload, and its advantage alpha."""
    for names, zipf in ((500, True), (500, False)):
        for size in sizes:
            predicate = disjunction_2006(size, names=names, zipf=zipf)
            started = time.perf_counter()
            reduced = palio.reduce(predicate)
            yield {
                "bench": "reduce",
                "names": names,
                "distribution": "zipf" if zipf else "uniform",
                "filters": size,
                "seconds": time.perf_counter() - started,
                "alpha": reduced.size / predicate.size,
            }


def _timed(run: object) -> float:
    started = time.perf_counter()
    run()  # type: ignore[operator]
    return time.perf_counter() - started


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", action="store_true", help="one JSON object a line")
    chosen = options.parse_args()
    rows = [parsing(), *reductions()]
    if chosen.json:
        for row in rows:
            print(json.dumps(row))
        return
    console = Console()
    console.print(f"parse: {rows[0]['per_second']:,.0f} predicates/s of {rows[0]['shapes']} shapes")
    table = Table("names", "distribution", "filters", "seconds", "alpha", title="reduce")
    for row in rows[1:]:
        table.add_row(
            str(row["names"]),
            str(row["distribution"]),
            f"{row['filters']:,}",
            f"{row['seconds']:.2f}",
            f"{row['alpha']:.3f}",
        )
    console.print(table)


if __name__ == "__main__":
    main()
